"""What the log says about each axis, and in which order axes may be tried next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlay.coordination.deadends import DeadEnds
from outlay.coordination.ranking import Ranking
from outlay.coordination.stagnation import Stagnation
from outlay.coordination.teams import deal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from outlay.task import Coordination


class Directions:
    """Dead ends, effect sizes and team hands over a set of axes, each mechanism switchable.

    Args:
        axes: Axis to the directions it has. Axes that turn up later, such as a model's slugs,
            are counted too, but have no place in the order.
        settings: Which mechanisms are on.
    """

    def __init__(self, axes: Mapping[str, Sequence[str]], settings: Coordination) -> None:
        self.axes = axes
        self.settings = settings
        self.dead_ends = DeadEnds()
        self.ranking = Ranking()
        self.reorganisations = 0
        self._stagnation = Stagnation(settings.stagnation)
        self._hands = self._deal()

    def record_outcome(self, axis: str | None, direction: str | None, improved: bool) -> None:
        """Count one finished outcome; without a direction it counts for stagnation only."""
        if axis is not None and direction is not None:
            self.dead_ends.record(axis, direction, improved)
        if self._stagnation.record(improved) and self.settings.teams > 1:
            self._hands = self._deal()
            self.reorganisations += 1

    def record_effect(self, axis: str | None, delta: float) -> None:
        """Add one observed change of the metric on an axis, child minus parent."""
        if axis is not None:
            self.ranking.record(axis, delta)

    def is_retired(self, axis: str, direction: str) -> bool:
        """Whether the direction must not be proposed; never if dead ends are switched off."""
        return self.settings.dead_ends and self.dead_ends.is_retired(axis, direction)

    def hand(self, turn: int) -> list[str]:
        """Return the axes that the team of this turn may use, as they were dealt.

        Args:
            turn: Number of the experiment, from 0; teams take turns.
        """
        return self._open(self._hands[turn % len(self._hands)]) or self._open(tuple(self.axes))

    def order(self, turn: int) -> list[str]:
        """Return the axes that the team of this turn may use, the most promising first."""
        axes = self.hand(turn)
        return self.ranking.order(axes) if self.settings.ranking else axes

    def _deal(self) -> tuple[tuple[str, ...], ...]:
        axes = self._open(tuple(self.axes))
        return deal(self.ranking.order(axes) if self.settings.ranking else axes, self._teams)

    @property
    def _teams(self) -> int:
        return max(1, self.settings.teams)

    def _open(self, axes: Sequence[str]) -> list[str]:
        return [
            axis
            for axis in axes
            if any(not self.is_retired(axis, direction) for direction in self.axes[axis])
        ]
