"""A proven bound on the best affordable design, by branch and bound over arm sets."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from outlay.designs._explored import Explored, Found, check_searchable
from outlay.designs.catalogue import cost, fits
from outlay.designs.costs import Design
from outlay.designs.information import entropy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from outlay.designs.states import ResearchState


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
    check_searchable(state)
    explored = Explored(state, evaluations)
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


def _children(explored: Explored, node: _Node) -> Iterator[_Node]:
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
