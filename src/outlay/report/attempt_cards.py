"""The attempts one by one, with the end of their logs."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from outlay import events
from outlay.agents.subject import subject
from outlay.report.agent_cards import of_attempt
from outlay.report.blocks import Code, Fold, Table, Text
from outlay.report.words import cut, duration, number, settings, standing_word, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from outlay.events import AttemptSettled, Evaluation
    from outlay.report.blocks import Block
    from outlay.report.history import Try
    from outlay.report.view import View
    from outlay.state import State
    from outlay.task import Task

WITH_LOGS = 300
"""Attempts that are written out; of more, the best, the failed and the latest."""


def chosen_attempts(view: View) -> list[Try]:
    """Return the attempts to write out, in the order they ended."""
    state, done = view.state, view.history.done
    if len(done) <= WITH_LOGS:
        return done
    judged = {judgement.attempt for judgement in state.judgements}
    wanted = {f"a{attempt}" for attempt in judged}
    wanted |= {t.work for t in done if t.event.outcome != "scored"}
    rest = WITH_LOGS // 2
    return [t for k, t in enumerate(done) if t.work in wanted or k >= len(done) - rest][
        -WITH_LOGS:
    ]


def attempts(view: View) -> list[Block]:
    """Return every attempt as a line with its details under it."""
    done = view.history.done
    if not done:
        return [Text(text="No attempt has ended.")]
    chosen = chosen_attempts(view)
    blocks: list[Block] = [
        _fold(view, t, t.event) for t in chosen if isinstance(t.event, events.AttemptSettled)
    ]
    if len(chosen) < len(done):
        text = f"{len(chosen)} of {len(done)} attempts: the judged, the failed, the latest."
        blocks.insert(0, Text(text=text))
    return blocks


def _fold(view: View, ended: Try, event: AttemptSettled) -> Fold:
    state = view.state
    node = state.tree.nodes[state.nodes[event.attempt]]
    mark = standing_word(state, node)
    result = event.reason or event.outcome if node.score is None else number(node.score)
    title = f"{event.attempt} · {result} · {cut(whole(state, node), 120)}"
    return Fold(
        title=title,
        blocks=[*_facts(view, event), *_log(view, event)],
        mark=mark,
        important=mark in ("champion", "failed", "lost"),
    )


def _facts(view: View, event: AttemptSettled) -> list[Block]:
    state = view.state
    node = state.tree.nodes[state.nodes[event.attempt]]
    blocks: list[Block] = [
        Text(
            text=f"Node {node.id}, {duration(event.charge.seconds)}, sandbox "
            f"{event.sandbox or 'unknown'}, try {view.history.tries.get(event.attempt, 1)}."
        )
    ]
    blocks += of_attempt(view, event)
    if event.outcome != "scored":
        blocks.append(Text(text=f"{event.reason or event.outcome}: {event.detail}", tone="bad"))
    if node.proposal is not None and node.proposal.hypothesis:
        text = f"Expected (prior {node.proposal.prior:.2f}): {cut(node.proposal.hypothesis, 300)}"
        blocks.append(Text(text=text))
    if event.evaluations:
        blocks.append(evaluations_table(event.evaluations))
    return blocks


def evaluations_table(found: tuple[Evaluation, ...]) -> Table:
    """Return the evaluations, one a row."""
    rows = [
        (str(e.seed), e.fault or number(e.value), duration(e.seconds), _metrics(e)) for e in found
    ]
    return Table(
        head=("seed", "value", "time", "secondary"), rows=rows, numeric=frozenset({0, 1, 2})
    )


def _metrics(found: Evaluation) -> str:
    return ", ".join(f"{name} {number(value)}" for name, value in found.metrics.items())


def _log(view: View, event: AttemptSettled) -> list[Block]:
    text = view.logs.get(f"a{event.attempt}.{event.trial}", "")
    return [Code(text=text)] if text else [Text(text="No log was kept.", tone="note")]


def broken(view: View) -> list[Block]:
    """Return the tries that were interrupted or met a fault of the machine, if there are any."""
    if not view.history.broken:
        return []
    rows = [
        (
            t.work,
            str(t.event.trial),
            t.event.outcome,
            t.event.reason,
            duration(t.event.charge.seconds),
            cut(t.event.detail, 120),
        )
        for t in view.history.broken[-100:]
    ]
    text = "What they used is charged; they were tried again with the same random streams."
    head = ("work", "try", "outcome", "reason", "used", "detail")
    return [Text(text=text), Table(head=head, rows=rows, numeric=frozenset({1, 4}))]


def command_lines(state: State, number: int) -> list[str]:
    """Return how the node's program is evaluated: its environment and its command line."""
    node = state.tree.nodes[max(number, 0)]
    return command_of(state.task, state.configuration(node) if state.with_levers else {})


def command_of(task: Task, config: Mapping[str, str]) -> list[str]:
    """Return how a configuration is evaluated; an empty one leaves the program as it stands."""
    evaluator = task.evaluator
    if evaluator.function is not None:
        return [f"{evaluator.function}({settings(config)})"]
    what = subject(task.levers if config else (), config, label="", files="")
    args, env = what.args, what.env
    variables = [f"{name}={shlex.quote(value)}" for name, value in env.items()]
    command = shlex.join([*evaluator.command, *args]).replace("'{seed}'", "{seed}")
    return [" ".join([*variables, command])]


def environment_of(state: State, number: int) -> dict[str, str]:
    """Return the environment variables that the node's options set."""
    levers = state.task.levers if state.with_levers else ()
    chosen = state.configuration(state.tree.nodes[max(number, 0)])
    return dict(subject(levers, chosen, label="", files="").env)
