"""Which attempts are worth confirming."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outlay.coordination.noise import Noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is known of the champion, oriented so that higher is better.

    Attributes:
        mean: Mean of all its evaluations on seeds other than the selection seeds.
        selection: Its own score on the selection seeds; `None` if it has none.
    """

    mean: float
    selection: float | None = None


def is_challenger(score: float, champion: Standing, noise: Noise) -> bool:
    """Return whether a selection score is good enough to be confirmed against the champion.

    Args:
        score: Mean over the selection seeds, oriented.
        champion: The champion of this moment.
        noise: Pooled noise so far.
    """
    return score > champion.mean
