"""Which models are plausible, given what was measured: relevances, gates and noise.

Small spaces enumerate every combination of relevances; larger ones start from a seeded sample and
improve it by changing one factor at a time. Gates come from exact ties between measurements.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from outlay.surfaces.mixture import (
    Evidence,
    Gate,
    Gates,
    Models,
    Observations,
    Posterior,
    average,
    effective,
    evidence,
)

if TYPE_CHECKING:
    from outlay.surfaces.cube import FloatArray, IntArray
    from outlay.surfaces.space import Space


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Constants of the default method, chosen on tables that no reported figure uses.

    Attributes:
        correlations: Grid for the correlation of two levels of a factor: relevant, partly, inert.
        nugget: Relative variance that stands for rounding where measurements are exact.
        noise_nuggets: Grid for the relative noise variance where they are noisy.
        gate_prior: Prior odds of one gate.
        tie_evidence: Log odds that one exact tie gives to a gate that explains it; ties also
            come about without a gate where the metric takes few values.
        tie: Difference, as a share of the range, up to which two values are equal.
        enumerated: Largest number of relevance combinations that is enumerated.
        sampled: Number of combinations that a larger space starts from.
        rounds: Rounds of improvement there.
        kept_gates: Sets of gates that are kept in each round of the search for them.
        kept_models: Best models that new sets of gates are tried with.
    """

    correlations: tuple[float, ...] = (0.1, 0.8, 0.99)
    nugget: float = 1e-6
    noise_nuggets: tuple[float, ...] = (1e-3, 0.03, 0.3)
    gate_prior: float = 0.02
    tie_evidence: float = 3.0
    tie: float = 1e-9
    enumerated: int = 729
    sampled: int = 240
    rounds: int = 3
    kept_gates: int = 8
    kept_models: int = 60


DEFAULTS = Settings()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Beliefs:
    """Plausible models with their evidence, on standardised values.

    Attributes:
        groups: Models with the same gates, and their evidence.
        seen: Observations with values minus `centre`, divided by `spread`.
        centre: Mean of the measured values.
        spread: Range of the measured values, 1 if they are all equal.
    """

    groups: tuple[tuple[Models, Evidence], ...]
    seen: Observations
    centre: float
    spread: float

    def posterior(self, rows: IntArray) -> Posterior:
        """Return mean and covariance of the surface at rows of levels, in units of the metric."""
        found = average(self.groups, self.seen, rows)
        square = self.spread**2
        return Posterior(
            self.centre + self.spread * found.mean,
            square * found.covariance,
            square * found.noise,
        )

    def gates(self) -> dict[Gates, float]:
        """Return the posterior probability of each kept set of gates."""
        totals = {
            models.gates: np.logaddexp.reduce(found.log_weight) for models, found in self.groups
        }
        whole = np.logaddexp.reduce(list(totals.values()))
        return {gates: float(np.exp(total - whole)) for gates, total in totals.items()}


def believe(
    space: Space,
    seen: Observations,
    rng: np.random.Generator,
    *,
    noisy: bool = False,
    settings: Settings = DEFAULTS,
) -> Beliefs:
    """Return the plausible models after at least one observation.

    Args:
        space: Factors and levels.
        seen: What was measured.
        rng: Used only where the combinations are too many to enumerate.
        noisy: Whether measurements carry noise; then equal values say nothing about gates.
        settings: Constants.
    """
    centre = float(seen.values.mean())
    spread = float(np.ptp(seen.values)) or 1.0
    scaled = Observations(
        rows=seen.rows, values=(seen.values - centre) / spread, repeats=seen.repeats
    )
    models = _relevances(space, scaled, rng, noisy, settings)
    groups = [(models, evidence(models, scaled))]
    if not noisy:
        groups = _with_gates(groups[0], scaled, settings)
    return Beliefs(groups=tuple(groups), seen=scaled, centre=centre, spread=spread)


def _relevances(
    space: Space,
    seen: Observations,
    rng: np.random.Generator,
    noisy: bool,
    settings: Settings,
) -> Models:
    nuggets = settings.noise_nuggets if noisy else (settings.nugget,)
    grid = np.log(settings.correlations)
    if len(grid) ** space.d <= settings.enumerated:
        levels = np.array(list(product(range(len(grid)), repeat=space.d)))
        return _models(grid, levels, nuggets)
    levels = rng.integers(0, len(grid), (settings.sampled, space.d))
    for _ in range(settings.rounds):
        models = _models(grid, levels, nuggets)
        weight = evidence(models, seen).log_weight.reshape(len(nuggets), -1).max(axis=0)
        best = levels[np.argsort(-weight)[: settings.sampled // (2 * space.d)]]
        levels = np.unique(np.concatenate([levels, _neighbours(best, len(grid))]), axis=0)
    return _models(grid, levels, nuggets)


def _models(grid: FloatArray, levels: IntArray, nuggets: tuple[float, ...]) -> Models:
    count = len(levels)
    return Models(
        log_correlation=np.tile(grid[levels], (len(nuggets), 1)),
        nugget=np.repeat(nuggets, count),
        log_prior=np.zeros(count * len(nuggets)),
        gates=(),
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


def _with_gates(
    plain: tuple[Models, Evidence], seen: Observations, settings: Settings
) -> list[tuple[Models, Evidence]]:
    """Return the plain models and those of the best sets of gates that the ties suggest."""
    models, found = plain
    best = np.argsort(-found.log_weight)[: settings.kept_models]
    tried: dict[Gates, tuple[Models, Evidence]] = {(): plain}
    frontier: list[Gates] = [()]
    while frontier:
        grown = {
            tuple(sorted((*gates, gate)))
            for gates in frontier
            for gate in candidate_gates(seen, gates, settings.tie)
        }
        for gates in sorted(grown - tried.keys()):
            gated = Models(
                log_correlation=models.log_correlation[best],
                nugget=models.nugget[best],
                log_prior=models.log_prior[best] + _gate_log_prior(gates, seen, settings),
                gates=gates,
            )
            tried[gates] = gated, evidence(gated, seen)
        ranked = sorted(tried, key=lambda gates: -tried[gates][1].log_weight.max())
        frontier = [gates for gates in ranked[: settings.kept_gates] if gates in grown]
    return [tried[gates] for gates in ranked[: settings.kept_gates]]


def _gate_log_prior(gates: Gates, seen: Observations, settings: Settings) -> float:
    """Return the log prior of a set of gates, less what exact ties would count above their due.

    An observation that equals its alias up to the nugget raises the marginal likelihood by
    `-log(2 nugget) / 2`, as if a tie were impossible without the gate.
    """
    distinct = len(np.unique(effective(seen.rows, gates), axis=0))
    excess = -0.5 * np.log(2 * settings.nugget) - settings.tie_evidence
    return float(len(gates) * np.log(settings.gate_prior) - (len(seen.rows) - distinct) * excess)


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
    for i in range(rows.shape[1]):
        pairs = np.flatnonzero(factor == i)
        if not tied[pairs].any():
            continue
        backgrounds = rows[first[pairs]]
        if tied[pairs].all() and len(pairs) > 1:
            found.append(Gate(-1, 0, i))
        for j in range(rows.shape[1]):
            for level in np.unique(backgrounds[:, j]) if j != i else ():
                inside = tied[pairs][backgrounds[:, j] == level]
                if inside.all():
                    found.append(Gate(j, int(level), i))
    return [gate for gate in found if gate not in gates]
