"""`outlay search`: the main job."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
import msgspec

from outlay import taskfile
from outlay.agents import access
from outlay.cli import _options
from outlay.cli._conduct import conduct
from outlay.cli.doctor import in_words
from outlay.doctor import examine
from outlay.errors import BudgetError
from outlay.runs import Settings, check_run_name, default_store

if TYPE_CHECKING:
    from pathlib import Path

    from outlay.task import Task


@click.command()
@click.argument("path", default=".")
@_options.store
@click.option("--run", help="Name of the run; the task's name by default.")
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    help="Seed of every random stream.",
)
@click.option(
    "--policy", help="adaptive, fixed:A, random, greedy, uct, linear, single or best-of-n."
)
@_options.agent
@click.option(
    "--workers", default=1, show_default=True, type=click.IntRange(min=1), help="Attempts at once."
)
@_options.limits
@click.option(
    "--dry-run",
    is_flag=True,
    help="Check, evaluate the program as it stands, estimate; record nothing.",
)
@_options.as_json
def command(
    path: str,
    store: Path | None,
    run: str | None,
    seed: int,
    policy: str | None,
    workers: int,
    dry_run: bool,
    as_json: bool,
    **values: Any,
) -> int:
    """Search over plans for the task in PATH, a folder with outlay.toml or a task file.

    A folder in the autoresearch layout, or with a Harbor task (task.toml), needs no task file.

    The same command continues a run; raised limits continue one that had spent its budget.
    """
    folder = _options.folder_of(path)
    task = taskfile.load(path, _options.budget(values))
    task, agent = _options.with_agent(task, values)
    suited = task if policy is not None else access.suited(task, agent)
    task = _options.with_policy(suited, policy)
    settings = Settings(seed=seed, agent=agent, workers=workers)
    where = _options.where(path)
    if dry_run or not (task.levers or agent != "levers"):
        return _only_look(task, settings, where, as_json=as_json)
    for note in taskfile.notes(task):
        sys.stderr.write(f"outlay: task.toml: {note}\n")
    name = task.name if run is None else check_run_name(run)
    place = store or default_store(folder)
    return conduct(task, name, settings, place, where=where, as_json=as_json)


def _only_look(task: Task, settings: Settings, where: str, *, as_json: bool) -> int:
    findings = examine(task, settings, where)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(findings) + b"\n")
    else:
        sys.stdout.write(in_words(findings) + "\n")
    if not task.levers and settings.agent == "levers":
        raise BudgetError(
            f"{task.name}: the baseline is measured, and there is nobody to try anything; add "
            "[levers.NAME] tables in outlay.toml, or give --agent codex, claude, opencode or "
            "command:…"
        )
    return 0 if findings.ok else 2
