"""The next attempt, or the plans for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from outlay import events
from outlay.agents.reflector import go_on
from outlay.allocation.policies import Situation, by_name
from outlay.decision.reserves import (
    attempt_reserve,
    lacking_for_attempt,
    lacking_for_reflection,
    reflection_reserve,
)
from outlay.decision.under_way import is_reflecting

if TYPE_CHECKING:
    from outlay.agents.reflector import Reflector
    from outlay.allocation.walk import Move
    from outlay.events import AnyEvent
    from outlay.state import State

ROOT_DRAFTS = 2
"""First plans that are asked for: one more where the first one failed."""


def explore(state: State, elapsed: float, reflector: Reflector) -> AnyEvent | None:
    """Return the next attempt or reflection, if there is one and it is affordable."""
    if state.stopping or lacking_for_attempt(state, elapsed):
        return None
    if state.drafting:
        return _draft(state, elapsed)
    if state.ask_again:
        return _reflect(state, elapsed, state.ask_again[0])
    move = next_move(state, elapsed)
    if move is None:
        return None
    if move.action == "execute":
        return events.AttemptLaunched(
            attempt=state.attempts + 1, trial=1, node=move.node.id, reserve=attempt_reserve(state)
        )
    if move.action != "reflect":
        return go_on(state, move.node, reflector, move.action)
    asked = state.task.search.children - move.node.visible_plans
    if not state.model_drafts:
        return reflector.reflect(state, move.node, asked)
    launch = events.ReflectionLaunched(work="", trial=1, node=move.node.id, asked=asked)
    return _reflect(state, elapsed, launch)


def _draft(state: State, elapsed: float) -> AnyEvent | None:
    """Ask for the first plan: at first, and once more where the root failed."""
    if is_reflecting(state):
        return None
    if state.ask_again:
        return _reflect(state, elapsed, state.ask_again[0])
    if state.drafts >= ROOT_DRAFTS or (state.drafts and state.tree.root.status == "open"):
        return None
    launch = events.ReflectionLaunched(work="", trial=1, node=events.ROOT_DRAFT, asked=1)
    return _reflect(state, elapsed, launch)


def _reflect(
    state: State, elapsed: float, launch: events.ReflectionLaunched
) -> events.ReflectionLaunched | None:
    """Ask a model, if there is enough for its answer and for an attempt at what it proposes."""
    if lacking_for_reflection(state, elapsed):
        return None
    work = f"r{state.reflections + 1}"
    return msgspec.structs.replace(launch, work=work, trial=1, reserve=reflection_reserve(state))


def next_move(state: State, elapsed: float) -> Move | None:
    """Return what the run's policy would do next, whether or not it is affordable."""
    situation = Situation(
        remaining=state.ledger.remaining_ratio(state.budget, elapsed),
        incumbent=state.incumbent,
        attempts=state.attempts,
        random=state.random("walk"),
    )
    return by_name(state.task.search.policy).move(state.tree, situation)
