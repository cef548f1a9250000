"""The best affordable design where there are too many to list, and a bound on what was missed."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from outlay.designs.catalogue import best_design, catalogue, cost, fits
from outlay.designs.costs import Design, LinearCost
from outlay.designs.information import SAMPLES, entropy, information, is_enumerable
from outlay.designs.outcomes import noise_after
from outlay.errors import BudgetError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from outlay.designs.states import ResearchState

_SIZES = 6  # sizes of arm sets that are tried
_STARTS = 4  # those from which the local search sets out
_MOST_MOVES = 60


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


class _Explored:
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
            if fits(self.state, design) and self.efficiency(design) > self.best_efficiency:
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
                f"{self.state.limits[0].unit}: {cheapest_text(self.state)}; raise the budget"
            )
        return Found(self.best, self.gains[self.best], self.best_efficiency, self.gains, bound)


def cheapest_text(state: ResearchState) -> str:
    """Return what the cheapest single-arm design costs."""
    designs = [Design((arm,), state.seeds[0]) for arm in range(len(state.arms))]
    cheapest = min(designs, key=lambda design: cost(state, design))
    return f"the cheapest costs {cost(state, cheapest):g} ({state.arms[cheapest.arms[0]]})"


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
    _check_linear(state)
    explored = _Explored(state, evaluations, samples)
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


def _check_linear(state: ResearchState) -> None:
    if not all(isinstance(limit.cost, LinearCost) for limit in state.limits):
        raise InputError("cost: a price table has no search; list its designs with catalogue")


def _longest(state: ResearchState, arms: tuple[int, ...]) -> Design | None:
    """Return the arms with as many seeds as all limits pay for, `None` if too dear."""
    low, high = state.seeds[0], state.seeds[1] + 1
    if not fits(state, Design(arms, low)):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(state, Design(arms, middle)) else (low, middle)
    return Design(arms, low)


def _climb(explored: _Explored, surrogate: _Surrogate, start: Design) -> None:
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


def prove(
    state: ResearchState, *, start: Found | None = None, evaluations: int = 100_000
) -> Found:
    """Return the best design with a proven bound on the efficiency of every affordable one.

    Outcomes are independent given the hypothesis, so information is a submodular function of the
    arms (Krause and Guestrin 2005): an arm adds at most what it adds to a subset. Best-first
    branch and bound over arm sets, for each number of seeds; it stops when the bound meets the
    best design, or with the bound as it stands when the evaluations are used up.

    Args:
        state: Costs must be linear.
        start: A design to start from, such as the result of `search_designs`.
        evaluations: Most designs to evaluate.

    Raises:
        BudgetError: Nothing is affordable.
        InputError: A limit has a price table.
    """
    _check_linear(state)
    explored = _Explored(state, evaluations)
    if start is not None:
        explored.gain(start.design)
    order = count()
    heap: list[tuple[float, int, _Node]] = []
    for seeds in state.seed_range:
        arms = tuple(range(len(state.arms)))
        root = _Node((), seeds, 0.0, arms, (float("inf"),) * len(arms))
        heappush(heap, (-float("inf"), next(order), root))
    while heap and -heap[0][0] > explored.best_efficiency * (1 + 1e-12):
        bound, _, node = heappop(heap)
        if explored.left < len(node.candidates):
            return explored.found(-bound)
        for child in _children(explored, node):
            limit = _bound(state, child)
            if limit > explored.best_efficiency:
                heappush(heap, (-limit, next(order), child))
    return explored.found(explored.best_efficiency)


class _Node(NamedTuple):
    """Sets that hold `arms` and otherwise only candidates, whose additions are bounded."""

    arms: tuple[int, ...]
    seeds: int
    gain: float
    candidates: tuple[int, ...]
    most: tuple[float, ...]


def _children(explored: _Explored, node: _Node) -> Iterator[_Node]:
    """Yield one node for each candidate: it is in, and those tried before it are out."""
    gains = {}
    for arm in node.candidates:
        design = Design(tuple(sorted((*node.arms, arm))), node.seeds)
        if fits(explored.state, design):
            gain = explored.gain(design)
            if gain is not None:
                gains[arm] = gain
    ranked = sorted(gains, key=lambda arm: -gains[arm])
    added = [max(gains[arm] - node.gain, 0.0) for arm in ranked]
    for place, arm in enumerate(ranked):
        rest = slice(place + 1, None)
        chosen = tuple(sorted((*node.arms, arm)))
        yield _Node(chosen, node.seeds, gains[arm], tuple(ranked[rest]), tuple(added[rest]))


def _bound(state: ResearchState, node: _Node) -> float:
    """Return the most that any set below the node can reach: the relaxed, fractional best.

    Arms are added by information per cost while the first limit pays, the last one in part.
    """
    spent = cost(state, Design(node.arms, node.seeds))
    prices = {arm: cost(state, Design((arm,), node.seeds)) for arm in node.candidates}
    base = cost(state, Design((), node.seeds))
    steps = sorted(
        ((prices[arm] - base, most) for arm, most in zip(node.candidates, node.most, strict=True)),
        key=lambda step: -step[1] / max(step[0], 1e-300),
    )
    cap = entropy(np.array(state.prior))
    equal = len({price for price, _ in steps}) == 1
    gain, best = node.gain, node.gain / spent
    for price, most in steps:
        room = state.limits[0].budget - spent
        share = min(1.0, room / price) if price > 0 else 1.0
        if share <= 0 or (equal and share < 1 - 1e-9):
            break
        gain, spent = min(gain + share * most, cap), spent + share * price
        best = max(best, gain / spent)
    return best
