"""Which experiment to run: the best designs, the frontier, and what the answer depends on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from outlay.designs.catalogue import Catalogue, best_designs, catalogue, cost, fits
from outlay.designs.information import SAMPLES, entropy, information, is_enumerable
from outlay.designs.proving import prove
from outlay.designs.searching import best_affordable, search_designs
from outlay.designs.statefile import as_state
from outlay.designs.worth import NOTHING, beats_all_before, best_first, cheapest_first

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from matplotlib.figure import Figure
    from numpy.typing import NDArray
    from pandas import DataFrame

    from outlay.designs.costs import Design
    from outlay.designs.states import ResearchState

_MOST_OPTIONS = 5
_MOST_DOUBTED = 6  # hypotheses whose weight is raised, one at a time
_AS_GOOD = 1e-9  # relative; less than this is rounding
_PROOF_EVALUATIONS = 3000


class Option(NamedTuple):
    """A design with what it tells and costs.

    Attributes:
        arms: Names of the arms.
        seeds: Seeds for each condition.
        gain: Expected information gain, in nats.
        error: Half-width of its error; 0 where exact.
        cost: In the first limit's unit; infinite where it has no price.
        efficiency: Information per cost.
    """

    arms: tuple[str, ...]
    seeds: int
    gain: float
    error: float
    cost: float
    efficiency: float

    def to_json(self) -> dict[str, Any]:
        """Return the design as JSON data; a cost that does not exist is `None`."""
        return self._asdict() | {"cost": self.cost if isfinite(self.cost) else None}


class ArmValue(NamedTuple):
    """What an arm adds to the best design, at its seeds.

    Attributes:
        arm: Name.
        included: Whether the best design runs it.
        adds: Information lost without it if included, else won with it, in nats.
        affordable: Whether the design with it fits the budget.
    """

    arm: str
    included: bool
    adds: float
    affordable: bool


class Sensitivity(NamedTuple):
    """The answer under another prior.

    Attributes:
        change: What was changed.
        best: The best design under that prior; the one that is best here if none is better. Its
            gain is 0 but for rounding if that prior leaves nothing to learn.
        kept: Efficiency there of the design that is best here, relative to `best` (0 to 1).
    """

    change: str
    best: Option
    kept: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What `design` found.

    Attributes:
        state: The state it was asked about.
        uncertainty: Entropy of the prior, in nats: the most that any design can tell.
        best: Affordable designs by information per cost, best first.
        frontier: Affordable designs that no cheaper or equal one beats in information.
        arms: What each arm adds to the best design.
        sensitivity: The best design under other priors.
        bound: No affordable design has a higher efficiency.
        complete: Whether every design was listed; else `best` and `frontier` hold what a search
            met, and `bound` says what it may have missed.
    """

    state: ResearchState
    uncertainty: float
    best: tuple[Option, ...]
    frontier: tuple[Option, ...]
    arms: tuple[ArmValue, ...]
    sensitivity: tuple[Sensitivity, ...]
    bound: float
    complete: bool

    def __repr__(self) -> str:
        """Return one line: the best design, what it tells and what it costs."""
        if self.nothing_to_learn:
            return "<Plan: nothing to learn>"
        best, unit = self.best[0], self.state.limits[0].unit
        return (
            f"<Plan: {', '.join(best.arms)} with {best.seeds} seeds, {best.gain:.4f} of "
            f"{self.uncertainty:.4f} nats for {best.cost:g} {unit}>"
        )

    @property
    def nothing_to_learn(self) -> bool:
        """Whether no affordable design tells anything; `best` then holds the smallest ones."""
        return self.best[0].gain <= NOTHING

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON data."""
        return {
            "nothing_to_learn": self.nothing_to_learn,
            "uncertainty": self.uncertainty,
            "unit": self.state.limits[0].unit,
            "budget": self.state.limits[0].budget,
            "complete": self.complete,
            "bound": self.bound,
            "best": [option.to_json() for option in self.best],
            "frontier": [option.to_json() for option in self.frontier],
            "arms": [value._asdict() for value in self.arms],
            "sensitivity": [
                {"change": s.change, "best": s.best.to_json(), "kept": s.kept}
                for s in self.sensitivity
            ],
        }

    def to_pandas(self) -> DataFrame:
        """Return the frontier as a table; needs the extra `pandas`."""
        import pandas as pd

        return pd.DataFrame([option._asdict() for option in self.frontier])

    def plot(self) -> Figure:
        """Return a picture of information against cost; needs the extra `plot`."""
        from outlay.designs.pictures import frontier_figure

        return frontier_figure(self)


def design(state: ResearchState | str | Path, *, samples: int = SAMPLES) -> Plan:
    """Return the best affordable experiments for a research state, and the frontier.

    Every design is listed where that is cheap (up to 8 arms, 16 with disjoint signatures, 4 with
    normal outcomes).
    Otherwise a search finds the best one and a branch and bound proves how much it may have
    missed.

    Args:
        state: A state, or the path of its TOML or JSON file.
        samples: Draws for each hypothesis, where normal outcomes need Monte Carlo.

    Raises:
        InputError: The state or its file is wrong.
        BudgetError: Nothing is affordable; the message names the cheapest cost.

    Example:
        >>> from outlay.designs.states import ResearchState, paper_limit
        >>> state = ResearchState(
        ...     hypotheses=("warm-up", "data order", "neither"),
        ...     prior=(0.5, 0.3, 0.2),
        ...     arms=("no warm-up", "fixed order"),
        ...     signatures=((1, 0), (0, 1), (0, 0)),
        ...     limits=(paper_limit(6),),
        ... )
        >>> best = design(state).best[0]
        >>> best.arms, best.seeds, round(best.gain, 3), round(best.cost, 2)
        (('no warm-up', 'fixed order'), 10, 0.547, 5.7)
    """
    state = as_state(state)
    options, kept, bound = (_listed if is_enumerable(state) else _searched)(state, samples)
    best = options[0]
    shown = tuple(option(state, chosen, samples) for chosen in options)
    return Plan(
        state=state,
        uncertainty=entropy(np.array(state.prior)),
        best=shown,
        frontier=tuple(option(state, chosen, samples) for chosen in kept),
        arms=tuple(_arm_values(state, best, samples)),
        sensitivity=tuple(_sensitivity(state, best, samples)),
        bound=max(bound, shown[0].efficiency),
        complete=is_enumerable(state),
    )


def _listed(state: ResearchState, samples: int) -> tuple[list[Design], tuple[Design, ...], float]:
    """Return the best designs, the frontier and the highest efficiency, from a complete list."""
    table = catalogue(state, samples=samples)
    best = best_designs(table, _MOST_OPTIONS)
    return best, frontier(table), float(table.efficiency.max())


def _searched(
    state: ResearchState, samples: int
) -> tuple[list[Design], tuple[Design, ...], float]:
    """Return the same from the designs that the search and its proof met."""
    found = search_designs(state, samples=samples)
    proof = prove(state, start=found, evaluations=_PROOF_EVALUATIONS)
    seen = {**found.seen, **proof.seen}
    paid = sorted(d for d in seen if fits(state, d))
    measured = (
        [seen[d] for d in paid],
        [cost(state, d) for d in paid],
        [len(d.arms) for d in paid],
        [d.seeds for d in paid],
    )
    best = [paid[place] for place in best_first(*measured)[:_MOST_OPTIONS]]
    order = cheapest_first(*measured)
    kept = order[beats_all_before(np.array(measured[0])[order])]
    return best, tuple(paid[place] for place in kept), proof.bound


def frontier(table: Catalogue) -> tuple[Design, ...]:
    """Return affordable designs that tell more than every design of at most their cost."""
    places = table.affordable_places()
    measured = table.measured(places)
    order = cheapest_first(*measured)
    kept = order[beats_all_before(table.gain.flat[places[order]])]
    return tuple(table.design(int(place)) for place in places[kept])


def option(state: ResearchState, chosen: Design, samples: int) -> Option:
    """Return a design with its information, cost and efficiency."""
    gain, error = information(state, chosen, samples=samples)
    names = tuple(state.arms[arm] for arm in chosen.arms)
    price = cost(state, chosen)
    return Option(names, chosen.seeds, gain, error, price, gain / price)


def _arm_values(state: ResearchState, best: Design, samples: int) -> Iterator[ArmValue]:
    gain = information(state, best, samples=samples).value
    for arm, name in enumerate(state.arms):
        included = arm in best.arms
        other = best._replace(arms=tuple(sorted({*best.arms} ^ {arm})))
        told = information(state, other, samples=samples).value if other.arms else 0.0
        adds = gain - told if included else told - gain
        yield ArmValue(name, included, adds, included or fits(state, other))


def _sensitivity(state: ResearchState, best: Design, samples: int) -> Iterator[Sensitivity]:
    for change, prior in _other_priors(state):
        changed = replace(state, prior=tuple(float(p) for p in prior))
        chosen = best_affordable(changed, samples=samples)
        other, here = option(changed, chosen, samples), option(changed, best, samples)
        if other.gain <= NOTHING or here.efficiency >= other.efficiency * (1 - _AS_GOOD):
            yield Sensitivity(change, here, 1.0)
        else:
            yield Sensitivity(change, other, here.efficiency / other.efficiency)


def _other_priors(state: ResearchState) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield priors that a colleague might hold: flat, sharper, flatter, one doubt more."""
    prior = np.array(state.prior)
    yield "all equally likely", np.full(len(prior), 1 / len(prior))
    yield "flatter (square root)", _normalised(np.sqrt(prior))
    yield "sharper (square)", _normalised(prior**2)
    if not is_enumerable(state):
        return  # a search for each hypothesis would take minutes
    likeliest = sorted(range(len(prior)), key=lambda h: -prior[h])[:_MOST_DOUBTED]
    for h in sorted(likeliest):
        name = state.hypotheses[h]
        odds = prior.copy()
        odds[h] *= 3
        yield f"three times the weight on: {name}", _normalised(odds)


def _normalised(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(weights / weights.sum())
