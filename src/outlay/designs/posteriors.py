"""What to believe after an outcome has been seen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from outlay.designs.catalogue import paid
from outlay.designs.outcomes import GaussianOutcomes, GridOutcomes, grid_likelihood, noise_after
from outlay.designs.states import check_design
from outlay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from outlay.designs.costs import Design
    from outlay.designs.states import ResearchState

_GRID_TOLERANCE = 1e-9


def posterior(
    state: ResearchState, design: Design, outcome: Sequence[float]
) -> NDArray[np.float64]:
    """Return p(hypothesis | outcome), shape (H,), summing to 1.

    Args:
        state: Hypotheses, prior and outcomes.
        design: What was run.
        outcome: One number for each arm of the design, in its order.

    Raises:
        InputError: Another number of outcomes, an outcome off the grid, or one that no hypothesis
            can produce.
    """
    check_design(state, design)
    if len(outcome) != len(design.arms):
        raise InputError(
            f"outcome: found {len(outcome)} numbers, allowed: {len(design.arms)}, one for each arm"
        )
    with np.errstate(divide="ignore"):
        logs = np.log(np.array(state.prior)) + _log_likelihood(state, design, outcome)
    top = float(logs.max())
    if top == -np.inf:
        raise InputError(f"outcome: found {list(outcome)}, which no hypothesis can produce")
    weights = np.exp(logs - top)
    return np.asarray(weights / weights.sum())


def updated(state: ResearchState, design: Design, outcome: Sequence[float]) -> ResearchState:
    """Return the state with the posterior in place of the prior; errors as in `posterior`."""
    belief = posterior(state, design, outcome)
    return replace(state, prior=tuple(float(p) for p in belief))


def observed(state: ResearchState, design: Design, outcome: Sequence[float]) -> ResearchState:
    """Return the state after an experiment, ready to plan the next one.

    The posterior is its prior, the outcome is its last observation, and every budget is what the
    design's cost leaves of it, at least 0. Errors as in `posterior`.
    """
    after = paid(updated(state, design, outcome), design)
    shown = ", ".join(
        f"{state.arms[arm]} {value:g}" for arm, value in zip(design.arms, outcome, strict=True)
    )
    seen = f"with {design.seeds} seeds: {shown}"
    return replace(after, observations=(*state.observations, seen))


def _log_likelihood(
    state: ResearchState, design: Design, outcome: Sequence[float]
) -> NDArray[np.float64]:
    """Return ln p(outcome | h) up to a constant, shape (H,)."""
    means = state.means[:, list(design.arms)]
    sd = float(noise_after(state.outcomes.noise, design.seeds))
    if isinstance(state.outcomes, GaussianOutcomes):
        seen = np.asarray(outcome, dtype=np.float64)
        if not np.isfinite(seen).all():
            raise InputError(f"outcome: found {list(outcome)}, allowed: finite numbers")
        return np.asarray(-0.5 * np.square((seen - means) / sd).sum(axis=1))
    places = [_place(state.outcomes, value) for value in outcome]
    likelihood = grid_likelihood(means, state.outcomes.values, sd)
    return np.asarray(np.log(likelihood[:, range(len(places)), places]).sum(axis=1))


def _place(outcomes: GridOutcomes, value: float) -> int:
    """Return the index of an outcome on the grid."""
    for index, allowed in enumerate(outcomes.values):
        if abs(value - allowed) <= _GRID_TOLERANCE:
            return index
    grid = ", ".join(f"{allowed:g}" for allowed in outcomes.values)
    raise InputError(
        f"outcome: found {value:g}, allowed: {grid}; give the nearest of these, or name finer "
        'outcomes.values, or set outcomes.kind = "gaussian", which takes any number'
    )
