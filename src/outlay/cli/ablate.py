"""`outlay ablate`: which component does what, and which part of a champion is needed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import msgspec

from outlay import taskfile
from outlay.ablations.concluding import conclude
from outlay.ablations.planning import of_champion, of_task
from outlay.ablations.running import LEAST, SurfaceReflector
from outlay.cli import _options
from outlay.cli._conduct import closing, driven
from outlay.cli._reading import read_run, talk
from outlay.errors import InputError
from outlay.report.ablation import between, blame_words, minimal_words, named, next_words, verdict
from outlay.report.words import many, number, signed
from outlay.runs import Settings, default_store
from outlay.task import Budget

if TYPE_CHECKING:
    from pathlib import Path

    from outlay.ablations.components import By
    from outlay.ablations.planning import Plan
    from outlay.ablations.summary import Ablated


@click.command()
@click.argument("path", metavar="[TASK]", required=False)
@_options.store
@click.option("--run", help="With TASK, name of the new run; alone, the search to take apart.")
@click.option("--name", help="Without TASK, name of the new run.")
@click.option(
    "--budget",
    type=click.IntRange(min=LEAST),
    help="At most N measurements, the baseline included.",
)
@_options.time
@click.option(
    "--by",
    type=click.Choice(["hunk", "file"]),
    help="What a component of a champion's patch is: hunk by default.",
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    help="Seed of every random stream.",
)
@click.option(
    "--workers", default=1, show_default=True, type=click.IntRange(min=1), help="Attempts at once."
)
@_options.as_json
def command(
    path: str | None,
    store: Path | None,
    run: str | None,
    name: str | None,
    budget: int | None,
    seconds: float | None,
    by: By | None,
    seed: int,
    workers: int,
    as_json: bool,
) -> int:
    """Find out what each component does, from a few measurements.

    With TASK, a folder or a task file, its levers are the components. With --run alone, which
    names a search, they are what its champion changed: levers, or the hunks of its patch. With
    neither, the task is that of the current folder.
    The same command continues a run; a raised budget continues one that had spent its own.
    """
    limits = Budget(attempts=budget, seconds=seconds)
    settings = Settings(seed=seed, workers=workers)
    if path is None and run is not None:
        found = read_run(store, run)
        if by is not None and found.state.with_levers:
            raise InputError("--by: found for a run with levers, which are its components")
        plan = of_champion(found.state, found.name, found.store, by or "hunk", name, limits)
    elif name is not None:
        raise InputError("--name: found with a task, allowed: --run for the name of its ablation")
    elif by is not None:
        raise InputError("--by: found with a task, whose components are its levers")
    else:
        folder = _options.folder_of(path or ".")
        task = taskfile.load(path or ".", limits)
        plan = of_task(task, store or default_store(folder), run, limits)
    return carry_out(plan, settings, as_json=as_json)


def carry_out(plan: Plan, settings: Settings, *, as_json: bool) -> int:
    """Take an ablation as far as it goes, say what it found, and return the exit code."""
    reflector = SurfaceReflector(plan.origin)
    with driven(
        plan.task, plan.run, settings, plan.store, reflector=reflector, files=plan.files
    ) as (driver, signals):
        found, _, missing = conclude(driver, plan)
    if missing:
        talk(f"outlay: {missing}")
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
    if found.blamed:
        lines.append(f"broken       {blame_words(found)}")
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
    if found.failed and not found.blamed:
        lines.append(f"failed       {blame_words(found)}")
    lines += [f"failed       {named(f.config, {**default})}: {f.reason}" for f in found.failed]
    if found.origin is not None:
        lines.append(f"minimal      {minimal_words(found)}")
    lines += [f"command      {line}" for line in found.minimal_command]
    if ahead := next_words(found):
        lines.append(f"next         {ahead}")
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
