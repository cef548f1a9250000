"""The best affordable design where there are too many to list."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from outlay.designs._explored import Explored, Found, check_searchable
from outlay.designs.catalogue import best_design, catalogue, cost, fits
from outlay.designs.costs import Design
from outlay.designs.information import SAMPLES, is_enumerable
from outlay.designs.outcomes import noise_after

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from outlay.designs.states import ResearchState

_SIZES = 6  # sizes of arm sets that are tried
_STARTS = 4  # those from which the local search sets out
_MOST_MOVES = 60


def search_designs(
    state: ResearchState, *, evaluations: int = 450, samples: int = SAMPLES
) -> Found:
    """Return the best design found with at most this many exact evaluations.

    A surrogate ranks arm sets without an evaluation: half the log determinant of 1 + covariance
    of the means / noise^2, the information of a Gaussian channel. Its greedy sets of the six most
    promising sizes, with as many seeds as the budget takes, are evaluated exactly; from the best
    of them a local search swaps, adds and drops arms and moves the seeds, the surrogate's
    favourites first.

    Args:
        state: Costs must be linear in its limits.
        evaluations: At least 1.
        samples: Draws for each hypothesis, where normal outcomes need Monte Carlo.

    Raises:
        BudgetError: Nothing is affordable.
        InputError: A limit has a price table (list the designs instead).
    """
    check_searchable(state)
    explored = Explored(state, evaluations, samples)
    surrogate = _Surrogate(state)
    sizes = surrogate.ranked(list(surrogate.greedy()))[:_SIZES]
    starts = [design for design in sizes if explored.gain(design) is not None]
    for start in sorted(starts, key=explored.efficiency, reverse=True)[:_STARTS]:
        _climb(explored, surrogate, start)
    return explored.found()


def best_affordable(state: ResearchState, *, samples: int = SAMPLES) -> Design:
    """Return the affordable design with the most information per cost.

    Every design is listed where that is cheap, else the search's best is returned.

    Raises:
        BudgetError: Nothing is affordable; the message names the cheapest cost.
    """
    if is_enumerable(state):
        return best_design(catalogue(state, samples=samples))
    return search_designs(state, samples=samples).design


def _longest(state: ResearchState, arms: tuple[int, ...]) -> Design | None:
    """Return the arms with as many seeds as all limits pay for, `None` if too dear."""
    low, high = state.seeds[0], state.seeds[1] + 1
    if not fits(state, Design(arms, low)):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(state, Design(arms, middle)) else (low, middle)
    return Design(arms, low)


def _climb(explored: Explored, surrogate: _Surrogate, start: Design) -> None:
    """Move to better neighbours until none is left, or no evaluation is."""
    current = start
    for _ in range(_MOST_MOVES):
        for neighbour in surrogate.ranked(_neighbours(explored.state, current)):
            if explored.gain(neighbour) is None:
                return
            if explored.efficiency(neighbour) > explored.efficiency(current):
                current = neighbour
                break
        else:
            return


def _neighbours(state: ResearchState, design: Design) -> list[Design]:
    """Return affordable designs with one arm swapped, added or dropped, or other seeds."""
    arms = set(design.arms)
    absent = [arm for arm in range(len(state.arms)) if arm not in arms]
    sets = [arms - {out} | {new} for out in design.arms for new in absent]
    sets += [arms | {new} for new in absent] + [arms - {out} for out in design.arms]
    longest = [_longest(state, tuple(sorted(chosen))) for chosen in sets if chosen]
    seeds = [design._replace(seeds=design.seeds + step) for step in (-1, 1)]
    seeds = [d for d in seeds if state.seeds[0] <= d.seeds <= state.seeds[1] and fits(state, d)]
    return [*seeds, *(d for d in longest if d is not None)]


class _Surrogate:
    """Ranks designs by the information of a Gaussian channel with the same covariance."""

    def __init__(self, state: ResearchState) -> None:
        self._state = state
        prior = np.array(state.prior)
        centred = state.means - prior @ state.means
        self._covariance: NDArray[np.float64] = (centred.T * prior) @ centred

    def gain(self, design: Design) -> float:
        """Return half the log determinant of 1 + covariance / noise^2."""
        sd = float(noise_after(self._state.outcomes.noise, design.seeds))
        chosen = self._covariance[np.ix_(design.arms, design.arms)]
        return 0.5 * float(np.linalg.slogdet(np.eye(len(design.arms)) + chosen / sd**2)[1])

    def ranked(self, designs: list[Design]) -> list[Design]:
        """Return the designs by estimated information per cost, best first."""
        return sorted(designs, key=lambda d: -self.gain(d) / cost(self._state, d))

    def greedy(self) -> Iterator[Design]:
        """Yield a design of each size: the affordable addition with the most per cost."""
        arms: tuple[int, ...] = ()
        for _ in self._state.arms:
            rest = [arm for arm in range(len(self._state.arms)) if arm not in arms]
            longer = [_longest(self._state, tuple(sorted((*arms, new)))) for new in rest]
            paid = [design for design in longer if design is not None]
            if not paid:
                return
            best = self.ranked(paid)[0]
            arms = best.arms
            yield best
