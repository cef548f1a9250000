"""How the outcomes of work change the state of a run."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from msgspec import structs

from outlay import events
from outlay.records import BLAMELESS
from outlay.usage import used_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlay.allocation.tree import Node
    from outlay.budget import Charge, Kind
    from outlay.events import Evaluation, Settled
    from outlay.state import State
    from outlay.usage import Role


def _settle(state: State, work: str, kind: Kind, event: Settled) -> None:
    state.ledger.settle(work, kind, event.charge)
    if event.outcome in ("interrupted", "infrastructure"):
        state.works[work].in_flight = False
        state.works[work].lost += event.reason not in BLAMELESS
    else:
        del state.works[work]


def measurement_settled(state: State, event: events.MeasurementSettled) -> None:
    """Take in what a measurement came to."""
    launch = state.works[event.work].launch
    _settle(state, event.work, "measurement", event)
    if event.outcome in ("interrupted", "infrastructure"):
        return
    for evaluation in event.evaluations:
        if evaluation.value is not None and not evaluation.role:
            state.values[evaluation.node, evaluation.seed] = evaluation.value
    if isinstance(launch, events.MeasurementLaunched):
        _PURPOSES[launch.purpose](state, event, launch)


def _baseline_measured(
    state: State, event: events.MeasurementSettled, launch: events.MeasurementLaunched
) -> None:
    plain = [e for e in event.evaluations if not e.role]
    if event.outcome != "scored":
        state.baseline_fault = event
        return
    state.baseline_values = {e.seed: e.value for e in plain if e.value is not None}
    state.baseline_seconds = fmean(e.seconds for e in plain)
    _check_baseline(state, [e for e in event.evaluations if e.role])


def _check_baseline(state: State, checks: Sequence[Evaluation]) -> None:
    """Note what the second run of a seed, and the bare program, say about the evaluator."""
    first = state.baseline_values[state.task.seeds.selection[0]]
    evaluator = state.task.evaluator
    state.repeat_differs |= any(c.role == "repeat" and c.value != first for c in checks)
    for check in checks:
        # Where a seed does not repeat its value, another value says nothing about the defaults.
        if check.value == first or (check.role == "bare" and state.repeat_differs):
            continue
        if evaluator.noise == "seed" and evaluator.seeded:
            text = _PROBLEMS[check.role].format(found=check.value, first=first)
            state.problems.append(text)
            state.defaults_differ |= check.role == "bare"


def _pair_measured(
    state: State, event: events.MeasurementSettled, launch: events.MeasurementLaunched
) -> None:
    by_run = {(e.node, e.seed): e.value for e in event.evaluations}
    challenge = state.contest.challenge
    for node, seed in launch.runs:
        if challenge is not None and node == challenge.node:
            sides = (by_run.get((node, seed)), by_run.get((state.contest.champion, seed)))
            state.contest.add_pair(*(None if v is None else state.oriented(v) for v in sides))


def _final_measured(
    state: State, event: events.MeasurementSettled, launch: events.MeasurementLaunched
) -> None:
    found = {(e.node, e.seed) for e in event.evaluations}
    absent = [
        events.Evaluation(node=node, seed=seed, fault=event.reason or "not reached")
        for node, seed in launch.runs
        if (node, seed) not in found
    ]
    state.final += [*event.evaluations, *absent]


def reflection_settled(state: State, event: events.ReflectionSettled) -> None:
    """Take in the plans of a reflection, and ask again where some were sent back."""
    launch = state.works[event.work].launch
    _settle(state, event.work, "planning", event)
    _note_agent(state, event, "reflector")
    if not isinstance(launch, events.ReflectionLaunched):
        raise ValueError(f"{event.work} is no reflection")
    if event.outcome in ("interrupted", "infrastructure"):
        return
    _note_use(state, "planning", event.charge)
    if state.beliefs is not None:
        state.beliefs.propose(event.children, event.rejected)
    lacking = launch.asked - len(event.children)
    problems = tuple(rejected.reason for rejected in event.rejected)
    if event.outcome != "scored":
        problems = (event.detail or event.reason,)
    state.complaint = problems[0] if lacking and problems else ""
    again = bool(state.complaint and not launch.problems and event.outcome != "lost")
    if again:
        ask = structs.replace(launch, asked=lacking, problems=problems, sent_back=event.work)
        state.ask_again.append(ask)
    if launch.node == events.ROOT_DRAFT:
        for child in event.children:
            state.tree.draft_root(child)
        return
    node = state.tree.nodes[launch.node]
    state.tree.extend(node, event.children)
    state.tree.reflect(node, begins=again)
    if lacking and not again:
        state.tree.exhaust(node)


def attempt_settled(state: State, event: events.AttemptSettled) -> None:
    """Take in what an attempt came to."""
    _settle(state, f"a{event.attempt}", "execution", event)
    _note_agent(state, event, "executor")
    node = state.tree.nodes[state.nodes[event.attempt]]
    if event.outcome == "scored":
        _note_use(state, "execution", event.charge)
        if event.files not in ("", state.start):
            state.files[node.id] = event.files
        _score(state, node, event.evaluations)
        _learn(state, node, event)
    elif event.outcome == "failed":
        _note_use(state, "execution", event.charge)
        state.tree.settle_without_score(node, "failed")
        if state.with_levers and node.parent is not None:
            parent = state.configuration(node.parent)
            state.effects.record(state.configuration(node), None, parent)
        finish_outcome(state, node, improved=False)
        _learn(state, node, event)
    elif event.outcome == "lost":
        state.tree.settle_without_score(node, "lost")
        _learn(state, node, event)


def _learn(state: State, node: Node, event: events.AttemptSettled) -> None:
    """Update the beliefs from a design's outcome, and note why where that is impossible."""
    if state.beliefs is None:
        return
    found = event.evaluations if event.outcome == "scored" else ()
    problem = state.beliefs.learn(node.id, event.attempt, found)
    if problem:
        state.problems.append(f"attempt {event.attempt}: its design told nothing: {problem}")


def _score(state: State, node: Node, evaluations: Sequence[Evaluation]) -> None:
    if state.reward is None:
        raise ValueError("an attempt was scored before the baseline")
    by_seed: dict[int, float] = {}
    for evaluation in evaluations:
        if evaluation.value is not None:
            by_seed[evaluation.seed] = evaluation.value
            state.values[node.id, evaluation.seed] = evaluation.value
    score = state.selection_mean(by_seed)
    oriented = state.oriented(score)
    state.tree.score(node, score, state.reward(score))
    best = state.incumbent.score
    if best is None or oriented > state.oriented(best):
        state.incumbent = node
    record_configuration(state, node, score)
    if node.parent is not None and node.parent.score is not None:
        axis = node.proposal.axis if node.proposal is not None else None
        state.directions.record_effect(axis, score - node.parent.score)
    if state.contest.is_challenger(oriented):
        state.contest.queue.append(node.id)
    else:
        finish_outcome(state, node, improved=False)


def record_configuration(state: State, node: Node, score: float) -> None:
    """Note the score of a configuration of levers; metric units."""
    if not state.with_levers:
        return
    configuration = state.configuration(node)
    state.interactions.record(configuration, state.oriented(score))
    state.configurations.add(tuple(configuration.values()))
    if node.parent is None:
        state.effects.record(configuration, score)
    else:
        parent = state.configuration(node.parent)
        state.effects.record(configuration, score, parent, node.parent.score)


def finish_outcome(state: State, node: Node, *, improved: bool) -> None:
    """Note whether what the plan tried became champion, once that is known."""
    proposal = node.proposal
    if proposal is not None:
        state.directions.record_outcome(proposal.axis, proposal.direction, improved)


def _note_agent(
    state: State, event: events.AttemptSettled | events.ReflectionSettled, role: Role
) -> None:
    if (found := used_by(event, role, state)) is not None:
        name = (role, found.client, found.version, found.model, "" if found.sources else "lost")
        state.agents[name] = state.agents[name].plus(found) if name in state.agents else found


def _note_use(state: State, kind: Kind, charge: Charge) -> None:
    for name, recent in state.recent[kind].items():
        recent.add(getattr(charge, name))


_PROBLEMS = {
    "repeat": "seed noise: the same seed gave {first} and then {found}; "
    'set noise = "machine", or make the program follow its seed',
    "bare": "levers: the defaults change the program, which gives {found} without and {first} "
    "with them; a lever's first option must describe the program as it stands",
}

_PURPOSES = {
    "baseline": _baseline_measured,
    "confirmation": _pair_measured,
    "final": _final_measured,
}
