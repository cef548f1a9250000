"""The winner's papers: what it is, how to run it, and what speaks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlay.planfiles import plan_text
from outlay.report.attempt_cards import command_lines
from outlay.report.markdown import fenced, plain
from outlay.report.words import (
    finding,
    interval,
    many,
    node_name,
    number,
    off_baseline,
    settings,
    signed,
    title,
)

if TYPE_CHECKING:
    from outlay.state import State


def _headline(state: State, node: int) -> str:
    """Return one line that names the change."""
    changed = settings(off_baseline(state, node))
    return f"{state.task.name}: {changed or node_name(state, node)}"


def evidence(state: State, node: int, run: str, *, changes_files: bool) -> str:
    """Return Markdown with the node's plan, its command line and its evidence.

    Args:
        state: The run's state.
        node: The node.
        run: Name of the run.
        changes_files: Whether the node's files differ from the start's.
    """
    commands = "\n".join(command_lines(state, node))
    how = _how(state, node, changes_files=changes_files)
    parts = [
        f"# {plain(_headline(state, node))}",
        f"Node {node} of run {plain(run)}. Question: {plain(title(state.task.question))}",
        f"## How to run it\n\n{how}:\n\n{fenced(commands)}",
        f"## Evidence\n\n{plain(finding(state))}\n\n{_scores(state, node)}",
        f"## Plan\n\n{fenced(plan_text(state, state.tree.nodes[max(node, 0)]))}",
    ]
    return "\n\n".join(parts) + "\n"


def _how(state: State, node: int, *, changes_files: bool) -> str:
    if changes_files:
        return "Besides the changed files, evaluate it with"
    if off_baseline(state, node):
        return "It changes no file; the change is in the command line and its environment"
    return "It changes nothing: it is the program as it stands, evaluated with"


def _scores(state: State, node: int) -> str:
    lines = []
    chosen = state.tree.nodes[max(node, 0)]
    if chosen.score is not None:
        judged = any(found.node == node for found in state.judgements)
        flatters = " (these chose it for a comparison, so this flatters)" if judged else ""
        lines.append(f"- selection seeds: {number(chosen.score)}{flatters}")
    for found in state.judgements:
        if found.node == node:
            event = found.event
            verdict = "promoted" if event.promoted else "rejected"
            lines.append(
                f"- {verdict} against {node_name(state, found.incumbent)} after "
                f"{many(event.pairs, 'fresh pair')}: gain {signed(event.estimate)} "
                f"({interval(event.low, event.high)})"
            )
    if node != state.contest.champion:
        lines.append(f"- not the champion, which is {node_name(state, state.contest.champion)}")
    return "\n".join(lines)
