"""Intervals of predictions that cover as often as they say.

A model that is sure of a factor's relevance can be wrong about single cells, so a share of the
typical variance is added to each. It grows over the first observations, as the models grow surer,
and again where little is left to measure: that is what the models were surest of. The constants
were chosen for 90 % coverage of the effects with an unmeasured end on tables that no reported
figure uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from outlay.surfaces.cube import FloatArray

QUANTILE = 1.5
SHARE = 0.55
SHARE_FROM = 6
SHARE_UNTIL = 10
MOSTLY_MEASURED = 0.65
# Of the variance added to one conditional effect, per unit of weight in a mean over many cells.
SUM_SHARE = 0.2


class Typical(NamedTuple):
    """Mean posterior variance of an unmeasured cell, and of an effect with an unmeasured end."""

    cell: float
    effect: float


def typical_share(observed: int, size: int) -> float:
    """Return the share of the typical variance that is added, for observed cells out of `size`."""
    grown = float(np.clip((observed - SHARE_FROM) / (SHARE_UNTIL - SHARE_FROM), 0.0, 1.0))
    return SHARE * grown + 4 * max(0.0, observed / size - MOSTLY_MEASURED)


def half_width(variance: FloatArray, added: float = 0.0) -> FloatArray:
    """Return half the width of the 90 % interval of quantities with this posterior variance.

    Args:
        variance: Posterior variances.
        added: Variance added to each of them.
    """
    found: FloatArray = QUANTILE * np.sqrt(np.maximum(variance, 0.0) + added)
    return found
