"""Proposes what to measure next, in spaces of any size.

Where the cells are too many to list, candidates and effects are sampled: the neighbours of what is
known, and random configurations.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from outlay.errors import bad_value
from outlay.surfaces.beliefs import Assumptions, Beliefs, believe
from outlay.surfaces.breaking import HOPELESS, Odds
from outlay.surfaces.prices import ROUNDING
from outlay.surfaces.purchase import remaining_uncertainty, smallest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlay.surfaces.cube import Edges, FloatArray, IntArray
    from outlay.surfaces.mixture import Observations
    from outlay.surfaces.prices import Prices
    from outlay.surfaces.space import Space

LISTED = 256
SAMPLED_CANDIDATES = 64
SAMPLED_BACKGROUNDS = 16


class Proposal(NamedTuple):
    """A cell to measure, and the share of the effects' summed uncertainty that it would remove."""

    cell: int
    gain: float


class Workspace(NamedTuple):
    """The cells in view; effects, candidates and cells in flight by position among them."""

    cells: IntArray
    low: IntArray
    high: IntArray
    candidates: IntArray
    pending: IntArray


def propose(
    given: Assumptions,
    seen: Observations,
    count: int,
    rng: np.random.Generator,
    *,
    blocked: Sequence[int] = (),
    failed: Sequence[int] = (),
    pending: Sequence[int] = (),
    prices: Prices | None = None,
    purse: float = math.inf,
) -> list[Proposal]:
    """Return up to `count` cells that together leave the effects least uncertain, best first.

    Args:
        given: What is taken as given.
        seen: What was measured.
        count: Number of proposals.
        rng: Used only where the space is too large to list.
        blocked: Cells that must not be proposed.
        failed: Cells that failed, which are not proposed either. A cell with options that failed
            before gains less by the chance that it fails, too, and none once it hardly can work.
        pending: Cells in flight; proposals take them as measured.
        prices: Costs of cells; the gain per cost is then what counts.
        purse: What all proposals may cost together. A cell that it does not pay for gives way to
            the best that it does.
    """
    space = given.space
    known = [int(cell) for cell in space.cells(seen.rows)] if len(seen.values) else []
    barred = {*blocked, *failed}
    excluded = {*known, *barred, *pending}
    odds = Odds.of(space, known, failed)
    started = [cell for cell in dict.fromkeys(space.anchors) if cell not in excluded]
    if prices is not None:
        started = prices.within(started, purse)
    first = [Proposal(cell, math.nan) for cell in started[:count]]
    if prices is not None:
        purse -= sum(map(prices, started[:count]))
    count, pending = count - len(first), [*pending, *started[:count]]
    excluded |= {*pending}
    if not count:
        return first
    if not known:
        cells = _fresh(odds, excluded, pending, count, rng, prices, purse)
        return first + [Proposal(cell, math.nan) for cell in cells]
    view = workspace(space, known, barred if given.noisy else excluded, pending, rng)
    hopeful = odds(view.cells[view.candidates]) >= HOPELESS
    view = view._replace(candidates=view.candidates[hopeful])
    if not len(view.candidates):
        return first
    beliefs = believe(given, seen, rng, fading=False)
    places = view.cells[view.candidates]
    costs = np.array([prices(int(cell)) if prices is not None else 1.0 for cell in places])
    return first + _greedy(odds, beliefs, view, count, costs, purse, noisy=given.noisy)


def _greedy(
    odds: Odds,
    beliefs: Beliefs,
    view: Workspace,
    count: int,
    costs: FloatArray,
    purse: float,
    *,
    noisy: bool,
) -> list[Proposal]:
    """Return proposals one after the other, each given that those before it are measured."""
    found, chance = beliefs.posterior(odds.space.rows(view.cells)), odds(view.cells)
    weight = chance[view.low] * chance[view.high]
    covariance, candidates = found.covariance, view.candidates
    for place in view.pending:
        covariance = _once_measured(covariance, int(place), found.noise)
    chosen: list[Proposal] = []
    for _ in range(count):
        payable = costs <= purse + ROUNDING
        candidates, costs = candidates[payable], costs[payable]
        if not len(candidates):
            break
        before = _uncertainty(covariance, view, weight)
        remaining = remaining_uncertainty(
            covariance, found.noise, view.low, view.high, candidates, weight
        )
        told = chance[candidates] * (remaining - before)
        best = smallest(told / np.maximum(costs, 1e-9))
        place = int(candidates[best])
        gain = -float(told[best]) / before if before > 0 else 0.0
        chosen.append(Proposal(int(view.cells[place]), gain))
        covariance = _once_measured(covariance, place, found.noise)
        purse -= float(costs[best])
        if not noisy:
            candidates, costs = np.delete(candidates, best), np.delete(costs, best)
    return chosen


def _once_measured(covariance: FloatArray, place: int, noise: float) -> FloatArray:
    """Return the covariance after a measurement at `place`; its value does not matter."""
    column = covariance[:, place]
    after: FloatArray = covariance - np.outer(column, column) / max(column[place] + noise, 1e-300)
    return after


def _uncertainty(covariance: FloatArray, view: Workspace, weight: FloatArray) -> float:
    own = np.diagonal(covariance)
    variance = own[view.high] + own[view.low] - 2 * covariance[view.high, view.low]
    return float((weight * np.sqrt(np.maximum(variance, 0.0))).sum())


def workspace(
    space: Space,
    known: Sequence[int],
    excluded: set[int],
    pending: Sequence[int],
    rng: np.random.Generator,
) -> Workspace:
    """Return the cells, effects and candidates that a choice looks at."""
    if space.size <= LISTED:
        backgrounds = np.arange(space.size)
        candidates = np.setdiff1d(backgrounds, list(excluded))
    else:
        near = neighbours(space, known)
        some = np.unique(np.concatenate([near, rng.integers(0, space.size, len(near))]))
        some = np.setdiff1d(some, list(excluded))
        candidates = rng.permutation(some)[:SAMPLED_CANDIDATES]
        candidates.sort()
        backgrounds = rng.integers(0, space.size, SAMPLED_BACKGROUNDS)
    pairs: Edges = space.effects_at(backgrounds)
    parts = (*pairs[:2], candidates, np.array(pending, dtype=np.int64))
    cells = np.unique(np.concatenate(parts))
    return Workspace(cells, *(np.searchsorted(cells, part) for part in parts))


def neighbours(space: Space, cells: Sequence[int]) -> IntArray:
    """Return all cells that differ from one of `cells` in one factor, and those cells."""
    rows = space.rows(np.array(cells))
    found = [rows]
    for i, count in enumerate(space.levels):
        for step in range(1, count):
            moved = rows.copy()
            moved[:, i] = (moved[:, i] + step) % count
            found.append(moved)
    return np.unique(space.cells(np.concatenate(found)))


def _fresh(
    odds: Odds,
    excluded: set[int],
    pending: Sequence[int],
    count: int,
    rng: np.random.Generator,
    prices: Prices | None,
    purse: float,
) -> list[int]:
    """Return up to `count` cells while nothing has a value: likely ones, far from each other."""
    space, size = odds.space, odds.space.size
    if size <= LISTED:
        cells = np.setdiff1d(np.arange(size), list(excluded))
    else:
        cells = np.setdiff1d(rng.integers(0, size, LISTED), list(excluded))
    cells = rng.permutation(odds.usable(cells))
    chance, chosen = odds(cells), list[int]()
    while len(chosen) < count:
        if prices is not None:
            payable = np.array([prices(int(cell)) <= purse + ROUNDING for cell in cells], bool)
            cells, chance = cells[payable], chance[payable]
        if not len(cells):
            break
        taken = space.rows(np.array([*space.anchors, *pending, *chosen], dtype=np.int64))
        apart = (space.rows(cells)[:, None] != taken).sum(axis=2).min(axis=1)
        best = int(np.lexsort((-apart, -chance))[0])
        chosen.append(int(cells[best]))
        purse -= prices(chosen[-1]) if prices is not None else 0.0
        cells, chance = np.delete(cells, best), np.delete(chance, best)
    return chosen


def check_count(where: str, count: object) -> None:
    """Refuse what is no number of proposals.

    Raises:
        InputError: If it is no whole number of at least 1.
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise bad_value(where, "k", count, "a whole number, at least 1")
