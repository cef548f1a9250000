"""Which of several designs is best, so that rounding never decides, and when none is worth it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from outlay.designs.information import entropy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from outlay.designs.states import ResearchState

NOTHING = 1e-9
"""A design that tells this much or less, in nats, tells nothing."""

_TIE = 1e-10  # relative; the sums agree to 1e-13
_SAME_GAIN = 1e-12  # nats


def best_first(
    gain: ArrayLike, cost: ArrayLike, arms: ArrayLike, seeds: ArrayLike
) -> NDArray[np.intp]:
    """Return the order of designs by information per cost, best first.

    Ties, and all designs that tell nothing, go to fewer arms, then fewer seeds, then the first.

    Args:
        gain: Nats, shape (D,).
        cost: Above 0, same shape.
        arms: Number of arms, same shape.
        seeds: Seeds, same shape.
    """
    told = np.asarray(gain, dtype=np.float64)
    efficiency = np.where(told > NOTHING, told / np.asarray(cost, dtype=np.float64), 0.0)
    order = np.argsort(-efficiency, kind="stable")
    ordered = efficiency[order]
    return _settled_ties(order, ordered[:-1] - ordered[1:] > _TIE * ordered[:-1], arms, seeds)


def cheapest_first(
    gain: ArrayLike, cost: ArrayLike, arms: ArrayLike, seeds: ArrayLike
) -> NDArray[np.intp]:
    """Return the order of designs by cost, then by information; arguments and ties as above."""
    told, price = np.asarray(gain), np.asarray(cost)
    order = np.lexsort((-told, price))
    less = told[order][:-1] - told[order][1:] > _SAME_GAIN
    return _settled_ties(order, less | (np.diff(price[order]) > 0), arms, seeds)


def beats_all_before(gain: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which entries are larger than every earlier one, by more than rounding."""
    before = np.maximum.accumulate(np.concatenate([[-1.0], gain[:-1]]))
    return np.asarray(gain > before + _SAME_GAIN)


def _settled_ties(
    order: NDArray[np.intp], starts: NDArray[np.bool_], arms: ArrayLike, seeds: ArrayLike
) -> NDArray[np.intp]:
    """Return the order with each run of ties, which ends where `starts` is true, sorted anew."""
    level = np.concatenate([[0], np.cumsum(starts)])
    return order[np.lexsort((order, np.asarray(seeds)[order], np.asarray(arms)[order], level))]


def is_settled(state: ResearchState) -> bool:
    """Return whether one hypothesis is believed so much that nothing is left to know."""
    return entropy(np.array(state.prior)) < NOTHING


def why_nothing(state: ResearchState) -> str:
    """Return why no affordable design tells anything in a state where none does."""
    if is_settled(state):
        return f"{state.hypotheses[int(np.argmax(state.prior))]!r} is believed already"
    believed = {row for row, p in zip(state.signatures, state.prior, strict=True) if p > 0}
    if len(believed) == 1:
        return "all hypotheses predict the same outcomes"
    return "what the budget pays for does not tell the hypotheses apart"
