"""Which attempts are worth confirming."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outlay.coordination.noise import Noise

_MARGIN = 0.25  # sds; a smaller gain is out of a confirmation's reach, and every second null is


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is known of the champion, oriented so that higher is better.

    Attributes:
        mean: Mean of all its evaluations on seeds other than the selection seeds.
        selection: Its own score on the selection seeds; `None` if it has none or if the noise is
            the machine's.
    """

    mean: float
    selection: float | None = None


def is_challenger(score: float, champion: Standing, noise: Noise) -> bool:
    """Return whether a selection score is good enough to be confirmed against the champion.

    The score is compared with the champion's mean, corrected for what the selection seeds did to
    the champion itself as far as pairs have shown that seeds act on both alike (a control
    variate). What is left must exceed a quarter of its standard deviation.

    Args:
        score: Mean over the selection seeds, oriented.
        champion: The champion of this moment.
        noise: Pooled noise so far; nothing known means no correction and no margin.
    """
    sd = noise.sd or 0.0
    shared = noise.correlation if champion.selection is not None else 0.0
    luck = 0.0 if champion.selection is None else champion.selection - champion.mean
    gain = score - champion.mean - shared * luck
    return gain > _MARGIN * sd * math.sqrt(1 - shared**2)
