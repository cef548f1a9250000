"""Whether a challenger is better than the incumbent, or only luckier.

All values are oriented: higher is better. Every rule comes down to a half-width: a challenger is
promoted once the mean difference lies above it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from outlay.coordination.estimates import Interval, estimate, paired_difference, t_quantile
from outlay.coordination.noise import Noise, squared_deviations

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """The testbed's rule: a fixed number of seeds and a band around the incumbent.

    Attributes:
        factor: Width of the band in standard errors.
        seeds: Evaluations of the challenger before it is judged.
        scale: Noise scale of one evaluation; `None` takes the pooled estimate.
    """

    factor: float = 2.0
    seeds: int = 3
    scale: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequential:
    """The default rule: pair after pair of fresh seeds, with a stated rate for the whole run.

    Attributes:
        error_rate: Probability of any false promotion in a run, in (0, 1).
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
        index: Number of earlier challengers of the run whose last judgement says `spends`.
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
        low: `estimate` minus the rule's half-width; above 0 exactly if promoted.
        high: `estimate` plus the rule's half-width.
        pairs: Evaluations of the challenger that were looked at.
        spends: Whether this challenger uses up its index (count it into the next `index`).
    """

    verdict: Verdict
    estimate: float
    low: float
    high: float
    pairs: int
    spends: bool = False


def judge(evidence: Evidence, rule: Rule) -> Judgement:
    """Return what the rule says about a challenger, given all its pairs so far.

    Raises:
        ValueError: No pair, more pairs than the rule takes, or a carried incumbent that is not
            one number.
    """
    differences = _differences(evidence)
    if isinstance(rule, Band):
        return _judge_band(differences, evidence, rule)
    return _judge_sequential(differences, evidence, rule)


def _differences(evidence: Evidence) -> list[float]:
    if not evidence.challenger:
        raise ValueError("challenger: found no value, allowed: one or more")
    if evidence.source == "remeasured":
        return [a - b for a, b in zip(evidence.challenger, evidence.incumbent, strict=True)]
    (carried,) = evidence.incumbent
    return [value - carried for value in evidence.challenger]


def _judge_band(differences: list[float], evidence: Evidence, rule: Band) -> Judgement:
    n = len(differences)
    delta = _mean_difference(evidence)
    scale = rule.scale if rule.scale is not None else evidence.noise.sd
    if scale is None:
        raise ValueError("noise: found none, allowed: a scale or at least one repeated group")
    sides = 1 if evidence.source == "carried" else 2
    half = rule.factor * scale * math.sqrt(sides) / math.sqrt(n)
    verdict: Verdict = "continue"
    if n >= rule.seeds:
        verdict = "promote" if delta > half and delta > 0.0 else "reject"
    return Judgement(verdict=verdict, estimate=delta, low=delta - half, high=delta + half, pairs=n)


def _mean_difference(evidence: Evidence) -> float:
    challenger, incumbent = evidence.challenger, evidence.incumbent
    return sum(challenger) / len(challenger) - sum(incumbent) / len(incumbent)


def _judge_sequential(differences: list[float], evidence: Evidence, rule: Sequential) -> Judgement:
    n = len(differences)
    mean = math.fsum(differences) / n
    sides = 1 if evidence.source == "carried" else 2
    df = evidence.noise.df + n - 1
    level = rule.error_rate / ((evidence.index + 1) * (evidence.index + 2)) / rule.max_pairs
    half = math.inf
    if df:
        squares = sides * evidence.noise.sum_squares + squared_deviations(differences)
        half = t_quantile(1 - level, df) * math.sqrt(squares / df / n)
    verdict: Verdict = "continue"
    if mean > half:
        verdict = "promote"
    elif n >= rule.max_pairs or (n >= 2 and mean <= 0):
        verdict = "reject"
    return Judgement(
        verdict=verdict,
        estimate=mean,
        low=mean - half,
        high=mean + half,
        pairs=n,
        spends=verdict == "reject",
    )
