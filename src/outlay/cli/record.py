"""`outlay record`: keeps a run as one file."""

from __future__ import annotations

import os
from pathlib import Path

import click

from outlay.cli._reading import answer, common_options, intact, read_run
from outlay.errors import InputError
from outlay.recording.hiding import secrets_of
from outlay.recording.keep import Kept, keep


@click.command()
@click.argument("run")
@click.option(
    "--out",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="File to write; must not be there yet.",
)
@common_options
def command(run: str, file: Path, store: Path | None, as_json: bool) -> None:
    """Keep RUN in one file: its log, the files that it names, and what models were asked and said.

    The file is packed with xz, holds none of the keys that are in the environment now, and needs
    nothing else of this machine. `outlay replay FILE` searches again from it.
    """
    found = read_run(store, run)
    if file.exists():
        raise InputError(f"{file}: is there already; choose another place")
    with intact(found):
        kept = keep(
            found.name,
            found.entries,
            found.folder,
            file,
            secrets_of(found.state.task, os.environ),
        )
    answer(kept._asdict(), _text(kept), as_json=as_json)


def _text(kept: Kept) -> str:
    lines = [f"wrote {kept.file}, {kept.bytes} bytes", f"digest {kept.digest}"]
    if kept.cut:
        lines.append(f"secrets were cut out of {kept.cut} texts and files")
    return "\n".join(lines)
