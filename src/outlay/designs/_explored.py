"""Designs whose information was computed, and the best of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from outlay.designs.catalogue import cost, fits
from outlay.designs.costs import Design, LinearCost
from outlay.designs.information import SAMPLES, information
from outlay.errors import BudgetError, InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from outlay.designs.states import ResearchState


class Found(NamedTuple):
    """The best design that a search met.

    Attributes:
        design: Arms and seeds.
        gain: Its information, in nats.
        efficiency: Information per cost.
        seen: Every design whose information was computed, with it.
        bound: No affordable design has a higher efficiency; infinite if that was not asked for.
    """

    design: Design
    gain: float
    efficiency: float
    seen: Mapping[Design, float]
    bound: float = float("inf")


class Explored:
    """Information of designs, computed once each, up to a number of evaluations.

    Attributes:
        state: The state.
        left: Evaluations that may still be made.
        gains: What was computed.
        best: The affordable design with the highest efficiency so far.
    """

    def __init__(self, state: ResearchState, evaluations: int, samples: int = SAMPLES) -> None:
        self.state = state
        self.left = evaluations
        self.gains: dict[Design, float] = {}
        self.best: Design | None = None
        self._samples = samples

    def gain(self, design: Design) -> float | None:
        """Return the information of a design, `None` once no evaluation is left."""
        if design not in self.gains:
            if self.left == 0:
                return None
            self.left -= 1
            self.gains[design] = information(self.state, design, samples=self._samples).value
            better = self.best is None or self.efficiency(design) > self.best_efficiency
            if better and fits(self.state, design):
                self.best = design
        return self.gains[design]

    def efficiency(self, design: Design) -> float:
        """Return information per cost of a design that was computed."""
        return self.gains[design] / cost(self.state, design)

    @property
    def best_efficiency(self) -> float:
        """Information per cost of the best design so far, 0 if there is none."""
        return 0.0 if self.best is None else self.efficiency(self.best)

    def found(self, bound: float = float("inf")) -> Found:
        """Return the best design so far.

        Raises:
            BudgetError: No affordable design was met.
        """
        if self.best is None:
            raise BudgetError(
                f"no design is affordable within {self.state.limits[0].budget:g} "
                f"{self.state.limits[0].unit}: {_cheapest(self.state)}; raise the budget"
            )
        return Found(self.best, self.gains[self.best], self.best_efficiency, self.gains, bound)


def _cheapest(state: ResearchState) -> str:
    """Return what the cheapest single-arm design costs."""
    designs = [Design((arm,), state.seeds[0]) for arm in range(len(state.arms))]
    cheapest = min(designs, key=lambda design: cost(state, design))
    return f"the cheapest costs {cost(state, cheapest):g} ({state.arms[cheapest.arms[0]]})"


def check_searchable(state: ResearchState) -> None:
    """Raise `InputError` if a limit has a price table, or a design costs nothing."""
    if not all(isinstance(limit.cost, LinearCost) for limit in state.limits):
        raise InputError("cost: a price table has no search; list its designs with catalogue")
    if any(cost(state, Design((arm,), state.seeds[0])) == 0 for arm in range(len(state.arms))):
        raise InputError("cost: a design costs 0; information per cost needs more")
