"""How much two axes depend on each other, estimated from configurations that were scored.

The interaction of a move on one axis with a move on another is the change of one's effect by the
other: `y11 - y10 - y01 + y00` over four configurations that agree in everything else.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple

from outlay.coordination.estimates import Interval

Configuration = Mapping[str, Hashable]
_Key = frozenset[tuple[str, Hashable]]


class Move(NamedTuple):
    """A change of one axis from one setting to another."""

    axis: str
    start: Hashable
    stop: Hashable


class Interactions:
    """Scores by configuration, and the interactions that they show.

    Recording costs one dictionary update. An estimate looks at no more than `reach`
    configurations, the latest ones at the second move's goal.
    """

    def __init__(self, reach: int = 512) -> None:
        self.reach = reach
        self._sums: dict[_Key, float] = {}
        self._counts: dict[_Key, int] = {}
        self._at: dict[tuple[str, Hashable], list[_Key]] = {}

    def record(self, configuration: Configuration, value: float) -> None:
        """Add one evaluation of a configuration, oriented so that higher is better."""
        key = frozenset(configuration.items())
        if key not in self._sums:
            for item in key:
                self._at.setdefault(item, []).append(key)
        self._sums[key] = self._sums.get(key, 0.0) + value
        self._counts[key] = self._counts.get(key, 0) + 1

    def estimate(
        self, first: Move, second: Move, sd: float, level: float = 0.9
    ) -> Interval | None:
        """Return the mean interaction over all matched quadruples, `None` if there is none.

        Args:
            first: Move on one axis.
            second: Move on another axis.
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
        half = _normal_quantile(0.5 + level / 2) * sd * math.sqrt(variance)
        return Interval(mean, mean - half, mean + half, len(quadruples))

    def _quadruples(self, first: Move, second: Move) -> Iterable[tuple[_Key, _Key, _Key, _Key]]:
        for both in self._at.get((second.axis, second.stop), [])[-self.reach :]:
            if (first.axis, first.stop) not in both:
                continue
            without_second = _moved(both, second)
            without_first = _moved(both, first)
            neither = _moved(without_first, second)
            if {without_second, without_first, neither} <= self._sums.keys():
                yield both, without_second, without_first, neither


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
            _depends(interactions.estimate(change, Move(axis, after[axis], direction), sd))
            for change in changes
            if change.axis != axis
        )
    )


def _depends(interval: Interval | None) -> bool:
    if interval is None or interval.low is None or interval.high is None:
        return False
    return interval.low > 0 or interval.high < 0


def _moved(key: _Key, move: Move) -> _Key:
    """Return the configuration with the move taken back."""
    return key - {(move.axis, move.stop)} | {(move.axis, move.start)}


def _normal_quantile(probability: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(probability))
