"""How each event changes the state of a run. Nothing in here decides or acts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from outlay import events
from outlay.agents import access
from outlay.allocation.reward import Reward
from outlay.allocation.tree import Tree
from outlay.budget import NOTHING, Recent
from outlay.coordination.contest import Contest
from outlay.coordination.directions import Directions
from outlay.coordination.interactions import Interactions, reopened
from outlay.outcomes import (
    attempt_settled,
    finish_outcome,
    measurement_settled,
    record_configuration,
    reflection_settled,
)
from outlay.records import BASELINE, Judgement, Work
from outlay.task import from_json
from outlay.usage import ROLES

if TYPE_CHECKING:
    from collections.abc import Callable

    from outlay.allocation.tree import Node
    from outlay.budget import Charge
    from outlay.events import AnyEvent, Launch
    from outlay.state import State

_RECENT = 256
"""Attempts that the 90th percentile of what one uses is taken over."""


def fold(state: State, event: AnyEvent) -> None:
    """Take the event in."""
    _HANDLERS[type(event)](state, event)


def _run_started(state: State, event: events.RunStarted) -> None:
    state.started = event
    state.task = from_json(event.task)
    state.budget = event.budget
    _watch_limits(state)
    state.workers = event.workers
    search = state.task.search
    state.tree = Tree(children=search.children, prune_below=search.prune_below)
    state.baseline = 0 if event.agent == "levers" else BASELINE
    works = access.executor(state.task, event.agent), access.reflector(state.task, event.agent)
    state.clients = {
        role: who.client if who is not None else "" for role, who in zip(ROLES, works, strict=True)
    }
    state.model_drafts = works[1] is not None
    evaluator = state.task.evaluator
    shared = evaluator.noise == "seed" and evaluator.seeded
    state.contest = Contest(state.task.coordination, seeds_decide=shared)
    state.contest.champion = state.baseline
    state.directions = Directions(
        {lever.name: tuple(o.name for o in lever.options) for lever in state.task.levers},
        state.task.coordination,
    )
    if state.with_levers:
        from outlay.agents.effects import Effects  # loads numpy, which takes a while

        state.effects = Effects(state.task.levers, state.task.metric.sign)
    if state.task.hypotheses:
        from outlay.designs.beliefs import Beliefs  # loads numpy, which takes a while

        state.beliefs = Beliefs(state.task.hypotheses)
    state.configurations = set()
    state.interactions = Interactions()
    state.incumbent = state.tree.root


def _sitting_started(state: State, event: events.SittingStarted) -> None:
    state.workers = event.workers
    state.stopping = False
    if state.ended is not None and state.ended.status == "stopped":
        _open_again(state)


def _budget_changed(state: State, event: events.BudgetChanged) -> None:
    state.budget = event.budget
    _watch_limits(state)
    if state.ended is not None and state.ended.status == "budget":
        _open_again(state)


def _open_again(state: State) -> None:
    state.ended = None
    state.finals += bool(state.final)
    state.final = []


def _ticked(state: State, event: events.Ticked) -> None:
    """Only the clock moves, and `apply` has done that."""


def _stop_requested(state: State, event: events.StopRequested) -> None:
    state.stopping = True


def _run_ended(state: State, event: events.RunEnded) -> None:
    state.ended = event


def _scale_fixed(state: State, event: events.ScaleFixed) -> None:
    metric = state.task.metric
    state.reward = Reward(
        identity=metric.reward == "identity",
        sign=metric.sign,
        center=event.center,
        scale=event.scale,
    )
    score = state.selection_mean(state.baseline_values)
    selection = state.task.seeds.selection
    fresh = [v for seed, v in state.baseline_values.items() if seed not in selection]
    state.contest.noise = state.contest.noise.with_group(list(state.baseline_values.values()))
    state.contest.crown(state.baseline, state.oriented(score), [state.oriented(v) for v in fresh])
    if state.with_levers:
        state.tree.score_root(score, state.reward(score))
        state.nodes[0] = 0
        record_configuration(state, state.tree.root, score)


def _measurement_launched(state: State, event: events.MeasurementLaunched) -> None:
    if event.trial == 1:
        state.measurements += 1
    if event.purpose == "confirmation" and state.contest.challenge is None:
        state.contest.begin(state.nodes[event.attempt])
    _launch(state, event.work, event, event.reserve)


def _attempt_launched(state: State, event: events.AttemptLaunched) -> None:
    if event.trial == 1:
        state.attempts += 1
        state.decisions += 1
        state.nodes.append(event.node)
        state.tree.launch(state.tree.nodes[event.node], event.attempt)
    _launch(state, f"a{event.attempt}", event, event.reserve)


def _reflection_launched(state: State, event: events.ReflectionLaunched) -> None:
    if event.trial == 1:
        state.reflections += 1
        state.decisions += 1
        state.ask_again = [asked for asked in state.ask_again if asked.node != event.node]
        if event.node != events.ROOT_DRAFT:
            state.tree.reflect(state.tree.nodes[event.node], begins=True)
        elif not event.problems:
            state.drafts += 1
    _launch(state, event.work, event, event.reserve)


def _launch(state: State, work: str, launch: Launch, reserve: Charge) -> None:
    if work in state.works:
        state.works[work].launch, state.works[work].in_flight = launch, True
    else:
        state.works[work] = Work(launch=launch)
    state.ledger.reserve(work, reserve)


def _reflected(state: State, event: events.Reflected) -> None:
    state.decisions += 1
    parent = state.tree.nodes[event.node]
    if event.charge != NOTHING:
        state.ledger.record("planning", event.charge)
    added = state.tree.extend(parent, event.children)
    if state.beliefs is not None:
        state.beliefs.propose(event.children)
    if state.with_levers:
        state.configurations |= {tuple(state.configuration(n).values()) for n in added}
    if len(event.children) < event.asked:
        state.tree.exhaust(parent)


def _judged(state: State, event: events.Judged) -> None:
    node = state.tree.nodes[state.nodes[event.attempt]]
    incumbent = state.contest.champion
    challenge = state.contest.challenge
    if challenge is None or challenge.node != node.id:
        state.contest.queue.remove(node.id)
        fresh: list[float] = []
    else:
        fresh = [pair[0] for pair in challenge.complete]
        state.contest.close(promoted=event.promoted)
    state.judgements.append(
        Judgement(attempt=event.attempt, node=node.id, incumbent=incumbent, event=event)
    )
    if event.promoted and node.score is not None:
        state.contest.crown(node.id, state.oriented(node.score), fresh)
        _reopen_directions(state, incumbent, node)
    finish_outcome(state, node, improved=event.promoted)


def _reopen_directions(state: State, before: int, after: Node) -> None:
    sd = state.contest.noise.sd
    if not state.with_levers or sd is None:
        return
    for axis, direction in reopened(
        state.directions.dead_ends.retired,
        state.configuration(state.tree.nodes[before]),
        state.configuration(after),
        state.interactions,
        sd,
    ):
        state.directions.dead_ends.reopen(axis, direction)


def _watch_limits(state: State) -> None:
    for used in state.recent.values():
        for name in ("tokens", "usd", "seconds"):
            if getattr(state.budget, name) is not None:
                used.setdefault(name, Recent(_RECENT))


_HANDLERS: dict[type, Callable[[State, Any], None]] = {
    events.RunStarted: _run_started,
    events.SittingStarted: _sitting_started,
    events.BudgetChanged: _budget_changed,
    events.Ticked: _ticked,
    events.StopRequested: _stop_requested,
    events.MeasurementLaunched: _measurement_launched,
    events.MeasurementSettled: measurement_settled,
    events.ScaleFixed: _scale_fixed,
    events.Reflected: _reflected,
    events.ReflectionLaunched: _reflection_launched,
    events.ReflectionSettled: reflection_settled,
    events.AttemptLaunched: _attempt_launched,
    events.AttemptSettled: attempt_settled,
    events.Judged: _judged,
    events.RunEnded: _run_ended,
}
