"""A research state: competing hypotheses, the arms that could tell them apart, and a budget."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import fsum
from typing import TYPE_CHECKING

import numpy as np

from outlay.designs.costs import Design, Limit, LinearCost, TableCost
from outlay.designs.outcomes import LARGEST_MEAN, GridOutcomes, Outcomes, is_mean
from outlay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

MOST_SEEDS = 1000
_PRIOR_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchState:
    """What is asked, what may explain it, what can be run, and what may be spent.

    Attributes:
        hypotheses: Names of the competing explanations, at least two.
        prior: Probability of each; they sum to 1 within 1e-9.
        arms: Names of the interventions, at least one.
        signatures: Mean outcome of arm j if hypothesis h holds, `signatures[h][j]`. In the paper
            1 if the arm removes the mechanism, else 0.
        limits: The resources; information is divided by the cost in the first one, and a design
            is affordable if it fits all of them.
        seeds: Fewest and most seeds of a design, both allowed.
        outcomes: What is observed around the mean.
        question: What is asked, in words.
        observations: What was seen so far, in words.
    """

    hypotheses: tuple[str, ...]
    prior: tuple[float, ...]
    arms: tuple[str, ...]
    signatures: tuple[tuple[float, ...], ...]
    limits: tuple[Limit, ...]
    seeds: tuple[int, int] = (2, 12)
    outcomes: Outcomes = field(default_factory=GridOutcomes)
    question: str = ""
    observations: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_names("hypotheses", self.hypotheses, 2)
        _check_names("arms", self.arms, 1)
        _check_prior(self.prior, len(self.hypotheses))
        _check_signatures(self)
        low, high = self.seeds
        if not 1 <= low <= high <= MOST_SEEDS:
            raise InputError(
                f"seeds: found {low} to {high}, allowed: 1 to {MOST_SEEDS}, the fewest first"
            )
        _check_limits(self)

    @property
    def seed_range(self) -> range:
        """Every allowed number of seeds."""
        return range(self.seeds[0], self.seeds[1] + 1)

    @property
    def means(self) -> NDArray[np.float64]:
        """The signatures as an array, shape (hypotheses, arms)."""
        return np.array(self.signatures, dtype=np.float64)


def _check_names(key: str, names: tuple[str, ...], least: int) -> None:
    if len(names) < least:
        raise InputError(f"{key}: found {len(names)}, allowed: at least {least}")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(f"{key}: {repeated[0]!r} is named twice; give each its own name")


def _check_prior(prior: tuple[float, ...], hypotheses: int) -> None:
    if len(prior) != hypotheses:
        raise InputError(
            f"prior: found {len(prior)} numbers, allowed: {hypotheses}, one for each hypothesis"
        )
    if not all(0 <= p <= 1 for p in prior):
        raise InputError(f"prior: found {prior}, allowed: numbers from 0 to 1")
    excess = fsum(prior) - 1
    if abs(excess) > _PRIOR_TOLERANCE:
        side = "above" if excess > 0 else "below"
        raise InputError(
            f"prior: sums to {fsum(prior):.10g}, {abs(excess):.3g} {side} 1; divide each by "
            "the sum, or in a file leave all out if they are equal"
        )


def _check_signatures(state: ResearchState) -> None:
    if len(state.signatures) != len(state.hypotheses):
        raise InputError(
            f"signatures: found {len(state.signatures)} rows, allowed: {len(state.hypotheses)}, "
            "one for each hypothesis"
        )
    for name, row in zip(state.hypotheses, state.signatures, strict=True):
        if len(row) != len(state.arms) or not all(map(is_mean, row)):
            raise InputError(
                f"signatures: {name}: found {row}, allowed: {len(state.arms)} numbers within "
                f"{LARGEST_MEAN:g}, one for each arm"
            )
        _check_within_grid(state, name, row)


def _check_within_grid(state: ResearchState, name: str, row: tuple[float, ...]) -> None:
    """Refuse a mean beyond the outcomes, which the kernel would quietly pull to the grid's end."""
    if not isinstance(state.outcomes, GridOutcomes):
        return
    low, high = state.outcomes.values[0], state.outcomes.values[-1]
    for arm, mean in zip(state.arms, row, strict=True):
        if not low <= mean <= high:
            raise InputError(
                f"signatures: {name}: {arm}: found {mean:g}, allowed: {low:g} to {high:g}, where "
                'the outcomes lie; widen outcomes.values, or set outcomes.kind = "gaussian"'
            )


def _check_limits(state: ResearchState) -> None:
    if not state.limits:
        raise InputError("budget: found none, allowed: at least one resource with its cost rule")
    for limit in state.limits:
        cost = limit.cost
        if isinstance(cost, TableCost):
            for design in cost.prices:
                check_design(state, design)
        elif isinstance(cost.per_arm, tuple) and len(cost.per_arm) != len(state.arms):
            raise InputError(
                f"cost: per_arm: found {len(cost.per_arm)} numbers, allowed: one, or "
                f"{len(state.arms)}, one for each arm"
            )


def check_design(state: ResearchState, design: Design) -> None:
    """Raise `InputError` unless the design's arms and seeds exist in the state."""
    if not design.arms or list(design.arms) != sorted(set(design.arms)):
        raise InputError(f"arms: found {design.arms}, allowed: one or more, ascending, each once")
    for arm in design.arms:
        if not 0 <= arm < len(state.arms):
            raise InputError(f"arms: found {arm}, allowed: 0 to {len(state.arms) - 1}")
    low, high = state.seeds
    if not low <= design.seeds <= high:
        raise InputError(f"seeds: found {design.seeds}, allowed: {low} to {high}")


def arm_index(state: ResearchState, name: str) -> int:
    """Return the index of the arm with this name.

    Raises:
        InputError: There is no such arm; the message names those that exist.
    """
    if name not in state.arms:
        raise InputError(f"arm: found {name!r}, allowed: {', '.join(state.arms)}")
    return state.arms.index(name)


def design_of(state: ResearchState, arms: Iterable[str], seeds: int) -> Design:
    """Return the design with the arms of these names, each once and in the state's order.

    Raises:
        InputError: There is no such arm, or the seeds are out of range.
    """
    design = Design(tuple(sorted({arm_index(state, arm) for arm in arms})), seeds)
    check_design(state, design)
    return design


def target_arm(state: ResearchState) -> int:
    """Return the arm of the most probable hypothesis: the first with its largest mean.

    Ties between hypotheses go to the first (`argmax`).
    """
    likeliest = max(range(len(state.prior)), key=lambda h: state.prior[h])
    means = state.signatures[likeliest]
    return max(range(len(means)), key=lambda j: means[j])


def paper_limit(budget: float) -> Limit:
    """Return the paper's resource (Eq. 3): 1 + 0.6 |A| + 0.35 n within a budget."""
    return Limit(budget=budget, cost=LinearCost())
