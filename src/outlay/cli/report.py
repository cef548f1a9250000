"""`outlay report`: the report of a run as a file."""

from __future__ import annotations

from pathlib import Path

import click

from outlay.cli._reading import answer, common_options, put, read_run
from outlay.errors import InputError
from outlay.execution.folder import write_whole
from outlay.report import gather, markdown, page

_WRITERS = {"html": page, "md": markdown}


@click.command()
@click.argument("run", required=False)
@click.option("--format", "kind", type=click.Choice(list(_WRITERS)), default="html")
@click.option("--out", help="File to write; - writes to stdout. Default: in the run's folder.")
@common_options
def command(
    run: str | None, kind: str, out: str | None, store: Path | None, as_json: bool
) -> None:
    """Write the report of a run and print its path.

    RUN may be left out where the store has one run; a task's folder stands for its only run.
    """
    if as_json and (kind == "md" or out == "-"):
        other = "--format md" if kind == "md" else "--out -"
        raise InputError(f"{other} and --json: found both, allowed: one of them")
    if out is not None and out != "-" and Path(out).is_dir():
        raise InputError(f"--out: found the folder {out!r}, allowed: a file to write, or -")
    found = read_run(store, run)
    text = _WRITERS[kind](gather(found.state, found.entries, found.folder, found.name))
    if out == "-":
        put(text)
        return
    path = Path(out) if out is not None else found.folder / f"report.{kind}"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)
    answer({"run": found.name, "report": str(path)}, str(path), as_json=as_json)
