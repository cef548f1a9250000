"""Intervals of predictions that cover as often as they say.

A model that is sure of a factor's relevance can be wrong about single cells, so a share of the
typical variance is added to each. It grows with the number of observations, as the models grow
surer. The constants were chosen for 90 % coverage of the effects with an unmeasured end on tables
that no reported figure uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from outlay.surfaces.cube import FloatArray

QUANTILE = 1.645
LEAST_SHARE = 0.3
SHARE_START = 5
SHARE_LENGTH = 10


class Typical(NamedTuple):
    """Mean posterior variance of an unmeasured cell, and of an effect with an unmeasured end."""

    cell: float
    effect: float


def typical_share(observed: int) -> float:
    """Return the share of the typical variance that is added, for a number of observed cells."""
    return float(np.clip((observed - SHARE_START) / SHARE_LENGTH, LEAST_SHARE, 1.0))


def half_width(variance: FloatArray, added: float = 0.0) -> FloatArray:
    """Return half the width of the 90 % interval of quantities with this posterior variance.

    Args:
        variance: Posterior variances.
        added: Variance added to each of them.
    """
    found: FloatArray = QUANTILE * np.sqrt(np.maximum(variance, 0.0) + added)
    return found
