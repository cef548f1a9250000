"""Means of fresh evaluations with their t intervals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from outlay.coordination.noise import squared_deviations

if TYPE_CHECKING:
    from collections.abc import Sequence


class Interval(NamedTuple):
    """A mean with its confidence interval; both limits are `None` where they are unknown."""

    mean: float
    low: float | None
    high: float | None
    n: int


def estimate(values: Sequence[float], level: float = 0.95) -> Interval:
    """Return the mean of independent values with its two-sided t interval.

    One value has a mean but no known spread, so its limits are `None`.

    Args:
        values: Evaluations on seeds that selected nothing; at least one.
        level: Coverage of the interval, in (0, 1).

    Raises:
        ValueError: There is no value.
    """
    n = len(values)
    if not n:
        raise ValueError("values: found none, allowed: one or more")
    mean = math.fsum(values) / n
    if n == 1:
        return Interval(mean, None, None, 1)
    half = t_upper((1 - level) / 2, n - 1) * math.sqrt(squared_deviations(values) / (n - 1) / n)
    return Interval(mean, mean - half, mean + half, n)


def paired_difference(
    first: Sequence[float], second: Sequence[float], level: float = 0.95
) -> Interval:
    """Return the mean of `first - second`, seed by seed, with its two-sided t interval.

    Raises:
        ValueError: The two differ in length, or are empty.
    """
    return estimate([a - b for a, b in zip(first, second, strict=True)], level)


def t_upper(level: float, df: float) -> float:
    """Return the value that Student's t with `df` degrees of freedom exceeds with `level`."""
    from scipy.special import stdtrit

    return -float(stdtrit(df, level))
