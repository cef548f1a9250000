"""A node's plan in Markdown, and the modification that makes a child's plan from its parent's."""

from __future__ import annotations

import difflib
import json
import shlex
from typing import TYPE_CHECKING, NamedTuple

from outlay.agents.subject import chosen, described
from outlay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from outlay.agents.levers import Proposal
    from outlay.task import Task


class Edit(NamedTuple):
    """One replacement in a plan; `search` must occur exactly once."""

    search: str
    replace: str


ROOT_HYPOTHESIS = "The program as it stands is the baseline that every change is compared with."


def plan(task: Task, config: Mapping[str, str], hypothesis: str) -> str:
    """Return the complete plan of one configuration, ending with a newline."""
    options = chosen(task.levers, config)
    settings = [
        f"- {lever.name} = {option.name}: {described(option)}"
        for lever, option in zip(task.levers, options, strict=True)
    ]
    sections = {
        f"# Plan: {task.name}": [],
        "## Question": [task.question.strip()],
        "## Hypothesis": [hypothesis],
        "## Settings": settings or ["No levers."],
        "## How it is measured": _measured(task),
        "## Commands": _commands(task, tuple(arg for o in options for arg in o.args)),
    }
    return (
        "\n\n".join("\n\n".join([k, "\n".join(v)]) if v else k for k, v in sections.items()) + "\n"
    )


def edits_between(parent: str, child: str) -> tuple[Edit, ...]:
    """Return edits that turn the parent's plan into the child's, each with a single match."""
    before, after = parent.splitlines(keepends=True), child.splitlines(keepends=True)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    edits: list[Edit] = []
    text = parent
    for tag, i, j, k, end in reversed(matcher.get_opcodes()):
        if tag != "equal":
            edit = _with_context(before, (i, j), "".join(after[k:end]), text)
            edits.append(edit)
            text = text.replace(edit.search, edit.replace)
    if text != child:
        return (Edit(parent, child),)
    return tuple(edits)


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """Return the text with every edit applied in order.

    Raises:
        InputError: If the text to search for is empty, absent, or there more than once.
    """
    for number, (search, replacement) in enumerate(edits, 1):
        first = text.find(search) if search else -1
        if first < 0 or text.find(search, first + 1) >= 0:
            found = "no match" if first < 0 else "several matches"
            raise InputError(
                f"edit {number} of {len(edits)}: found {found} of {search[:60]!r}, allowed: one match"
            )
        text = text[:first] + replacement + text[first + len(search) :]
    return text


def modification(parent: str, child: str) -> str:
    """Return the text of `diff.py`, a program that writes the child's plan from the parent's."""
    edits = edits_between(parent, child)
    literals = "".join(f"    ({e.search!a}, {e.replace!a}),\n" for e in edits)
    return _TEMPLATE.replace("    # EDITS\n", literals)


def changes_text(task: Task, parent: Mapping[str, str], proposal: Proposal) -> str:
    """Return `changes.md`: what the child does differently, one line a lever."""
    before = {
        lever.name: o for lever, o in zip(task.levers, chosen(task.levers, parent), strict=True)
    }
    after = {
        lever.name: o
        for lever, o in zip(task.levers, chosen(task.levers, proposal.config), strict=True)
    }
    return "".join(
        f"- {name}: {before[name].name} to {option} ({described(after[name])})\n"
        for name, option in proposal.changes
    )


def prior_json(proposal: Proposal) -> str:
    """Return the text of `prior.json`: what was expected of the child before it ran."""
    record = {
        "estimate": proposal.prior,
        "hypothesis": proposal.hypothesis,
        "rationale": proposal.rationale,
        "changes": dict(proposal.changes),
        "risks": proposal.risks,
    }
    return json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _measured(task: Task) -> list[str]:
    metric = task.metric
    source = "standard output" if metric.source == "stdout" else f"`{metric.source}`"
    kind = "seeds" if task.evaluator.seeded else "repeats"
    count = len(task.seeds.selection)
    lines = [f"- `{metric.name}`, {metric.direction}d, read from {source}"]
    lines += [f"- mean over {count} {kind}; a gain is confirmed on {kind} never used before"]
    if metric.low is not None or metric.high is not None:
        low = "-inf" if metric.low is None else f"{metric.low:g}"
        high = "inf" if metric.high is None else f"{metric.high:g}"
        lines += [f"- plausible from {low} to {high}"]
    return lines


def _commands(task: Task, args: tuple[str, ...]) -> list[str]:
    evaluator = task.evaluator
    command = shlex.join([*evaluator.command, *args]) if evaluator.command else ""
    lines = [f"    {shlex.join(evaluator.check)}"] if evaluator.check else []
    return [*lines, f"    {command or evaluator.function}".replace("'{seed}'", "{seed}")]


def _with_context(before: list[str], span: tuple[int, int], new: str, text: str) -> Edit:
    """Return the edit of lines `span`, widened by equal lines until it matches once."""
    start, end = span
    low, high = start, end
    while low > 0 or high < len(before):
        search = "".join(before[low:high])
        if search and text.count(search) == 1:
            break
        low, high = max(low - 1, 0), high
    search = "".join(before[low:high])
    return Edit(search, "".join(before[low:start]) + new)


_TEMPLATE = '''"""Writes this node's plan: python diff.py PARENT_PLAN, or the parent's plan on stdin."""

import sys

EDITS = [
    # EDITS
]


def main() -> None:
    if len(sys.argv) > 1:
        with open(sys.argv[1], "rb") as file:
            text = file.read().decode()
    else:
        text = sys.stdin.buffer.read().decode()
    for number, (search, replace) in enumerate(EDITS, 1):
        first = text.find(search)
        if first < 0 or text.find(search, first + 1) >= 0:
            sys.exit(f"edit {number} of {len(EDITS)} does not match exactly once")
        text = text[:first] + replace + text[first + len(search):]
    sys.stdout.buffer.write(text.encode())


main()
'''
