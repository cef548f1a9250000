"""Every design of a state with its information, cost and affordability."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from outlay.designs.costs import Design, arms_of, cost_of, cost_table, decimal, is_affordable
from outlay.designs.information import SAMPLES, information_table
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
    """Return the state with the design's cost taken off every limit, which ends at 0."""
    return replace(state, limits=tuple(_less(limit, design) for limit in state.limits))


def _less(limit: Limit, design: Design) -> Limit:
    price = cost_of(limit, design)
    left = Fraction(0) if price is None else decimal(limit.budget) - price
    return replace(limit, budget=float(max(left, Fraction(0))))


def best_design(table: Catalogue) -> Design:
    """Return the affordable design with the most information per cost; ties go to fewer arms.

    Raises:
        BudgetError: Nothing is affordable; the message names the cheapest cost.
    """
    if not table.affordable.any():
        raise nothing_affordable(table)
    return table.design(int(np.argmax(table.efficiency)))


def nothing_affordable(table: Catalogue) -> BudgetError:
    """Return the error that names the cheapest design and what the budget lacks."""
    state = table.state
    first = state.limits[0]
    place = int(np.argmin(table.cost[1:])) + table.cost.shape[1]
    cheapest = table.design(place)
    used = ", ".join(
        f"{float(price):g} of {limit.budget:g} {limit.unit}"
        for limit in state.limits
        if (price := cost_of(limit, cheapest)) is not None
    )
    arms = ", ".join(state.arms[arm] for arm in cheapest.arms)
    return BudgetError(
        f"no design is affordable: the cheapest costs {table.cost.flat[place]:g} {first.unit} "
        f"({arms}; {cheapest.seeds} seeds), which takes {used}; raise the budget"
    )
