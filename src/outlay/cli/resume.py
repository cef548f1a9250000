"""`outlay resume`: go on with a run by its name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from outlay.ablations.components import origin_of
from outlay.ablations.planning import Plan
from outlay.ablations.running import is_ablation
from outlay.cli import _options
from outlay.cli._conduct import conduct
from outlay.cli.ablate import carry_out
from outlay.errors import InputError
from outlay.runs import Settings, default_store, load_state, run_folder
from outlay.sqlite_store import SqliteStore


@click.command()
@click.argument("run", required=False)
@_options.store
@click.option("--workers", type=click.IntRange(min=1), help="Attempts at once; as before.")
@_options.limits
@_options.as_json
def command(
    run: str | None, store: Path | None, workers: int | None, as_json: bool, **values: object
) -> int:
    """Go on with RUN of this folder's store, as the command that began it would.

    A limit given here replaces the run's; a raised one opens a run that had spent its budget.
    """
    path = store or default_store(Path())
    with SqliteStore(path) as opened:
        name = _options.one_run(opened, run)
        state = load_state(opened, name)
    started = state.started
    if started is None:
        raise InputError(f"run {name!r}: found no event in it, allowed: a run that has begun")
    task = replace(state.task, budget=state.budget.with_limits(_options.budget(dict(values))))
    settings = Settings(seed=started.seed, agent=started.agent, workers=workers or state.workers)
    if is_ablation(task):
        objects = run_folder(path, name) / "objects"
        origin = origin_of(started.files, objects)
        # The files of a task's ablation are taken from its folder, to see whether they changed.
        files = started.files if origin is not None else None
        plan = Plan(task=task, run=name, store=path, origin=origin, files=files)
        return carry_out(plan, settings, as_json=as_json)
    return conduct(task, name, settings, path, where=f"run {name!r}", as_json=as_json)
