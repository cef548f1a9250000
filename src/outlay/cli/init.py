"""`outlay init`: a task file for a folder, from what its evaluator shows."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from outlay import taskfile
from outlay.cli import _guess
from outlay.errors import InputError

if TYPE_CHECKING:
    from typing import Any

    _Given = dict[str, dict[str, str | int | None]]

_TEMPLATE = """\
[task]
name = {name}
question = {question}
protected = [{protected}]

[evaluate]
command = {command}
metric = {metric}  # a JSON object on the last line of stdout, or a `{label}: value` line
direction = {direction}

[limits]
seconds = "10m"  # of one attempt

[budget]
attempts = {attempts}

# A lever is a part of the program with options; the first is the program as it stands.
# The chosen option is appended to the command. Remove the `#` and set sensible values:
{levers}
"""

_EXAMPLE = """\
# [levers.speed]
# options = { off = "", on = "--fast" }"""


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False), default=".")
@click.option("--name", help="Name of the task; the folder's name by default.")
@click.option("--question", help="What you want to find out.")
@click.option("--command", "evaluator", help="Evaluator; {seed} in it becomes the seed.")
@click.option("--metric", help="Name of the number that the evaluator prints.")
@click.option("--direction", type=click.Choice(["maximize", "minimize"]))
@click.option(
    "--attempts",
    type=click.IntRange(min=1),
    help="Limit of a run; 24 by default, or what the folder's layout says.",
)
@click.option("--json", "as_json", is_flag=True, help="Ask nothing and print one JSON object.")
def command(
    folder: str,
    name: str | None,
    question: str | None,
    evaluator: str | None,
    metric: str | None,
    direction: str | None,
    attempts: int | None,
    as_json: bool,
) -> None:
    """Write outlay.toml for FOLDER, with the evaluator, the metric and levers it finds there.

    For a folder whose layout says all that (autoresearch, Harbor), the file holds what people
    change first: name, limits and budget.
    """
    file = Path(folder) / taskfile.NAME
    if file.exists():
        raise InputError(f"{file}: found a task file, allowed: a folder without one")
    if tables := taskfile.layout(Path(folder)):
        given: _Given = {
            "task": {"name": name, "question": question},
            "evaluate": {"command": evaluator, "metric": metric, "direction": direction},
            "budget": {"attempts": attempts},
        }
        _write(file, _for_layout(tables, given), tables, [], as_json)
        return
    found = _guess.look(Path(folder))
    asking = sys.stdin.isatty() and not as_json
    evaluator = _answer("Evaluator command", "--command", evaluator, found.command, asking)
    metric = _answer("Metric", "--metric", metric, found.metric, asking)
    direction = _answer("Direction", "--direction", direction, _guess.direction(metric), asking)
    text = _TEMPLATE.format(
        name=_quoted(name or _guess.task_name(Path(folder))),
        question=_quoted(
            question or f"Which changes {_VERBS.get(direction, 'improve')} {metric}?"
        ),
        protected=", ".join(map(_quoted, found.protected)),
        command=_quoted(evaluator),
        metric=_quoted(metric),
        label=metric,
        direction=_quoted(direction),
        attempts=attempts or _ATTEMPTS,
        levers="\n".join(map(_lever, found.switches)) or _EXAMPLE,
    )
    _write(file, text, {}, [switch.name for switch in found.switches], as_json)


_ATTEMPTS = 24
_VERBS = {"maximize": "raise", "minimize": "lower"}


def _answer(prompt: str, option: str, given: str | None, guess: str | None, asking: bool) -> str:
    if given is not None:
        return given
    if asking:
        return str(click.prompt(prompt, default=guess, err=True))
    if guess is None:
        raise InputError(f"outlay init: {prompt.lower()}: found nothing, allowed: {option} TEXT")
    return guess


def _quoted(text: str) -> str:
    """Return the text as a TOML basic string, which JSON's escapes are a subset of."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _lever(switch: _guess.Switch) -> str:
    options = ", ".join(f"{_quoted(k)} = {_quoted(v)}" for k, v in switch.options)
    return f"# [levers.{switch.name}]\n# options = {{ {options} }}"


def _for_layout(tables: dict[str, dict[str, Any]], given: _Given) -> str:
    """Return the layout's name, limits and budget, and what was given, as a task file."""
    shown = {"task": {"name": tables["task"]["name"]}} | {
        name: tables[name] for name in ("limits", "budget")
    }
    lines = ["# What is left out here is as the folder's layout says; see docs/task-file.md."]
    for name in ("task", "evaluate", "limits", "budget"):
        own = {key: value for key, value in given.get(name, {}).items() if value is not None}
        if values := shown.get(name, {}) | own:
            lines += ["", f"[{name}]", *(f"{key} = {_value(v)}" for key, v in values.items())]
    return "\n".join(lines) + "\n"


def _value(value: str | float) -> str:
    return _quoted(value) if isinstance(value, str) else str(value)


def _write(
    file: Path, text: str, tables: dict[str, dict[str, Any]], levers: list[str], as_json: bool
) -> None:
    """Write a task file that is right, with what the folder's layout adds to it."""
    taskfile.load_text(text, str(file), file.parent, tables)
    with file.open("x", encoding="utf-8") as stream:
        stream.write(text)
    _report(file, levers, as_json)


def _report(file: Path, levers: list[str], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"file": str(file), "suggested_levers": levers}))
        return
    click.echo(f"Wrote {file}.", err=True)
    click.echo(
        "Look through it, switch on some levers, then: outlay doctor, outlay search", err=True
    )
