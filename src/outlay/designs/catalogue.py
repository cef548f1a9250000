"""Every design of a state with its information, cost and affordability."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from outlay.designs.costs import (
    Design,
    TableCost,
    arms_of,
    cost_of,
    cost_table,
    decimal,
    is_affordable,
)
from outlay.designs.information import SAMPLES, information_table
from outlay.designs.worth import best_first
from outlay.errors import BudgetError, InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from outlay.designs.costs import Limit
    from outlay.designs.states import ResearchState


class Catalogue(NamedTuple):
    """All designs of a state; each array has shape (2^K, N): bitmask of the arms, seeds.

    Attributes:
        state: The state.
        gain: Information in nats.
        error: Half-width of its error; 0 where exact.
        cost: In the first limit's unit; infinite where there is no price.
        affordable: Whether the design fits every limit. The empty arm set never does.
    """

    state: ResearchState
    gain: NDArray[np.float64]
    error: NDArray[np.float64]
    cost: NDArray[np.float64]
    affordable: NDArray[np.bool_]

    @property
    def efficiency(self) -> NDArray[np.float64]:
        """Information per cost where affordable, else 0."""
        return np.where(self.affordable, self.gain / self.cost, 0.0)

    def affordable_places(self) -> NDArray[np.intp]:
        """Return the flat indices of the affordable designs, ascending."""
        return np.flatnonzero(self.affordable)

    def measured(self, places: NDArray[np.intp]) -> tuple[NDArray[np.generic], ...]:
        """Return gain, cost, number of arms and seeds of designs, each of shape (D,)."""
        masks, seeds = np.divmod(places, self.gain.shape[1])
        arms = np.sum([masks >> arm & 1 for arm in range(len(self.state.arms))], axis=0)
        return self.gain.flat[places], self.cost.flat[places], arms, seeds

    def design(self, place: int) -> Design:
        """Return the design at a flat index of the arrays."""
        mask, seeds = divmod(place, self.gain.shape[1])
        return Design(arms_of(mask), self.state.seeds[0] + seeds)

    def place(self, design: Design) -> int:
        """Return the flat index of a design."""
        return int(design.mask * self.gain.shape[1] + design.seeds - self.state.seeds[0])


def catalogue(state: ResearchState, *, samples: int = SAMPLES) -> Catalogue:
    """Return all designs of a state; with up to 8 arms, 16 where the fast sum applies.

    Raises:
        InputError: There are too many arms to list, or an affordable design costs nothing.
    """
    gain, error = information_table(state, samples=samples)
    return priced(state, gain, error)


def priced(
    state: ResearchState, gain: NDArray[np.float64], error: NDArray[np.float64]
) -> Catalogue:
    """Return the catalogue for information that is already known."""
    tables = [cost_table(limit, len(state.arms), state.seed_range) for limit in state.limits]
    affordable = np.logical_and.reduce([table.affordable for table in tables])
    cost = tables[0].cost
    if (cost[affordable] == 0).any():
        raise InputError("cost: an affordable design costs 0; information per cost needs more")
    cost[0] = 1.0  # the empty set, never affordable; avoids 0 / 0
    return Catalogue(state, gain, error, cost, affordable)


def fits(state: ResearchState, design: Design) -> bool:
    """Return whether a design fits every limit, in exact arithmetic."""
    return all(is_affordable(limit, design) for limit in state.limits)


def cost(state: ResearchState, design: Design) -> float:
    """Return a design's cost in the first limit's unit; infinite where it has no price."""
    exact = cost_of(state.limits[0], design)
    return float("inf") if exact is None else float(exact)


def paid(state: ResearchState, design: Design) -> ResearchState:
    """Return the state with the design's cost taken off every limit, which ends at 0.

    A limit in which the design has no price stays as it is.
    """
    return replace(state, limits=tuple(_less(limit, design) for limit in state.limits))


def _less(limit: Limit, design: Design) -> Limit:
    price = cost_of(limit, design)
    left = decimal(limit.budget) - (price or 0)
    return replace(limit, budget=float(max(left, Fraction(0))))


def best_design(table: Catalogue) -> Design:
    """Return the affordable design with the most information per cost; ties as in `best_first`.

    Raises:
        BudgetError: Nothing is affordable; the message names the cheapest cost.
    """
    return best_designs(table, 1)[0]


def best_designs(table: Catalogue, most: int) -> list[Design]:
    """Return up to so many affordable designs, best first; ties and errors as above."""
    if not table.affordable.any():
        raise _nothing_affordable(table)
    places = table.affordable_places()
    order = best_first(*table.measured(places))
    return [table.design(int(place)) for place in places[order[:most]]]


def _nothing_affordable(table: Catalogue) -> BudgetError:
    """Return the error that names the cheapest design and what the budget lacks."""
    state = table.state
    cheapest = _cheapest(table)
    if cheapest is None:
        return BudgetError(
            "no design is affordable: none has a price in every unit; list one in cost.designs"
        )
    used = ", ".join(
        f"{float(price):g} of {limit.budget:g} {limit.unit}"
        for limit in state.limits
        if (price := cost_of(limit, cheapest)) is not None
    )
    arms = ", ".join(state.arms[arm] for arm in cheapest.arms)
    return BudgetError(
        f"no design is affordable: the cheapest costs {cost(state, cheapest):g} "
        f"{state.limits[0].unit} ({arms}; {cheapest.seeds} seeds), which takes {used}; raise the "
        "budget"
    )


def _cheapest(table: Catalogue) -> Design | None:
    """Return the cheapest design that every limit has a price for, `None` if there is none."""
    costs = [limit.cost for limit in table.state.limits]
    listed = [set(rule.prices) for rule in costs if isinstance(rule, TableCost)]
    if not listed:
        return table.design(int(np.argmin(table.cost[1:])) + table.cost.shape[1])
    common = sorted(set.intersection(*listed))
    return min(common, key=lambda design: cost(table.state, design), default=None)
