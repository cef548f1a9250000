"""Intervals of predictions that cover as often as they say.

A model that is sure of a factor's relevance can be wrong about single cells, so a share of the
typical variance is added to each. It grows where little is left to measure: what is left then is
what the models found surest. The constants were chosen for 90 % coverage of the effects with an
unmeasured end on tables that no reported figure uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from outlay.surfaces.cube import FloatArray

QUANTILE = 1.645
SHARE = 0.4
MOSTLY_MEASURED = 0.6
# Of the variance added to one conditional effect, per unit of weight in a mean over many cells.
SUM_SHARE = 0.15


class Typical(NamedTuple):
    """Mean posterior variance of an unmeasured cell, and of an effect with an unmeasured end."""

    cell: float
    effect: float


def typical_share(observed: int, size: int) -> float:
    """Return the share of the typical variance that is added, for observed cells out of `size`."""
    return min(1.0, SHARE + 2 * max(0.0, observed / size - MOSTLY_MEASURED))


def half_width(variance: FloatArray, added: float = 0.0) -> FloatArray:
    """Return half the width of the 90 % interval of quantities with this posterior variance.

    Args:
        variance: Posterior variances.
        added: Variance added to each of them.
    """
    found: FloatArray = QUANTILE * np.sqrt(np.maximum(variance, 0.0) + added)
    return found
