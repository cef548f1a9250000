"""`outlay replay`: searches again from a record."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from outlay.cli._reading import answer, common_options, intact, read_run
from outlay.errors import OutlayError
from outlay.recording.again import Replayed, replay
from outlay.recording.hiding import secrets_of
from outlay.recording.keep import keep
from outlay.report.words import many


@click.command()
@click.argument("run")
@click.option(
    "--evaluate",
    is_flag=True,
    help="Carry the evaluations out again, too; this runs programs of the record.",
)
@click.option(
    "--workspace",
    default="",
    help="With --evaluate: folder of the task, for data and packages beside its files.",
)
@common_options
def command(run: str, evaluate: bool, workspace: str, store: Path | None, as_json: bool) -> int:
    """Search again from RUN, the file of a record or a run of the store, without any model.

    Every decision is made again, plans are read out of the recorded answers again, and tokens
    counted from the recorded exchanges; the files that agents left and the values of evaluations
    are the record's. Nothing of the record is run, unless --evaluate is given. Exits with 0 if
    all came out the same, and with 1 otherwise.
    """
    if Path(run).is_file():
        found = replay(run, evaluate=evaluate, workspace=workspace)
    else:
        found = _of_store(run, store, evaluate, workspace)
    data = {"same": not found.difference, **found._asdict()}
    answer(data, _text(found), as_json=as_json)
    return 1 if found.difference else 0


def _of_store(run: str, store: Path | None, evaluate: bool, workspace: str) -> Replayed:
    try:
        found = read_run(store, run)
    except OutlayError as error:
        raise type(error)(f"{run}: there is no such file; {error}") from None
    own = found.state.task.workspace.path  # a run of the store is the user's, a record may not be
    with TemporaryDirectory(prefix="outlay-") as folder:
        file = Path(folder, "record")
        with intact(found):
            secrets = secrets_of(found.state.task, os.environ)
            keep(found.name, found.entries, found.folder, file, secrets)
        return replay(file, evaluate=evaluate, workspace=workspace or own)


def _text(found: Replayed) -> str:
    done = many(found.events, "event")
    if found.evaluations:
        done += f", {many(found.evaluations, 'evaluation')} carried out"
    if found.difference:
        return f"{found.run}: the same for {done}, then otherwise:\n{found.difference}"
    return f"{found.run}: the same: {done}\ndigest {found.digest}"
