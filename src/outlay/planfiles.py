"""The plan tree as files in the run's folder, for people and for rebuilding plans.

tree/0007-depth-8/plan.md      the node's complete plan
                  diff.py      writes it from the parent's plan
                  changes.md   what differs from the parent
                  prior.json   what was expected before it ran
results.tsv                    one line an attempt, for workspaces in autoresearch's layout

Everything in here follows from the log, so what is missing is written again.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from outlay import _autoresearch, events
from outlay.agents.levers import Proposal
from outlay.agents.plans import (
    ROOT_HYPOTHESIS,
    Edit,
    changes_text,
    edits_between,
    modification,
    plan,
    prior_json,
)
from outlay.agents.reflections.texts import plan_of
from outlay.execution.folder import write_whole
from outlay.report.markdown import fenced
from outlay.report.programs import patch_between

if TYPE_CHECKING:
    from collections.abc import Iterable

    from outlay.allocation.tree import Node
    from outlay.events import AttemptSettled, Child, Entry, Evaluation
    from outlay.state import State

RESULTS = "results.tsv"

_OPEN_HYPOTHESIS = "Some change of the editable files helps."
_MEGABYTES = 1024.0


class PlanFiles:
    """Keeps the files of one run up to date while it goes on.

    Args:
        folder: The run's folder.
        state: Its state so far.
        entries: Its log so far.
    """

    def __init__(self, folder: Path, state: State, entries: Iterable[Entry] = ()) -> None:
        self._folder = folder
        self._next = 0
        self._settled: list[AttemptSettled] = []
        self._baseline: tuple[Evaluation, ...] = ()
        self.step(list(entries), state)

    def step(self, entries: list[Entry], state: State) -> None:
        """Write what these entries added; meant for the driver's `on_step`."""
        if state.started is None:
            return
        self._next = write_new(state, self._folder, self._next)
        for entry in entries:
            if isinstance(entry.event, events.MeasurementSettled) and not self._baseline:
                self._baseline = entry.event.evaluations
            if isinstance(entry.event, events.ReflectionSettled):
                _write_node(state, self._folder, state.tree.root)
        final = [e.event for e in entries if isinstance(e.event, events.AttemptSettled)]
        self._settled += [e for e in final if e.outcome in ("scored", "failed", "lost")]
        for event in final:
            write_patch(state, self._folder, state.tree.nodes[state.nodes[event.attempt]])
        told = (events.AttemptSettled, events.Judged, events.ScaleFixed)
        if any(isinstance(entry.event, told) for entry in entries) and _is_autoresearch(state):
            write_whole(self._folder / RESULTS, results(state, self._settled, self._baseline))


def write_new(state: State, folder: Path, first: int) -> int:
    """Write the files of nodes numbered `first` and up that are not there; return the next one.

    Args:
        state: The run's state.
        folder: The run's folder.
        first: 0 looks at every node.
    """
    nodes = state.tree.nodes
    for node in nodes[first:]:
        _write_node(state, folder, node)
    return len(nodes)


def _write_node(state: State, folder: Path, node: Node) -> None:
    """Write the node's files that are not there; the root's plan may have come only now."""
    place = folder / "tree" / folder_name(node)
    place.mkdir(parents=True, exist_ok=True)
    for name, text in node_files(state, node).items():
        if not (place / name).exists() or node.parent is None:
            write_whole(place / name, text)


def write_patch(state: State, folder: Path, node: Node) -> None:
    """Add what the executor did to the `changes.md` of a node that changes no levers."""
    proposal, parent = node.proposal, node.parent
    if proposal is None or parent is None or proposal.changes or node.id not in state.files:
        return
    place = folder / "tree" / folder_name(node) / "changes.md"
    start = state.started.files if state.started is not None else ""
    before = start if proposal.kind == "repeat" else state.files.get(parent.id, start)
    patch = patch_between(before, state.files[node.id], folder / "objects")
    text = f"{proposal.summary or _goes_on(node)}\n{fenced(patch)}\n"
    if not place.exists() or place.read_text(encoding="utf-8") != text:
        write_whole(place, text)


def _goes_on(node: Node) -> str:
    parent = node.parent.id if node.parent is not None else 0
    if node.proposal is not None and node.proposal.kind == "repeat":
        return f"Carries the plan of node {parent} out again, from the start.\n"
    return f"Goes on from node {parent} with the same plan.\n"


def folder_name(node: Node) -> str:
    """Return the name of the node's folder: its number and, in short, what it changes."""
    slug = re.sub(r"[^a-z0-9]+", "-", _idea(node).lower()).strip("-")[:40].strip("-")
    return f"{node.id:04d}-{slug}".strip("-")


def _idea(node: Node) -> str:
    proposal = node.proposal
    if proposal is None or node.parent is None:
        return "root"
    if proposal.edits:
        return f"{proposal.axis}-{proposal.direction}" if proposal.axis else "plan"
    settings = [f"{lever}-{option}" for lever, option in proposal.changes.items()]
    return "-".join(settings) or proposal.kind


def node_files(state: State, node: Node) -> dict[str, str]:
    """Return the node's files by name; the root has its plan only."""
    text = plan_text(state, node)
    proposal = node.proposal
    if proposal is None or node.parent is None:
        return {"plan.md": text}
    record = _record(state, node, proposal)
    changes = proposal.summary or changes_text(
        state.task, state.configuration(node.parent), record
    )
    edits = [Edit(*edit) for edit in proposal.edits]
    return {
        "plan.md": text,
        "diff.py": modification(edits or edits_between(plan_text(state, node.parent), text)),
        "changes.md": changes or _goes_on(node),
        "prior.json": prior_json(record, proposal.summary.strip()),
    }


def plan_text(state: State, node: Node) -> str:
    """Return the node's complete plan: a model's own text, or the settings of the levers.

    A child that goes on without a change has its parent's plan.
    """
    if text := plan_of(node):
        return text
    while node.proposal is not None and not node.proposal.changes and node.parent is not None:
        node = node.parent
    if node.proposal is not None:
        hypothesis = node.proposal.hypothesis
    else:
        hypothesis = ROOT_HYPOTHESIS if state.with_levers else _OPEN_HYPOTHESIS
    return plan(state.task, state.configuration(node), hypothesis)


def _record(state: State, node: Node, proposal: Child) -> Proposal:
    return Proposal(
        config=state.configuration(node),
        changes=tuple(proposal.changes.items()),
        axis=proposal.axis,
        direction=proposal.direction,
        prior=proposal.prior,
        hypothesis=proposal.hypothesis,
        rationale=proposal.rationale,
        risks=proposal.risks,
    )


def _is_autoresearch(state: State) -> bool:
    return _autoresearch.is_autoresearch(Path(state.task.workspace.path))


def results(
    state: State, settled: Iterable[AttemptSettled], baseline: Iterable[Evaluation] = ()
) -> str:
    """Return `results.tsv` as autoresearch writes it; the commit column is a manifest hash.

    A challenger's line comes once it is judged: `keep` if it became champion, else `discard`.

    Args:
        state: The run's state.
        settled: How each attempt ended, in that order.
        baseline: Evaluations of the baseline.
    """
    metric = state.task.metric.name
    lines = [f"commit\t{metric}\tmemory_gb\tstatus\tdescription"]
    if state.started is not None and state.baseline_values:
        score = state.selection_mean(state.baseline_values)
        lines.append(
            f"{state.started.files[:7]}\t{score:.6f}\t{_memory(baseline)}\tkeep\tbaseline"
        )
    waiting = {*state.contest.queue}
    if state.contest.challenge is not None:
        waiting.add(state.contest.challenge.node)
    kept = {judgement.node for judgement in state.judgements if judgement.event.promoted}
    for event in settled:
        node = state.tree.nodes[state.nodes[event.attempt]]
        if node.id not in waiting:
            lines.append(_result(state, node, event, "keep" if node.id in kept else "discard"))
    return "\n".join(lines) + "\n"


def _result(state: State, node: Node, event: AttemptSettled, verdict: str) -> str:
    start = state.started.files if state.started is not None else ""
    commit = (event.files or start)[:7]
    if node.score is None:
        detail = f"{event.reason}: {event.detail}" if event.reason else event.outcome
        return f"{commit}\t0.000000\t0.0\tcrash\t{_cell(detail)}"
    proposal = node.proposal
    what = ", ".join(f"{k} = {v}" for k, v in proposal.changes.items()) if proposal else ""
    what = what or (proposal.summary if proposal else "")
    text = what or f"attempt {event.attempt}, from node {node.parent.id if node.parent else 0}"
    return f"{commit}\t{node.score:.6f}\t{_memory(event.evaluations)}\t{verdict}\t{_cell(text)}"


def _memory(evaluations: Iterable[Evaluation]) -> str:
    """Return the largest peak in gigabytes, as the format writes it."""
    peak = max((e.metrics.get("peak_vram_mb", 0.0) for e in evaluations), default=0.0)
    return f"{peak / _MEGABYTES:.1f}"


def _cell(text: str) -> str:
    return " ".join(text.split())
