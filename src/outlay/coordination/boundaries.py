"""Group-sequential boundaries for a mean that is looked at after every pair.

Computed by recursive integration of the density of the running sum (Armitage, McPherson & Rowe
1969, "Repeated significance tests on accumulating data"; Jennison & Turnbull 2000, "Group
Sequential Methods with Applications to Clinical Trials", chapter 19).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

_POINTS = 129  # Simpson nodes, odd; error levels are then right to about 1e-4 of themselves
_REACH = 8.0  # lower end of the grid in standard deviations


@lru_cache(maxsize=4096)
def nominal_levels(error: float, looks: int, exponent: float, first: int = 1) -> tuple[float, ...]:
    """Return the one-sided significance level of each look that together spend `error`.

    Up to look k of K, `error * (k / K) ** exponent` may be spent (the power family of Kim & DeMets
    1987), nothing before look `first`. Levels hold for independent normal increments; for t
    statistics they are used as they are (the significance-level approach, Jennison & Turnbull
    2000, section 11.3).

    Args:
        error: Probability under no effect of crossing at any look, in (0, 0.5).
        looks: Number of looks K.
        exponent: Above 1 saves error for late looks, below 1 spends it early.
        first: First look (from 1) that may cross; the level of earlier ones is 0.
    """
    levels: list[float] = []
    grid: Array | None = None
    mass: Array | None = None
    spent = 0.0
    for look in range(1, looks + 1):
        allowed = error * (look / looks) ** exponent if look >= first else 0.0
        bound = _bound(grid, mass, allowed - spent, look)
        levels.append(_upper_tail(bound / math.sqrt(look)) if allowed else 0.0)
        grid, mass = _advance(grid, mass, bound, look)
        spent = allowed
    return tuple(levels)


def _bound(grid: Array | None, mass: Array | None, target: float, look: int) -> float:
    """Return the sum that the next step exceeds with probability `target`."""
    highest = 12.0 * math.sqrt(look)
    if target <= 0.0:
        return highest
    low, high = 0.0, highest
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _beyond(grid, mass, middle) > target else (low, middle)
    return (low + high) / 2


def _beyond(grid: Array | None, mass: Array | None, bound: float) -> float:
    from scipy.special import ndtr

    if grid is None or mass is None:
        return _upper_tail(bound)
    return float(mass @ ndtr(grid - bound))


def _advance(
    grid: Array | None, mass: Array | None, bound: float, look: int
) -> tuple[Array, Array]:
    """Return nodes below the bound and the probability that sits on each of them."""
    nodes = np.linspace(-_REACH * math.sqrt(look), bound, _POINTS)
    weights = np.full(_POINTS, 2.0)
    weights[1::2] = 4.0
    weights[[0, -1]] = 1.0
    weights *= (nodes[1] - nodes[0]) / 3.0
    if grid is None or mass is None:
        density = np.exp(-0.5 * nodes**2)
    else:
        density = np.exp(-0.5 * (nodes[:, None] - grid[None, :]) ** 2) @ mass
    return nodes, weights * density / math.sqrt(2 * math.pi)


def _upper_tail(z: float) -> float:
    from scipy.special import ndtr

    return float(ndtr(-z))
