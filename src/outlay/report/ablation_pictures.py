"""The pictures of a response surface as PNG."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Literal

from outlay.errors import InputError

if TYPE_CHECKING:
    from outlay.surfaces.surface import Surface

KINDS: tuple[Literal["effects", "interactions", "surface"], ...] = (
    "effects",
    "interactions",
    "surface",
)
DOTS_PER_INCH = 110


def pictures(surface: Surface) -> tuple[dict[str, bytes], str]:
    """Return the pictures by kind, and why some are missing, empty if none is."""
    drawn: dict[str, bytes] = {}
    for kind in KINDS:
        try:
            figure = surface.plot(kind)
        except ImportError as error:
            return {}, f"no pictures: {error.name} is not installed (outlay[plot], outlay[pandas])"
        except InputError as error:
            return drawn, f"no picture of the {kind}: {error}"
        content = BytesIO()
        figure.savefig(content, format="png", dpi=DOTS_PER_INCH)
        drawn[kind] = content.getvalue()
    return drawn, ""
