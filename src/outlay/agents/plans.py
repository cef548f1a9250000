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
        **_evaluation(task, tuple(arg for o in options for arg in o.args)),
    }
    return _joined(sections)


def frame(task: Task) -> str:
    """Return what a model's plan does not say: the question, the metric and the commands."""
    return _joined({"## Question": [task.question.strip()], **_evaluation(task, ())})


def _evaluation(task: Task, args: tuple[str, ...]) -> dict[str, list[str]]:
    return {"## How it is measured": _measured(task), "## Commands": _commands(task, args)}


def _joined(sections: Mapping[str, list[str]]) -> str:
    return (
        "\n\n".join("\n\n".join([k, "\n".join(v)]) if v else k for k, v in sections.items()) + "\n"
    )


def edits_between(parent: str, child: str) -> tuple[Edit, ...]:
    """Return edits that turn the parent's plan, which is not empty, into the child's."""
    before, after = parent.splitlines(keepends=True), child.splitlines(keepends=True)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    edits: list[Edit] = []
    text = parent
    # From the end, so that the lines above an edit are still those of the parent.
    for tag, i, j, k, end in reversed(matcher.get_opcodes()):
        if tag != "equal":
            low = _unique_from(before, i, j, text)
            if low is None:
                return (Edit(parent, child),)
            edits.append(Edit("".join(before[low:j]), "".join([*before[low:i], *after[k:end]])))
            text = text.replace(*edits[-1])
    return tuple(edits)


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """Return the text with every edit applied in order.

    Raises:
        InputError: If the text to search for is empty, absent, or there more than once.
    """
    for number, (search, replacement) in enumerate(edits, 1):
        if not _once(text, search):
            found = "several matches" if search and search in text else "no match"
            raise InputError(
                f"edit {number} of {len(edits)}: found {found} of {search[:60]!r}, "
                "allowed: exactly one match"
            )
        text = text.replace(search, replacement)
    return text


def _once(text: str, search: str) -> bool:
    first = text.find(search)
    return bool(search) and first >= 0 and text.find(search, first + 1) < 0


def modification(edits: Sequence[Edit]) -> str:
    """Return the text of `diff.py`, a program that makes the edits to the parent's plan."""
    literals = "".join(f"    ({e.search!a}, {e.replace!a}),\n" for e in edits)
    return _TEMPLATE.replace("    # EDITS\n", literals)


def changes_text(task: Task, parent: Mapping[str, str], proposal: Proposal) -> str:
    """Return `changes.md`: what the child does differently, one line a lever."""
    named = dict(proposal.changes)
    pairs = zip(task.levers, chosen(task.levers, proposal.config), strict=True)
    return "".join(
        f"- {lever.name}: {parent[lever.name]} to {option.name} ({described(option)})\n"
        for lever, option in pairs
        if lever.name in named
    )


def prior_json(proposal: Proposal, summary: str = "") -> str:
    """Return the text of `prior.json`: what was expected of the child before it ran.

    Args:
        proposal: The child.
        summary: Its changes in words, where it changes no levers.
    """
    record = {
        "estimate": proposal.prior,
        "hypothesis": proposal.hypothesis,
        "rationale": proposal.rationale,
        "changes": summary or dict(proposal.changes),
        "risks": proposal.risks,
    }
    return json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _measured(task: Task) -> list[str]:
    metric = task.metric
    source = "standard output" if metric.source == "stdout" else f"`{metric.source}`"
    if task.evaluator.container:
        source = "the verifier's reward file"
    kind = "seed" if task.evaluator.seeded else "repeat"
    count = len(task.seeds.selection)
    several = kind if count == 1 else f"{kind}s"
    lines = [f"- `{metric.name}`, {metric.direction}d, read from {source}"]
    lines += [f"- mean over {count} {several}; a gain is confirmed on {kind}s never used before"]
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


def _unique_from(before: list[str], start: int, end: int, text: str) -> int | None:
    """Return the last line up to `start` from which the lines to `end` are in the text once."""
    starts = range(start, -1, -1)
    return next((low for low in starts if _once(text, "".join(before[low:end]))), None)


_TEMPLATE = '''"""Writes the plan from its parent's: python diff.py PLAN, or PLAN on stdin."""

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
