"""How axes are shared out among teams."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def deal(axes: Sequence[str], teams: int) -> tuple[tuple[str, ...], ...]:
    """Return `teams` hands of axes, dealt in turn; later hands may be shorter or empty.

    Raises:
        ValueError: `teams` is below 1.
    """
    if teams < 1:
        raise ValueError(f"teams: found {teams}, allowed: 1 or more")
    return tuple(tuple(axes[first::teams]) for first in range(teams))
