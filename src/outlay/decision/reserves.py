"""What is held back: for the final measurement, for an attempt, for a reflection."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

import msgspec

from outlay.budget import Charge, Remaining

if TYPE_CHECKING:
    from outlay.state import State

FINAL_MARGIN = 1.25
"""Reserve for the final measurement over its expected seconds."""


def final_reserve(state: State) -> float:
    """Return the seconds of wall clock that are held for the final measurement."""
    subjects = 1 if state.contest.champion == state.baseline and not state.attempts else 2
    runs = subjects * len(state.task.seeds.final)
    return FINAL_MARGIN * runs * state.baseline_seconds / side_by_side(state)


def side_by_side(state: State) -> int:
    """Return how many parts the final measurement is split into; machine noise forbids it."""
    return state.workers if state.task.evaluator.noise == "seed" else 1


def affordable_rest(state: State, elapsed: float) -> Remaining:
    """Return what is left for anything but the final measurement."""
    left = state.ledger.remaining(state.budget, elapsed)
    if left.seconds is None:
        return left
    return msgspec.structs.replace(left, seconds=left.seconds - final_reserve(state))


def attempt_reserve(state: State) -> Charge:
    """Return what an attempt holds: its limit, or the 90th percentile of those so far.

    Tokens and money are held up to what is left of them, so that the last attempt may begin.
    """
    usual, limit = state.usual_charge(), state.task.limits.seconds
    if not (usual.tokens_in or usual.usd):
        return Charge(attempts=1, seconds=_at_most(usual.seconds, limit))
    left = state.ledger.remaining(state.budget, 0.0)
    return Charge(
        attempts=1,
        tokens_in=ceil(_at_most(usual.tokens, left.tokens)),
        usd=_at_most(usual.usd, left.usd),
        seconds=_at_most(usual.seconds, limit),
    )


def reflection_reserve(state: State) -> Charge:
    """Return what a reflection by a model holds: the 90th percentile of those so far."""
    usual, left = state.usual_planning(), state.ledger.remaining(state.budget, 0.0)
    return Charge(
        tokens_in=ceil(_at_most(usual.tokens, left.tokens)),
        usd=_at_most(usual.usd, left.usd),
        seconds=usual.seconds,
    )


def _at_most(usual: float, left: float | None) -> float:
    return usual if left is None else min(usual, max(left, 0.0))


def lacking_for_attempt(state: State, elapsed: float) -> str:
    """Return the limit that no further attempt fits under, or an empty text."""
    rest = affordable_rest(state, elapsed)
    spent = [
        name
        for name in ("tokens", "usd")
        if (left := getattr(rest, name)) is not None and left <= 0
    ]
    return spent[0] if spent else rest.lacking(attempt_reserve(state))


def lacking_for_reflection(state: State, elapsed: float) -> str:
    """Return the limit that no reflection, with an attempt after it, fits under; or nothing."""
    both = reflection_reserve(state) + attempt_reserve(state)
    return affordable_rest(state, elapsed).lacking(both)
