"""`outlay show`: a run, or one of its nodes with its plan, evaluations and log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from outlay import events
from outlay.believed import believed
from outlay.cli._reading import answer, common_options, read_run
from outlay.errors import InputError
from outlay.jobs import job_id
from outlay.planfiles import plan_text
from outlay.report import belief_cards, history, log_tail
from outlay.report.attempt_cards import command_lines
from outlay.report.outline import telling
from outlay.report.programs import node_of
from outlay.report.tree_cards import text_tree, tree_lines
from outlay.report.words import (
    STATUS,
    duration,
    finding,
    interval,
    many,
    number,
    settings,
    signed,
    spent_usd,
    status,
    tokens,
)
from outlay.report.working import working
from outlay.summary import Summary, summarise
from outlay.usage import Used, used_by

if TYPE_CHECKING:
    from pathlib import Path

    from outlay.cli._reading import Found
    from outlay.state import State


class NodeLine(msgspec.Struct, frozen=True, kw_only=True):
    """One node of the tree."""

    node: int
    parent: int | None
    status: str
    attempt: int
    score: float | None
    pruned: bool
    changes: dict[str, str]


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """A run: its summary, what was found in words, and its tree."""

    summary: Summary
    finding: str
    tree: list[NodeLine]


class NodeView(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of one node.

    `drafted` is the reflection by a model that its plan is from, `ended` holds how each of its
    tries ended, and `used` what its agent used in those of them that had one.
    """

    node: int
    parent: int | None
    status: str
    attempt: int
    score: float | None
    prior: float
    configuration: dict[str, str]
    plan: str
    command: list[str]
    drafted: str
    ended: list[events.AttemptSettled]
    used: list[Used]
    judged: list[events.Judged]
    log: str


@click.command()
@click.argument("run", required=False)
@click.option("--attempt", type=click.IntRange(1), help="Number of an attempt.")
@click.option("--node", help="Number of a node, `baseline` or `champion`.")
@common_options
def command(
    run: str | None, attempt: int | None, node: str | None, store: Path | None, as_json: bool
) -> None:
    """Show a run, or one attempt or node of it.

    RUN may be left out where the store has one run; a task's folder stands for its only run.
    """
    if attempt is not None and node is not None:
        raise InputError("--attempt and --node: found both, allowed: one of them")
    found = read_run(store, run)
    if attempt is None and node is None:
        answer(run_view(found), _run_text(found), as_json=as_json)
        return
    chosen = node_of(found.state, node) if node else _node_of_attempt(found.state, attempt or 0)
    view = node_view(found, chosen)
    answer(view, _node_text(found.state, view), as_json=as_json)


def _node_of_attempt(state: State, attempt: int) -> int:
    if attempt > state.attempts:
        raise InputError(f"--attempt: found {attempt}, allowed: 1 to {state.attempts}")
    return state.nodes[attempt]


def run_view(found: Found) -> RunView:
    """Return the run as data."""
    state = found.state
    report = found.folder / "report.html"
    tree = [
        NodeLine(
            node=node.id,
            parent=node.parent.id if node.parent else None,
            status=node.status,
            attempt=node.attempt,
            score=node.score,
            pruned=node.pruned,
            changes=dict(node.proposal.changes) if node.proposal else {},
        )
        for node in state.tree.nodes
    ]
    summary = summarise(state, found.name, str(report) if report.exists() else "")
    return RunView(summary=summary, finding=finding(state), tree=tree)


def _beliefs(state: State) -> list[str]:
    return [] if state.beliefs is None else ["", *belief_cards.lines(believed(state.beliefs))]


def _run_text(found: Found) -> str:
    state = found.state
    keep = telling(state)
    spent = state.ledger.spent
    lines = [
        f"{found.name}: {state.task.question.strip()}",
        status(state),
        "",
        finding(state),
        *(f"evaluator: {problem}" for problem in state.problems),
        *_beliefs(state),
        "",
        text_tree(list(tree_lines(state, keep))),
        "",
        (
            f"{many(state.attempts, 'attempt')}, {duration(spent.seconds)} of work, "
            f"{spent.tokens:,.0f} tokens, {spent_usd(state, spent.tokens, spent.usd)}"
        ),
        *(f"{used.role:<9} {used.who}: {tokens(used)}" for used in state.agents.values()),
        *_now(found),
    ]
    return "\n".join(lines)


def _now(found: Found) -> list[str]:
    """Return what agents in flight are doing."""
    flying = [job_id(work.launch) for work in found.state.works.values() if work.in_flight]
    return [f"now       {job}: {does}" for job in flying if (does := working(found.folder, job))]


def node_view(found: Found, number: int) -> NodeView:
    """Return a node as data; the baseline outside a tree is shown with its first plan."""
    state = found.state
    node = state.tree.nodes[max(number, 0)]
    settled = [entry.event for entry in found.entries]
    ended = [
        event
        for event in settled
        if isinstance(event, events.AttemptSettled) and event.attempt == node.attempt
    ]
    used = [used_by(event, "executor", state) for event in ended]
    draft = history(found.entries).drafted.get(number)
    job = f"a{node.attempt}.{ended[-1].trial}" if ended else ""
    return NodeView(
        node=number,
        parent=node.parent.id if node.parent else None,
        status=node.status,
        attempt=node.attempt,
        score=node.score,
        prior=node.prior,
        configuration=state.configuration(node),
        plan=plan_text(state, node),
        command=command_lines(state, number),
        drafted=draft.work if draft is not None else "",
        ended=ended,
        used=[found for found in used if found is not None],
        judged=[found.event for found in state.judgements if found.node == number],
        log=log_tail(found.folder, job) if job else "",
    )


def _node_text(state: State, view: NodeView) -> str:
    attempt = f", attempt {view.attempt}" if view.attempt else ""
    lines = [f"node {view.node}{attempt}: {STATUS.get(view.status, view.status)}"]
    if view.score is not None:
        lines.append(f"{state.task.metric.name} {number(view.score)} on the selection seeds")
    if view.configuration:
        lines.append(f"configuration: {settings(view.configuration)}")
    lines += [f"command: {line}" for line in view.command]
    if view.drafted:
        lines.append(f"plan drafted by {state.clients['reflector']} ({view.drafted})")
    for event in view.ended:
        why = f", {event.reason}: {event.detail}" if event.reason else ""
        lines.append(
            f"try {event.trial}: {event.outcome}{why} ({duration(event.charge.seconds)}, "
            f"sandbox {event.sandbox or 'unknown'})"
        )
        lines += [f"  seed {e.seed}: {e.fault or number(e.value)}" for e in event.evaluations]
    lines += [f"{used.who}: {tokens(used)}" for used in view.used]
    for judged in view.judged:
        verdict = "promoted" if judged.promoted else "rejected"
        gain = f"{signed(judged.estimate)} ({interval(judged.low, judged.high)})"
        lines.append(f"{verdict} after {many(judged.pairs, 'pair')}, gain {gain}: {judged.reason}")
    lines += ["", view.plan.rstrip()]
    lines += ["", "end of its output:", view.log] if view.log else []
    return "\n".join(lines)
