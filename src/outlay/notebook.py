"""Figures that a notebook shows as they are, without pyplot and its global state."""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure


class ShownFigure(Figure):
    """A matplotlib figure that is a picture where a notebook's cell ends with it."""

    def _repr_png_(self) -> bytes:
        content = BytesIO()
        self.savefig(content, format="png")
        return content.getvalue()
