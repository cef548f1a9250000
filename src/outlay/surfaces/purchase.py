"""Which configuration to measure next: the one that leaves the effects least uncertain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from outlay.surfaces.cube import FloatArray, IntArray

DECIMALS = 9


def remaining_uncertainty(
    covariance: FloatArray,
    noise: float,
    low: IntArray,
    high: IntArray,
    candidates: IntArray,
    weight: FloatArray | None = None,
) -> FloatArray:
    """Return the sum of the effects' standard deviations after measuring each candidate.

    Args:
        covariance: Posterior covariance of some configurations, shape (k, k).
        noise: Variance of one measurement around the surface.
        low: Position of each effect's lower end among them.
        high: Position of its upper end.
        candidates: Positions of the configurations that can be measured.
        weight: What each effect counts; 1 by default.
    """
    columns = covariance[:, candidates]
    shared = columns[high] - columns[low]
    own = np.diagonal(covariance)
    before = own[high] + own[low] - 2 * covariance[high, low]
    spread = np.maximum(own[candidates] + noise, 1e-300)
    after = np.sqrt(np.maximum(before[:, None] - shared**2 / spread, 0.0))
    total: FloatArray = (after if weight is None else weight[:, None] * after).sum(axis=0)
    return total


def smallest(remaining: FloatArray) -> int:
    """Return the position of the smallest value; values equal up to rounding go to the first."""
    scale = float(np.abs(remaining).max()) or 1.0
    return int(np.argmin(np.round(remaining / scale, DECIMALS)))
