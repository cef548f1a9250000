"""Whether a proposed experiment is worth an attempt, before one is spent."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Literal, NamedTuple

from outlay.designs.catalogue import cost, fits
from outlay.designs.information import SAMPLES, information
from outlay.designs.searching import best_affordable
from outlay.designs.states import check_design
from outlay.designs.worth import NOTHING, is_settled
from outlay.errors import BudgetError

if TYPE_CHECKING:
    from outlay.designs.costs import Design
    from outlay.designs.states import ResearchState

LEAST_SHARE = 0.05
"""Least efficiency of a design that passes, as a share of the best affordable one's."""


class Verdict(NamedTuple):
    """What the gate says about a design.

    Attributes:
        passed: Whether an attempt may be spent on it.
        kind: Why.
        reason: In words, for whoever proposed the design; empty if it passed.
        saved: Cost that is not spent, in the first limit's unit; 0 if it passed.
    """

    passed: bool
    kind: Literal["passed", "unaffordable", "uninformative"]
    reason: str = ""
    saved: float = 0.0


def gate(
    state: ResearchState,
    design: Design,
    *,
    least_share: float = LEAST_SHARE,
    samples: int = SAMPLES,
) -> Verdict:
    """Return whether a design is worth an attempt under the present beliefs.

    It is sent back if it does not fit the budget, or if its information per cost is below a share
    of what the best affordable design has. A state in which nothing is left to know, or to spend,
    passes nothing.

    Args:
        state: Present beliefs as prior, costs, and what is left of the budget.
        design: What is proposed; its arms and seeds exist in the state.
        least_share: 0 to 1. 0 sends back only what tells nothing at all.
        samples: Draws for each hypothesis, where normal outcomes need Monte Carlo.

    Raises:
        InputError: The design does not exist in the state.
    """
    check_design(state, design)
    price = cost(state, design)
    if not fits(state, design):
        reason = f"{_too_dear(state, price)}; {_what_fits(state, samples)}"
        return Verdict(False, "unaffordable", reason, price if isfinite(price) else 0.0)
    best = best_affordable(state, samples=samples)
    gain = information(state, design, samples=samples).value
    top, price_of_best = information(state, best, samples=samples).value, cost(state, best)
    if is_settled(state) or gain <= NOTHING or gain / price < least_share * top / price_of_best:
        return Verdict(
            False,
            "uninformative",
            f"it would tell {gain:.3g} nats for {price:g} {state.limits[0].unit}; "
            f"{described(state, best)} tells {top:.3g} for {price_of_best:g}",
            price,
        )
    return Verdict(True, "passed")


def described(state: ResearchState, design: Design) -> str:
    """Return the design in words, such as `ema, dropout with 5 seeds`."""
    arms = ", ".join(state.arms[arm] for arm in design.arms)
    return f"{arms} with {design.seeds} seeds"


def _too_dear(state: ResearchState, price: float) -> str:
    limit = state.limits[0]
    if not isfinite(price):
        return "it has no price"
    if price <= limit.budget and len(state.limits) > 1:
        others = ", ".join(f"{x.budget:g} {x.unit}" for x in state.limits[1:])
        return f"it costs {price:g} {limit.unit}, and does not fit {others}"
    return f"it costs {price:g} {limit.unit}, and {limit.budget:g} are left"


def _what_fits(state: ResearchState, samples: int) -> str:
    try:
        return f"{described(state, best_affordable(state, samples=samples))} fits"
    except BudgetError as error:
        return str(error)
