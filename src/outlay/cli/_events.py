"""What happened, one short sentence an event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlay import events
from outlay.agents.access import LEVERS
from outlay.allocation.policies import STAR
from outlay.cli.doctor import money
from outlay.doctor import expected_cost
from outlay.report.belief_cards import learned
from outlay.report.words import (
    change,
    cut,
    duration,
    ending,
    interval,
    limit,
    many,
    number,
    settings,
    signed,
    whole,
)

if TYPE_CHECKING:
    from outlay.events import AnyEvent, Launch, Settled
    from outlay.state import State


def sentence(event: AnyEvent, state: State) -> str:
    """Return the event in words; empty for those that tell a person nothing.

    Args:
        event: What happened.
        state: The state after it, or after later events of its step.
    """
    match event:
        case events.MeasurementLaunched() | events.AttemptLaunched() | events.ReflectionLaunched():
            return _launched(event, state)
        case events.MeasurementSettled():
            return _measured(event, state)
        case events.AttemptSettled():
            return _attempted(event, state)
        case events.Reflected(children=children, node=node):
            new = many(len(children), "new plan")
            return f"node {node}: {new if children else 'nothing more to propose'}"
        case events.ReflectionSettled():
            return _answered(event, state)
        case events.ScaleFixed():
            return _expected(state)
        case events.Judged() if state.task.search.policy != STAR:
            return _judged(event, state)
        case events.BudgetChanged(budget=budget):
            limits = {k: v for k in budget.__slots__ if (v := getattr(budget, k)) is not None}
            return "limits now: " + ", ".join(limit(k, v) for k, v in limits.items())
        case events.StopRequested():
            return "asked to stop: nothing new starts"
        case events.SittingStarted():
            return _taken_up(state)
        case events.RunEnded():
            return f"ended: {ending(state, event)}"
        case _:
            return ""


def task_of(launch: Launch, state: State) -> str:
    """Return what a launch does, in a few words."""
    if isinstance(launch, events.AttemptLaunched):
        node = state.tree.nodes[launch.node]
        return f"attempt {launch.attempt}, node {node.id}: {cut(whole(state, node), 120)}"
    if isinstance(launch, events.ReflectionLaunched):
        return _asking(launch)
    if launch.purpose == "baseline":
        return "measuring the baseline"
    if launch.purpose == "final":
        return f"final measurement, {many(len(launch.runs), 'evaluation')} on fresh seeds"
    challenge = state.contest.challenge
    pair = len(challenge.pairs) + 1 if challenge is not None else 1
    return f"comparing attempt {launch.attempt} with the champion, pair {pair}"


def _asking(launch: events.ReflectionLaunched) -> str:
    if launch.node == events.ROOT_DRAFT:
        what = "the first plan"
    else:
        what = f"{many(launch.asked, 'plan')} below node {launch.node}"
    return f"asking for {what}" + (", once more" if launch.problems else "")


def _answered(event: events.ReflectionSettled, state: State) -> str:
    if event.outcome != "scored":
        return f"reflection {event.work}: {_why(event)}"
    back = f", {len(event.rejected)} sent back" if event.rejected else ""
    saved = sum(rejected.saved for rejected in event.rejected)
    if saved and state.beliefs is not None:
        back += f", {number(saved)} {state.beliefs.first.limits[0].unit} saved"
    return f"{many(len(event.children), 'new plan')}{back}"


def _launched(event: Launch, state: State) -> str:
    # A comparison goes pair by pair; its judgement says what came of all of them.
    challenge = state.contest.challenge
    if isinstance(event, events.MeasurementLaunched) and event.purpose == "confirmation":
        first = challenge is not None and not challenge.pairs and event.trial == 1
        return task_of(event, state) if first else ""
    again = f", try {event.trial}" if event.trial > 1 else ""
    return task_of(event, state) + again


def _taken_up(state: State) -> str:
    """Return what a person can do about a run that has ended; empty for one that goes on."""
    if state.ended is None:
        return ""
    more = "raise a limit (--attempts N) or " if state.ended.status == "budget" else ""
    return f"this run has ended; {more}choose another name with --run"


def _measured(event: events.MeasurementSettled, state: State) -> str:
    if event.outcome != "scored":
        return f"measurement {event.work}: {_why(event)}"
    if event.work == "m1" and state.baseline_values:
        score = state.selection_mean(state.baseline_values)
        return f"baseline: {state.task.metric.name} {number(score)}"
    return ""


def _attempted(event: events.AttemptSettled, state: State) -> str:
    node = state.tree.nodes[state.nodes[event.attempt]]
    if event.outcome == "scored":
        score = f"{state.task.metric.name} {number(node.score)}"
        return f"attempt {event.attempt}: {score}{learned(state, node.id)}"
    return f"attempt {event.attempt}: {_why(event)}"


def _why(event: Settled) -> str:
    return cut(f"{event.outcome}, {event.reason}: {event.detail}", 160)


def _expected(state: State) -> str:
    agent = state.started.agent if state.started is not None else LEVERS
    cost = expected_cost(state, agent)
    time = duration(cost.seconds)
    return f"expected: {many(cost.evaluations, 'evaluation')}, {time}, {money(cost)}"


def _judged(event: events.Judged, state: State) -> str:
    node = state.nodes[event.attempt]
    gain = f"gain {signed(event.estimate)} ({interval(event.low, event.high)})"
    measured = f"{gain} on {many(event.pairs, 'fresh pair')}" if event.pairs else event.reason
    who = f"node {node} ({cut(whole(state, state.tree.nodes[node]), 120)})"
    if event.promoted:
        return f"{who} is the new champion: {measured}"
    return f"{who} is not confirmed: {measured}"


def champion_line(state: State) -> str:
    """Return who is champion and where it stands beside the baseline."""
    if state.reward is None:
        return "the baseline is not measured yet"
    sign, metric = state.task.metric.sign, state.task.metric.name
    baseline = f"baseline {number(state.reward.center)}"
    if state.contest.champion == state.baseline:
        return f"the baseline, {metric} {number(state.reward.center)}: nothing confirmed yet"
    node = state.tree.nodes[state.contest.champion]
    level = number(sign * state.contest.standing.mean)
    what = settings(state.configuration(node)) if state.with_levers else change(state, node)
    return f"node {node.id}, {metric} about {level}, {baseline} · {cut(what, 120)}"


def budget_line(state: State, elapsed: float) -> str:
    """Return what is left under each limit."""
    left = state.ledger.remaining(state.budget, elapsed)
    parts = [
        f"{max(getattr(left, name), 0):,.5g} of {limit:,.5g} {unit}"
        for name, unit in _UNITS
        if (limit := getattr(state.budget, name)) is not None
    ]
    return " · ".join(parts)


_UNITS = (("attempts", "attempts"), ("tokens", "tokens"), ("usd", "USD"), ("seconds", "s of time"))
