"""Intervals of predictions that cover as often as they say.

A model that is sure of a factor's relevance can be wrong about single cells, so a share of the
typical variance is added to each: more where little is left to measure, as that is what the models
were surest of. The multiple of the resulting standard deviation grows over the first observations:
the first few tell the models too little to be overconfident. The constants were chosen for 90 %
coverage of the effects with an unmeasured end on tables that no reported figure uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from outlay.surfaces.cube import FloatArray

FIRST, LATER = 1.1, 1.55
NORMAL = 1.645
FROM, UNTIL = 6, 10
SHARE = 0.55
MOSTLY_MEASURED = 0.65
# Of the variance added to one conditional effect, per unit of weight in a mean over many cells.
SUM_SHARE = 0.2


class Typical(NamedTuple):
    """Mean posterior variance of an unmeasured cell, and of an effect with an unmeasured end."""

    cell: float
    effect: float


def typical_share(observed: int, size: int) -> float:
    """Return the share of the typical variance that is added, for observed cells out of `size`."""
    return SHARE + 4 * max(0.0, observed / size - MOSTLY_MEASURED)


def half_width(variance: FloatArray, added: float, observed: int) -> FloatArray:
    """Return half the width of the 90 % interval of quantities with this posterior variance.

    Args:
        variance: Posterior variances of what does not rest on measurements alone.
        added: Variance added to each.
        observed: Number of measured cells.
    """
    grown = float(np.clip((observed - FROM) / (UNTIL - FROM), 0.0, 1.0))
    multiple = FIRST + (LATER - FIRST) * grown
    found: FloatArray = multiple * np.sqrt(np.maximum(variance, 0.0) + added)
    return found
