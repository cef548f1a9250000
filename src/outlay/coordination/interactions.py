"""How much two axes depend on each other, estimated from configurations that were scored.

The interaction of a change on one axis with a change on another is what one does to the other's
effect: `y11 - y10 - y01 + y00` over four configurations that agree in everything else.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from outlay.coordination.estimates import Interval

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    Configuration = Mapping[str, Hashable]

_Key = tuple["Hashable", ...]
_Quadruple = tuple[_Key, _Key, _Key, _Key]
_LEVEL = 0.9


class Move(NamedTuple):
    """A change of one axis from one setting to another, such as a lever's option."""

    axis: str
    start: Hashable
    stop: Hashable

    def applied(self, setting: Hashable) -> Hashable | None:
        """Return the setting after the change, `None` where it does not apply."""
        return self.stop if setting == self.start else None


class Step(NamedTuple):
    """A change of one numeric axis by an amount, wherever it starts."""

    axis: str
    by: float

    def applied(self, setting: Hashable) -> Hashable | None:
        """Return the setting after the change."""
        return setting + self.by if isinstance(setting, int | float) else None


class Interactions:
    """Scores by configuration, and the interactions that they show.

    Recording costs one dictionary update. An estimate looks at no more than the `reach`
    configurations that were scored last.
    """

    def __init__(self, reach: int = 512) -> None:
        self.reach = reach
        self._axes: tuple[str, ...] = ()
        self._sums: dict[_Key, float] = {}
        self._counts: dict[_Key, int] = {}
        self._order: list[_Key] = []
        self._pairs: dict[Move | Step, list[tuple[_Key, _Key]]] = {}

    def record(self, configuration: Configuration, value: float) -> None:
        """Add one evaluation of a configuration, oriented so that higher is better.

        Raises:
            ValueError: The configuration has other axes than the first one had.
        """
        self._axes = self._axes or tuple(configuration)
        if len(configuration) != len(self._axes) or any(
            a not in configuration for a in self._axes
        ):
            raise ValueError(f"axes: found {sorted(configuration)}, allowed: {sorted(self._axes)}")
        key = tuple(configuration[axis] for axis in self._axes)
        if key not in self._sums:
            self._order.append(key)
            self._pairs.clear()
        self._sums[key] = self._sums.get(key, 0.0) + value
        self._counts[key] = self._counts.get(key, 0) + 1

    def estimate(
        self, first: Move | Step, second: Move | Step, sd: float, level: float = _LEVEL
    ) -> Interval | None:
        """Return the mean interaction over all matched quadruples, `None` if there is none.

        Args:
            first: Change on one axis.
            second: Change on another axis.
            sd: Standard deviation of one evaluation, taken as known.
            level: Coverage of the normal interval, in (0, 1).
        """
        quadruples = list(self._quadruples(first, second))
        if not quadruples:
            return None
        weights: dict[_Key, float] = {}
        for quadruple in quadruples:
            for key, sign in zip(quadruple, (1, -1, -1, 1), strict=True):
                weights[key] = weights.get(key, 0.0) + sign / len(quadruples)
        mean = math.fsum(w * self._sums[k] / self._counts[k] for k, w in weights.items())
        variance = math.fsum(w * w / self._counts[k] for k, w in weights.items())
        half = _normal_upper((1 - level) / 2) * sd * math.sqrt(variance)
        return Interval(mean, mean - half, mean + half, len(quadruples))

    def excludes_zero(self, first: Move | Step, second: Move | Step, sd: float) -> bool:
        """Return whether the 90 % interval of the interaction lies on one side of 0."""
        interval = self.estimate(first, second, sd)
        if interval is None or interval.low is None or interval.high is None:
            return False
        return interval.low > 0 or interval.high < 0

    def _quadruples(self, first: Move | Step, second: Move | Step) -> Iterable[_Quadruple]:
        if first not in self._pairs:
            self._pairs[first] = list(self._find_pairs(first))
        for before, after in self._pairs[first]:
            both, alone = self._applied(after, second), self._applied(before, second)
            if both in self._sums and alone in self._sums:
                yield both, after, alone, before

    def _find_pairs(self, change: Move | Step) -> Iterable[tuple[_Key, _Key]]:
        for before in self._order[-self.reach :]:
            after = self._applied(before, change)
            if after is not None and after in self._sums:
                yield before, after

    def _applied(self, key: _Key, change: Move | Step) -> _Key | None:
        place = self._axes.index(change.axis)
        setting = change.applied(key[place])
        return None if setting is None else (*key[:place], setting, *key[place + 1 :])


def reopened(
    retired: Iterable[tuple[str, str]],
    before: Configuration,
    after: Configuration,
    interactions: Interactions,
    sd: float,
) -> list[tuple[str, str]]:
    """Return the retired directions that deserve another look after the champion changed.

    Those are the (axis, direction) pairs whose interaction with one of the champion's changed
    axes excludes 0 at 90 %; a direction is the setting that the axis would be moved to.
    """
    changes = [
        Move(axis, before[axis], after[axis]) for axis in after if before.get(axis) != after[axis]
    ]
    return sorted(
        (axis, direction)
        for axis, direction in retired
        if any(
            interactions.excludes_zero(change, Move(axis, after[axis], direction), sd)
            for change in changes
            if change.axis != axis
        )
    )


def _normal_upper(level: float) -> float:
    from scipy.special import ndtri

    return -float(ndtri(level))
