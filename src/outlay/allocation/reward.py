"""From a metric to a reward in [0, 1], on a scale that is fixed once per run."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outlay.task import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Reward:
    """Maps scores to rewards: `1 / (1 + exp(-sign (x - center) / scale))`, or the score itself.

    Attributes:
        identity: Whether the metric already is a reward in [0, 1].
        sign: +1 where larger scores are better, -1 where smaller are.
        center: Mean of the baseline, metric units.
        scale: Metric units, above 0.
    """

    identity: bool
    sign: float
    center: float
    scale: float

    def __call__(self, score: float) -> float:
        """Return the reward of a score in metric units, in [0, 1]."""
        if self.identity:
            oriented = score if self.sign > 0 else 1.0 - score
            return min(1.0, max(0.0, oriented))
        z = self.sign * (score - self.center) / self.scale
        return 1.0 / (1.0 + exp(-z)) if z > -700 else 0.0


def fix_scale(metric: Metric, center: float, spread: float) -> float:
    """Return the reward's scale in metric units, above 0.

    The task's `reward_scale`, else an eighth of the plausible range, else the largest of 5 % of
    the baseline `center`, three times its standard deviation `spread`, and 1e-9.
    """
    if metric.reward_scale is not None:
        return metric.reward_scale
    if metric.low is not None and metric.high is not None:
        return (metric.high - metric.low) / 8
    return max(0.05 * abs(center), 3 * spread, 1e-9)
