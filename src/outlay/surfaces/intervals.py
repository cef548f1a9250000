"""Intervals of predictions that cover as often as they say.

A model that is sure of a factor's relevance can be wrong about single cells, so a share of the
typical variance is added to each. The constants were chosen for coverage of the effects with an
unmeasured end on tables that no reported figure uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from outlay.surfaces.cube import FloatArray

LEVEL = 0.9
QUANTILE = 1.645
TYPICAL_SHARE = 0.7


class Reach(NamedTuple):
    """Mean posterior variance of an unmeasured cell, and of an effect with an unmeasured end."""

    cell: float
    effect: float


def half_width(variance: FloatArray, typical: float) -> FloatArray:
    """Return half the width of the 90 % interval of quantities with this posterior variance.

    Args:
        variance: Posterior variances.
        typical: Mean variance of such quantities.
    """
    found: FloatArray = QUANTILE * np.sqrt(np.maximum(variance, 0.0) + TYPICAL_SHARE * typical)
    return found
