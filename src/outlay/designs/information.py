"""Expected information gain: how much an experiment would tell about the hypotheses, in nats."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from outlay.designs._disjoint import information_of_masses, information_of_one_set
from outlay.designs._gaussian import Estimate, gaussian_information
from outlay.designs._joint import information_of_one, information_of_sets
from outlay.designs.outcomes import (
    GaussianOutcomes,
    GridOutcomes,
    Outcomes,
    grid_likelihood,
    noise_after,
)
from outlay.designs.states import check_design
from outlay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from outlay.designs.costs import Design
    from outlay.designs.states import ResearchState

SAMPLES = 4096
"""Draws for each hypothesis where normal outcomes need Monte Carlo."""

_SEED = 5
_PAPER_GRID = GridOutcomes().values
_MOST_ARMS = {"disjoint": 16, "joint": 8, "gaussian": 4}


class InformationTable(NamedTuple):
    """Information of every arm set and number of seeds.

    Attributes:
        gain: Nats, shape (2^K, N), indexed by the bitmask of the arms and the place of the seeds.
        error: Half-width of the error, same shape; 0 where the sum is exact.
    """

    gain: NDArray[np.float64]
    error: NDArray[np.float64]


def entropy(probabilities: NDArray[np.float64]) -> float:
    """Return the entropy of a distribution, in nats."""
    kept = probabilities[probabilities > 0]
    return float(-(kept * np.log(kept)).sum())


def information(state: ResearchState, design: Design, *, samples: int = SAMPLES) -> Estimate:
    """Return the expected information gain of one design, Eq. 1 of the paper, in nats.

    Args:
        state: Hypotheses, prior, arms and outcomes.
        design: Arms and seeds, within the state's ranges.
        samples: Draws for each hypothesis, where normal outcomes need Monte Carlo.

    Returns:
        The value with its error; the error is 0 for outcomes on a grid (exact but for rounding).

    Raises:
        InputError: The design's arms or seeds do not exist in the state.
    """
    check_design(state, design)
    means = state.means[:, list(design.arms)]
    return _one(np.array(state.prior), means, design.seeds, state.outcomes, samples)


def _one(
    prior: NDArray[np.float64],
    means: NDArray[np.float64],
    seeds: int,
    outcomes: Outcomes,
    samples: int,
) -> Estimate:
    sd = float(noise_after(outcomes.noise, seeds))
    if isinstance(outcomes, GaussianOutcomes):
        return gaussian_information(prior, means, sd, np.random.default_rng(_SEED), samples)
    if outcomes.values == _PAPER_GRID and _is_disjoint(means):
        return Estimate(information_of_one_set(prior @ means, sd), 0.0)
    return Estimate(information_of_one(prior, grid_likelihood(means, outcomes.values, sd)), 0.0)


def is_enumerable(state: ResearchState) -> bool:
    """Return whether `information_table` is cheap: all sets of arms fit in about a second."""
    return len(state.arms) <= _MOST_ARMS[_method(state)]


def _method(state: ResearchState) -> str:
    if isinstance(state.outcomes, GaussianOutcomes):
        return "gaussian"
    paper_grid = state.outcomes.values == _PAPER_GRID
    return "disjoint" if paper_grid and _is_disjoint(state.means) else "joint"


def _is_disjoint(means: NDArray[np.float64]) -> bool:
    """Return whether the means are 0 or 1 and each hypothesis touches at most one arm."""
    return bool(np.isin(means, (0.0, 1.0)).all() and (means.sum(axis=1) <= 1).all())


def information_table(state: ResearchState, *, samples: int = SAMPLES) -> InformationTable:
    """Return the information of every design of a state.

    Raises:
        InputError: There are too many arms to list all sets; `search_designs` takes more.
    """
    if not is_enumerable(state):
        raise InputError(
            f"arms: found {len(state.arms)}, allowed: up to {_MOST_ARMS[_method(state)]} for a "
            "complete table; use search_designs"
        )
    prior = np.array(state.prior)
    if isinstance(state.outcomes, GaussianOutcomes):
        return _gaussian_table(state, prior, samples)
    sds = noise_after(state.outcomes.noise, list(state.seed_range))
    if _method(state) == "disjoint":
        gain = information_of_masses((prior @ state.means)[None], sds)[0]
    else:
        values = state.outcomes.values
        likelihoods = (grid_likelihood(state.means, values, float(sd)) for sd in sds)
        columns = [information_of_sets(prior, likelihood) for likelihood in likelihoods]
        gain = np.stack(columns, axis=1)
    return InformationTable(gain, np.zeros_like(gain))


def panel_information(states: Sequence[ResearchState]) -> NDArray[np.float64]:
    """Return the information of every design of many states at once, shape (S, 2^K, N).

    Raises:
        InputError: The states differ in arms, seeds or outcomes, a hypothesis touches two arms,
            or the outcomes are not the paper's grid.
    """
    first = states[0]
    alike = all(
        (len(s.arms), s.seeds, s.outcomes, _method(s))
        == (len(first.arms), first.seeds, first.outcomes, "disjoint")
        for s in states
    )
    if not alike:
        raise InputError("states: allowed: equal arms, seeds and outcomes, disjoint signatures")
    masses = np.array([s.prior for s in states])[:, None] @ np.array([s.means for s in states])
    sds = noise_after(first.outcomes.noise, list(first.seed_range))
    return information_of_masses(masses[:, 0], sds)


def _gaussian_table(
    state: ResearchState, prior: NDArray[np.float64], samples: int
) -> InformationTable:
    shape = 2 ** len(state.arms), len(state.seed_range)
    gain, error = np.zeros(shape), np.zeros(shape)
    for mask in range(1, shape[0]):
        chosen = state.means[:, [j for j in range(len(state.arms)) if mask >> j & 1]]
        for place, seeds in enumerate(state.seed_range):
            gain[mask, place], error[mask, place] = _one(
                prior, chosen, seeds, state.outcomes, samples
            )
    return InformationTable(gain, error)
