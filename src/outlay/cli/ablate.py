"""`outlay ablate`: which component does what, and which part of a champion is needed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import msgspec

from outlay import taskfile
from outlay.ablations.components import origin_of, patch_of, take_apart
from outlay.ablations.running import (
    LEAST,
    SurfaceReflector,
    ablation_of,
    is_ablation,
    reasons,
    surface_of,
)
from outlay.ablations.summary import ablated
from outlay.cli import _options
from outlay.cli._conduct import closing, driven
from outlay.cli._reading import read_run, talk
from outlay.doctor import refuse_baseline
from outlay.errors import InputError
from outlay.execution.folder import write_whole
from outlay.report.ablation import between, minimal_words, named, verdict, write_ablation
from outlay.report.programs import prefix_in_repository
from outlay.report.words import many, number, signed
from outlay.runs import Settings, default_store, run_folder
from outlay.task import Budget

if TYPE_CHECKING:
    from outlay.ablations.components import By
    from outlay.ablations.summary import Ablated
    from outlay.driver import Driver
    from outlay.state import State
    from outlay.surfaces.surface import Surface
    from outlay.task import Task


class _Plan(NamedTuple):
    """What to ablate: the task, the run's name, its store, its files unless the task's."""

    task: Task
    run: str
    store: Path
    files: str | None = None


@click.command()
@click.argument("path", metavar="[TASK]", required=False)
@_options.store
@click.option("--run", help="With TASK, name of the new run; alone, the search to take apart.")
@click.option(
    "--budget",
    type=click.IntRange(min=LEAST),
    help="At most N measurements, the baseline included.",
)
@_options.time
@click.option(
    "--by",
    type=click.Choice(["hunk", "file"]),
    default="hunk",
    show_default=True,
    help="What a component of a champion's patch is.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of every random stream.")
@click.option(
    "--workers", default=1, show_default=True, type=click.IntRange(min=1), help="Attempts at once."
)
@_options.as_json
def command(
    path: str | None,
    store: Path | None,
    run: str | None,
    budget: int | None,
    seconds: float | None,
    by: By,
    seed: int,
    workers: int,
    as_json: bool,
) -> int:
    """Find out what each component does, from a few measurements.

    With TASK, a folder or a task file, its levers are the components. Without TASK, --run names a
    search, and the components are what its champion changed: levers, or the hunks of its patch.
    The same command continues a run; a raised budget continues one that had spent its own.
    """
    if path is None and run is not None:
        plan = _of_champion(run, store, by, budget, seconds)
    else:
        plan = _of_task(path or ".", store, run, budget, seconds)
    settings = Settings(seed=seed, workers=workers)
    return carry_out(plan.task, plan.run, settings, plan.store, plan.files, as_json=as_json)


def carry_out(
    task: Task,
    run: str,
    settings: Settings,
    store: Path,
    files: str | None = None,
    *,
    as_json: bool,
) -> int:
    """Take an ablation as far as it goes, say what it found, and return the exit code.

    Args:
        task: Its own task.
        run: Its name.
        settings: How.
        store: File of its store.
        files: Hash of the manifest of its files. Those of an ablation of a task are still
            taken from the task's folder, to see whether they have changed.
        as_json: Whether to print JSON.
    """
    folder = run_folder(store, run)
    origin = origin_of(files, folder / "objects") if files else None
    reflector = SurfaceReflector(takes_apart=origin is not None)
    given = files if origin is not None else None
    with driven(task, run, settings, store, reflector=reflector, files=given) as (driver, signals):
        refuse_baseline(driver.state, f"run {run!r}")
        surface = _surface(driver)
        found = ablated(driver.state, run, surface, origin)
        if surface is not None:
            found = _written(found, surface, driver.state, folder)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")
    else:
        sys.stdout.write(in_words(found) + "\n")
    return closing(signals, driver.state, found.reason)


def in_words(found: Ablated) -> str:
    """Return what was found for a person: one line a component, then what stands out."""
    count = f"{found.measurements} of {many(found.configurations, 'configuration')} measured"
    lines = [f"{found.run}: {found.status}, {found.reason} ({count})"]
    if found.baseline is None or found.best is None:
        return lines[0]
    default = {effect.factor: effect.default for effect in found.effects}
    best = found.best
    value = f"{number(best.value)} {between(best.low, best.high)}"
    how = "measured" if best.measured else "predicted"
    lines += [
        f"baseline     {found.metric} {number(found.baseline.value)}",
        f"best         {found.metric} {value} {how}, the best of all: {best.probability:.0%}",
        f"             {named(best.config, {**default})}",
        *_effect_lines(found),
    ]
    for pair in [i for i in found.interactions if i.sure][:5]:
        who = f"{pair.first}={pair.first_level} with {pair.second}={pair.second_level}"
        size = f"{signed(pair.interaction)} {between(pair.low, pair.high)}"
        lines.append(f"interaction  {who}: {size}")
    lines += [f"failed       {named(f.config, {**default})}: {f.reason}" for f in found.failed]
    if found.origin is not None:
        lines.append(f"minimal      {minimal_words(found)}")
    lines += [f"command      {line}" for line in found.minimal_command]
    if found.self_reported:
        lines.append("caution      self-reported: a file that the agent could edit prints it")
    lines += [f"problem      {problem}" for problem in found.problems]
    return "\n".join([*lines, *(f"wrote        {path}" for path in found.files.values())])


def _effect_lines(found: Ablated) -> list[str]:
    ordered = sorted(found.effects, key=lambda e: -abs(e.effect))
    names = [f"{e.factor}={e.level}" for e in ordered]
    width = max(map(len, names))
    return [
        f"effect       {name:<{width}}  {signed(e.effect):>9} {between(e.low, e.high)}"
        f"  {verdict(e, found.direction)}"
        for name, e in zip(names, ordered, strict=True)
    ]


def _of_task(
    path: str, store: Path | None, run: str | None, budget: int | None, seconds: float | None
) -> _Plan:
    folder = _options.folder_of(path)
    task = taskfile.load(path, Budget(seconds=seconds))
    name = run or f"{task.name}-ablation"
    return _Plan(ablation_of(task, budget, seconds), name, store or default_store(folder))


def _of_champion(
    run: str, store: Path | None, by: By, budget: int | None, seconds: float | None
) -> _Plan:
    found = read_run(store, run)
    if is_ablation(found.state.task):
        raise InputError(
            f"run {run!r}: is an ablation itself, allowed: the run of a search; "
            f"`outlay resume {run}` goes on with it"
        )
    kind: By = "lever" if found.state.with_levers else by
    name = f"{found.name}-node{found.state.contest.champion}-by-{kind}"
    objects = run_folder(found.store, name) / "objects"
    apart = take_apart(found.state, found.name, found.objects, objects, kind)
    return _Plan(ablation_of(apart.task, budget, seconds), name, found.store, apart.files)


def _surface(driver: Driver) -> Surface | None:
    if driver.state.reward is None:
        return None
    return surface_of(driver.state, reasons(driver.store.read(driver.run)))


def _written(found: Ablated, surface: Surface, state: State, folder: Path) -> Ablated:
    """Write everything into the run's folder and return the findings with what was written."""
    files, missing = write_ablation(found, surface, state.task.question, folder)
    if missing:
        talk(f"outlay: {missing}")
    started, origin, small = state.started, found.origin, found.minimal
    if started and small and origin and origin.by != "lever":
        prefix = prefix_in_repository(Path(state.task.workspace.path))
        place = folder / "minimal.patch"
        text = patch_of(state.task, started.files, folder / "objects", small.config, prefix)
        write_whole(place, text)
        files[place.name] = str(place)
    return msgspec.structs.replace(found, files=files)
