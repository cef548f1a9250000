"""Whether a challenger is better than the incumbent, or only luckier.

All values are oriented: higher is better. Every rule comes down to a half-width: a challenger is
promoted once the mean difference lies above it.

The default rule is a group-sequential t test on paired differences with one error budget for the
whole run. `docs/confirmation.md` has its derivation, its assumptions and its measured rates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from outlay.coordination.estimates import Interval, estimate, paired_difference, t_upper
from outlay.coordination.noise import squared_deviations

if TYPE_CHECKING:
    from outlay.coordination.noise import Noise

__all__ = [
    "Band",
    "Evidence",
    "Interval",
    "Judgement",
    "Rule",
    "Sequential",
    "estimate",
    "judge",
    "paired_difference",
]

Verdict = Literal["promote", "reject", "continue"]

_FIRST_LOOK = 2  # one pair says nothing about its own spread
_EXPONENT = 5.0  # late looks get most of a challenger's share: early ones lean on the pooled noise
_PATIENCE = 30  # the larger, the more of the error rate is kept for late challengers
_DESIGN_GAIN = math.sqrt(2)  # in sds of a difference: two units where seeds do not matter
_MISS_RATE = 0.04  # probability that such a gain is given up before the last pair
_MISS_EXPONENT = 0.5  # below 1: give up early, where most challengers can be told
_PRIOR_DF = 8  # pooled noise weighs as much as this many pairs more of the challenger's own


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """The testbed's rule: a fixed number of seeds and a band around the incumbent.

    With a carried incumbent the band counts the error of the challenger alone, as published; with
    a remeasured one it counts the error of both.

    Attributes:
        factor: Width of the band in standard errors.
        seeds: Evaluations of the challenger before it is judged.
        scale: Noise scale of one evaluation; `None` takes the pooled standard deviation.
    """

    factor: float = 2.0
    seeds: int = 3
    scale: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequential:
    """The default rule: pair after pair of fresh seeds, with a stated rate for the whole run.

    Attributes:
        error_rate: Probability of any false promotion in a run, in (0, 0.5).
        max_pairs: Pairs after which a challenger is rejected, at least 2.
    """

    error_rate: float = 0.05
    max_pairs: int = 12


Rule = Band | Sequential


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was measured for one challenger so far.

    Attributes:
        challenger: Its values on fresh seeds.
        incumbent: Remeasured: the incumbent's values on the same seeds. Carried: one number,
            the metric it was promoted with, taken as exact.
        noise: Pooled noise of everything measured before this challenger.
        source: Which of the two the incumbent is.
        index: Number of earlier challengers of the run that were rejected.
    """

    challenger: tuple[float, ...]
    incumbent: tuple[float, ...]
    noise: Noise
    source: Literal["carried", "remeasured"] = "remeasured"
    index: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What follows from the evidence.

    Attributes:
        verdict: `continue` asks for one more pair.
        estimate: Mean difference, challenger minus incumbent.
        low: `estimate` minus the rule's half-width; above 0 exactly if promoted. Minus infinity
            where the rule does not promote yet.
        high: `estimate` plus the rule's half-width.
        pairs: Evaluations of the challenger that were looked at.
    """

    verdict: Verdict
    estimate: float
    low: float
    high: float
    pairs: int


def judge(evidence: Evidence, rule: Rule) -> Judgement:
    """Return what the rule says about a challenger, given all its pairs so far.

    Raises:
        ValueError: No pair, more pairs than the rule takes, numbers of values that do not pair,
            or a band without a scale and without pooled noise.
    """
    if not evidence.challenger:
        raise ValueError("challenger: found no value, allowed: one or more")
    if isinstance(rule, Band):
        reading = _judge_band(evidence, rule)
    else:
        reading = _judge_sequential(evidence, rule)
    return Judgement(
        verdict=reading.verdict,
        estimate=reading.mean,
        low=reading.mean - reading.half,
        high=reading.mean + reading.half,
        pairs=len(evidence.challenger),
    )


class _Reading(NamedTuple):
    mean: float
    half: float
    verdict: Verdict


def _judge_band(evidence: Evidence, rule: Band) -> _Reading:
    n = len(evidence.challenger)
    scale = evidence.noise.sd if rule.scale is None else rule.scale
    if scale is None:
        raise ValueError("noise: found none, allowed: a scale, or one group of two values")
    sides = 1 if evidence.source == "carried" else 2
    mean = sum(evidence.challenger) / n - sum(evidence.incumbent) / len(evidence.incumbent)
    half = rule.factor * scale * math.sqrt(sides) / math.sqrt(n)
    if n < rule.seeds:
        return _Reading(mean, half, "continue")
    return _Reading(mean, half, "promote" if mean > max(half, 0.0) else "reject")


def _judge_sequential(evidence: Evidence, rule: Sequential) -> _Reading:
    differences = _differences(evidence)
    n = len(differences)
    if n > rule.max_pairs:
        raise ValueError(f"challenger: found {n} values, allowed: at most {rule.max_pairs}")
    mean = math.fsum(differences) / n
    spread = _spread(differences, evidence)
    if spread is None:
        return _Reading(mean, math.inf, "continue")
    half = _half_width(spread, n, evidence.index, rule)
    if mean > half:
        return _Reading(mean, half, "promote")
    hopeless = mean <= _lower_bound(n, rule.max_pairs) * spread.sd
    return _Reading(mean, half, "reject" if hopeless or n == rule.max_pairs else "continue")


def _differences(evidence: Evidence) -> list[float]:
    if evidence.source == "remeasured":
        return [a - b for a, b in zip(evidence.challenger, evidence.incumbent, strict=True)]
    (carried,) = evidence.incumbent
    return [value - carried for value in evidence.challenger]


def _half_width(spread: _Spread, n: int, index: int, rule: Sequential) -> float:
    """Return the half-width of the repeated confidence interval at look n (0 without noise)."""
    from outlay.coordination.boundaries import nominal_levels

    levels = nominal_levels(
        rule.error_rate * _share(index), rule.max_pairs, _EXPONENT, _FIRST_LOOK
    )
    if not levels[n - 1]:
        return math.inf
    return t_upper(levels[n - 1], spread.df) * spread.sd / math.sqrt(n)


def _share(index: int) -> float:
    """Return the part of the run's error rate that a challenger gets; all parts add up to 1.

    A promotion leaves the index as it is: a share is used up only by a rejection, as in the
    fallback procedure (Tian & Ramdas 2021, "Online control of the familywise error rate").
    """
    place = index + _PATIENCE
    return 2 * _PATIENCE * (_PATIENCE + 1) / (place * (place + 1) * (place + 2))


def _lower_bound(n: int, looks: int) -> float:
    """Return the mean difference, in its own sds, at or below which going on is hopeless.

    Bounds spend `_MISS_RATE` at the design gain. They take no part in the promotion boundary,
    so ignoring one costs evaluations but no validity.
    """
    from scipy.special import ndtri

    from outlay.coordination.boundaries import nominal_levels

    level = nominal_levels(_MISS_RATE, looks, _MISS_EXPONENT)[n - 1]
    return float(_DESIGN_GAIN + ndtri(level) / math.sqrt(n))


class _Spread(NamedTuple):
    """Standard deviation of one difference, and the degrees of freedom behind it."""

    sd: float
    df: int


def _spread(differences: list[float], evidence: Evidence) -> _Spread | None:
    """Return the moderated spread: pooled noise and the challenger's own (Smyth 2004).

    Own spread counts so that a challenger that is noisier than what was pooled, or an outlier,
    raises its own hurdle.
    """
    paired = evidence.source == "remeasured"
    prior = evidence.noise.of_pairs() if paired else evidence.noise.of_singles()
    prior_df = min(prior.df, _PRIOR_DF)
    df = prior_df + len(differences) - 1
    if not df:
        return None
    squares = prior_df * prior.variance + squared_deviations(differences)
    return _Spread(math.sqrt(squares / df), df)
