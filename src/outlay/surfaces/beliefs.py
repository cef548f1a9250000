"""Which models are plausible, given what was measured: relevances, gates, noise, earlier surfaces.

Small spaces enumerate every combination of relevances; larger ones start from a seeded sample and
improve it by changing one factor at a time. Gates come from exact ties between measurements.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from outlay.surfaces.equalities import Gate, Gates, effective
from outlay.surfaces.mixture import Evidence, Models, Observations, Posterior, average, evidence

if TYPE_CHECKING:
    from outlay.surfaces.cube import BoolArray, FloatArray, IntArray
    from outlay.surfaces.earlier import Earlier
    from outlay.surfaces.space import Space

Group = tuple[Models, Evidence]

SMALLEST_SPREAD = 1e-70
"""Range of values below which they count as equal: its fourth power would vanish."""

DECIMALS = 8
"""Of log weights that rounding leaves alone."""

CHUNK = 128
"""Rows that readers ask for at once, at most, so that each sees the same models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Constants of the default method, chosen on tables that no reported figure uses.

    Attributes:
        correlations: Grid for the correlation of two levels of a factor: relevant, partly, inert.
        fades: Grid for the amplitude that is left with every factor on, in predictions.
        fade_cost: Log prior that a fading model pays per observation. Purchases gather near the
            default, so late evidence for fading says more about where we looked.
        trusts: Grid for the share of the prior variance that follows earlier surfaces.
        nugget: Relative variance that stands for rounding where measurements are exact.
        noise_nuggets: Grid for the relative noise variance where they are noisy and nothing else
            tells how much.
        scales: Grid for the surface's variance, as a share of the squared range, where something
            does; the relative noise variances follow.
        gate_prior: Prior odds of one gate.
        tie_evidence: Log odds that one exact tie gives to a gate that explains it; ties also
            come about without a gate where the metric takes few values.
        tie: Difference, as a share of the range, up to which two values are equal.
        enumerated: Largest number of relevance combinations that is enumerated.
        sampled: Number of combinations that a larger space starts from.
        rounds: Rounds of improvement there.
        tried_gates: Sets of gates that are tried in each round of the search for them: those
            that explain most ties.
        kept_gates: Sets of gates that are kept.
        kept_models: Best models that new sets of gates and fading are tried with.
    """

    correlations: tuple[float, ...] = (0.1, 0.8, 0.99)
    fades: tuple[float, ...] = (0.4, 0.13, 0.03)
    fade_cost: float = 0.3
    trusts: tuple[float, ...] = (0.0, 0.5, 0.9, 0.99)
    nugget: float = 1e-6
    noise_nuggets: tuple[float, ...] = (1e-3, 0.03, 0.3)
    scales: tuple[float, ...] = (0.04, 0.2, 1.0, 5.0, 25.0)
    gate_prior: float = 0.02
    tie_evidence: float = 2.0
    tie: float = 1e-9
    enumerated: int = 729
    sampled: int = 240
    rounds: int = 3
    tried_gates: int = 12
    kept_gates: int = 6
    kept_models: int = 40


DEFAULTS = Settings()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Assumptions:
    """What is taken as given before anything is measured.

    Attributes:
        space: Factors and levels.
        noisy: Whether measurements carry noise; then equal values say nothing about gates.
        gates: Declared equalities.
        earlier: Earlier surfaces of the same workflow.
        settings: Constants.
    """

    space: Space
    noisy: bool = False
    gates: Gates = ()
    earlier: Earlier | None = None
    settings: Settings = DEFAULTS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Beliefs:
    """Plausible models with their evidence, on standardised values.

    Attributes:
        groups: Models with the same gates, and their evidence.
        seen: Observations with values minus `centre`, divided by `spread`.
        centre: Mean of the measured values.
        spread: Range of the measured values, 1 if they are all equal.
        size: Number of configurations.
    """

    groups: tuple[Group, ...]
    seen: Observations
    centre: float
    spread: float
    size: int

    def posterior(self, rows: IntArray) -> Posterior:
        """Return mean and covariance of the surface at rows of levels, in units of the metric."""
        found = average(self.groups, self.seen, rows, min(self.size, CHUNK))
        square = self.spread**2
        return Posterior(
            self.centre + self.spread * found.mean,
            square * found.covariance,
            square * found.noise,
        )

    def gates(self) -> dict[Gates, float]:
        """Return the posterior probability of each set of gates."""
        totals: dict[Gates, float] = {}
        for models, found in self.groups:
            weight = float(np.logaddexp.reduce(found.log_weight))
            totals[models.gates] = np.logaddexp(totals.get(models.gates, -np.inf), weight)
        whole = np.logaddexp.reduce(list(totals.values()))
        return {gates: float(np.exp(total - whole)) for gates, total in totals.items()}


def believe(
    given: Assumptions, seen: Observations, rng: np.random.Generator, *, fading: bool
) -> Beliefs:
    """Return the plausible models after at least one observation.

    Args:
        given: What is taken as given.
        seen: What was measured.
        rng: Used only where the combinations are too many to enumerate.
        fading: Whether to consider effects that fade away from the default: better for
            predictions, worse for purchases.
    """
    centre = float(seen.values.mean())
    spread = float(np.ptp(seen.values))
    if spread < SMALLEST_SPREAD:
        spread = 1.0
    scaled = replace(
        seen,
        values=(seen.values - centre) / spread,
        noise_squares=seen.noise_squares / spread**2,
    )
    models = _relevances(given, scaled, rng)
    plain = models, evidence(models, scaled)
    groups = [plain]
    if not given.noisy:
        groups = _with_gates(plain, scaled, given.settings)
    if fading:
        groups += [_with_fading(group, scaled, given.settings) for group in groups]
    return Beliefs(
        groups=tuple(groups), seen=scaled, centre=centre, spread=spread, size=given.space.size
    )


def _relevances(given: Assumptions, seen: Observations, rng: np.random.Generator) -> Models:
    settings = given.settings
    grid = np.log(settings.correlations)
    nuggets = _nuggets(given, seen)
    if len(grid) ** given.space.d <= settings.enumerated:
        levels = np.array(list(product(range(len(grid)), repeat=given.space.d)))
        return _models(given, levels, nuggets)
    levels = rng.integers(0, len(grid), (settings.sampled, given.space.d))
    for _ in range(settings.rounds):
        weight = evidence(_models(given, levels, nuggets), seen).log_weight
        best = levels[np.argsort(-weight.reshape(-1, len(levels)).max(axis=0))]
        moved = _neighbours(best[: max(1, settings.sampled // (2 * given.space.d))], len(grid))
        levels = np.unique(np.concatenate([best[: settings.sampled], moved]), axis=0)
    return _models(given, levels, nuggets)


def _nuggets(given: Assumptions, seen: Observations) -> tuple[float, ...]:
    """Return the noise variances, relative to the scale, that are plausible."""
    settings = given.settings
    if not given.noisy:
        return (settings.nugget,)
    if not seen.noise_df:
        return settings.noise_nuggets
    variance = seen.noise_squares / seen.noise_df
    return tuple(sorted({max(variance / scale, settings.nugget) for scale in settings.scales}))


def _models(given: Assumptions, levels: IntArray, nuggets: tuple[float, ...]) -> Models:
    """Return the models of every combination of relevance levels, nugget and trust."""
    settings, count = given.settings, len(levels)
    trusts = settings.trusts if given.earlier else (0.0,)
    pairs = np.array(list(product(nuggets, trusts)))
    plain = Models(
        log_correlation=np.log(settings.correlations)[levels],
        log_decay=np.zeros(count),
        trust=np.zeros(count),
        nugget=np.full(count, settings.nugget),
        log_prior=np.zeros(count),
        gates=given.gates,
    )
    log_prior = given.earlier.log_prior(plain) if given.earlier else plain.log_prior
    every = plain.pick(np.tile(np.arange(count), len(pairs)))
    return replace(
        every,
        nugget=np.repeat(pairs[:, 0], count),
        trust=np.repeat(pairs[:, 1], count),
        log_prior=np.tile(log_prior, len(pairs)),
        shapes=given.earlier.shapes if given.earlier else None,
    )


def _neighbours(levels: IntArray, count: int) -> IntArray:
    """Return all rows that differ from one of `levels` in one factor."""
    found = []
    for i in range(levels.shape[1]):
        for step in range(1, count):
            moved = levels.copy()
            moved[:, i] = (moved[:, i] + step) % count
            found.append(moved)
    return np.concatenate(found)


def _heaviest(log_weight: FloatArray, count: int) -> IntArray:
    """Return the positions of the `count` heaviest models; of equal ones, those that come first.

    Factors that the measurements do not tell apart tie up to rounding, which must not choose.
    """
    return np.argsort(-np.round(log_weight, DECIMALS), kind="stable")[:count]


def _with_fading(group: Group, seen: Observations, settings: Settings) -> Group:
    """Return the best models of a group with every degree of fading."""
    models, found = group
    best = _heaviest(found.log_weight, settings.kept_models)
    faded = models.pick(np.tile(best, len(settings.fades)))
    per_factor = np.log(settings.fades) / models.log_correlation.shape[1]
    faded = replace(
        faded,
        log_decay=np.repeat(per_factor, len(best)),
        log_prior=faded.log_prior - settings.fade_cost * len(seen.values),
    )
    return faded, evidence(faded, seen)


def _with_gates(plain: Group, seen: Observations, settings: Settings) -> list[Group]:
    """Return the plain models and those of the best sets of gates that the ties suggest."""
    models, found = plain
    heavy = _heaviest(found.log_weight, settings.kept_models)
    best = models.pick(heavy), Evidence(found.log_weight[heavy], found.scale[heavy])
    tried: dict[Gates, Group] = {models.gates: plain}
    frontier: list[Gates] = [models.gates]
    ranked = frontier
    while frontier:
        grown = {
            tuple(sorted((*gates, gate)))
            for gates in frontier
            for gate in candidate_gates(seen, gates, settings.tie)
        }
        new = sorted(grown - tried.keys(), key=lambda gates: (len(_distinct(gates, seen)), gates))
        for gates in new[: settings.tried_gates]:
            tried[gates] = _gated(best, gates, seen, settings)
        ranked = sorted(tried, key=lambda gates: -tried[gates][1].log_weight.max())
        ranked = ranked[: settings.kept_gates]
        frontier = [gates for gates in ranked if gates in grown]
    return [tried[gates] for gates in ranked]


def _gated(plain: Group, gates: Gates, seen: Observations, settings: Settings) -> Group:
    """Return models with a set of gates, weighed against the same models without it.

    Both are compared on what the gates leave distinct. Each observation that the gates explain
    away counts `tie_evidence`, however likely the plain models make its value: a tie is exact.
    """
    first = _distinct(gates, seen)
    distinct = replace(
        seen, rows=seen.rows[first], values=seen.values[first], repeats=seen.repeats[first]
    )
    models, found = plain
    density = np.logaddexp.reduce(found.log_weight)
    density -= np.logaddexp.reduce(evidence(models, distinct).log_weight)
    ties = len(seen.rows) - len(first)
    log_prior = len(gates) * np.log(settings.gate_prior) + ties * settings.tie_evidence + density
    gated = replace(models, log_prior=models.log_prior + log_prior, gates=gates)
    return gated, evidence(gated, distinct)


def _distinct(gates: Gates, seen: Observations) -> IntArray:
    """Return the positions of the observations that differ from all earlier ones under gates."""
    _, first = np.unique(effective(seen.rows, gates), axis=0, return_index=True)
    return np.sort(first)


def candidate_gates(seen: Observations, gates: Gates, tie: float) -> list[Gate]:
    """Return the further gates that at least one exact tie supports and nothing contradicts.

    Two observations that differ in one factor only (after the given gates) tie when their values
    are equal up to `tie` times the range; values must be standardised.
    """
    rows = effective(seen.rows, gates)
    differ = rows[:, None, :] != rows[None, :, :]
    first, second = np.nonzero(np.triu(differ.sum(axis=2) == 1, 1))
    factor = differ[first, second].argmax(axis=1)
    tied = np.abs(seen.values[first] - seen.values[second]) <= tie
    found = []
    for i in np.unique(factor[tied]):
        pairs = factor == i
        found += _gates_of(int(i), rows[first[pairs]], tied[pairs])
    return [gate for gate in found if gate not in gates]


def _gates_of(inactive: int, backgrounds: IntArray, tied: BoolArray) -> list[Gate]:
    """Return the gates of one factor whose pairs all tie, given the background of each pair."""
    found = [Gate(-1, 0, inactive)] if tied.all() and len(tied) > 1 else []
    for guard in range(backgrounds.shape[1]):
        for level in np.unique(backgrounds[:, guard]) if guard != inactive else ():
            if tied[backgrounds[:, guard] == level].all():
                found.append(Gate(guard, int(level), inactive))
    return found
