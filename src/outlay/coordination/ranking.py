"""In which order axes are tried: the unknown first, then the influential."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class Ranking:
    """Mean absolute effect of each axis; O(1) to record, O(n log n) to order n axes."""

    def __init__(self) -> None:
        self._totals: dict[str, float] = {}
        self._counts: dict[str, int] = {}

    def record(self, axis: str, delta: float) -> None:
        """Add one observed change of the metric (candidate minus champion) on an axis."""
        self._totals[axis] = self._totals.get(axis, 0.0) + abs(delta)
        self._counts[axis] = self._counts.get(axis, 0) + 1

    def effect(self, axis: str) -> float | None:
        """Return the mean absolute change on an axis, `None` if it was never tried."""
        count = self._counts.get(axis, 0)
        return self._totals[axis] / count if count else None

    def tried(self) -> list[str]:
        """Return every axis that has an effect, the most influential first."""
        return self.order(list(self._counts))

    def order(self, axes: Sequence[str]) -> list[str]:
        """Return the axes, untried ones first as given, then by descending mean |delta|.

        Ties keep the order of `axes`.
        """
        return sorted(axes, key=self._rank)

    def _rank(self, axis: str) -> tuple[bool, float]:
        effect = self.effect(axis)
        return (effect is not None, -(effect or 0.0))
