"""What commands that read a store share: which store, which run, and how to answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec

from outlay.errors import InputError
from outlay.report.words import printable
from outlay.runs import STORE, default_store, run_folder
from outlay.sqlite_store import SqliteStore
from outlay.state import State

if TYPE_CHECKING:
    from collections.abc import Callable

    from outlay.events import Entry

    Command = Callable[..., Any]


class Found(NamedTuple):
    """A run read from its store.

    Attributes:
        store: Path of the store's file.
        name: Name of the run.
        state: Its state.
        entries: Its log.
    """

    store: Path
    name: str
    state: State
    entries: list[Entry]

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return run_folder(self.store, self.name)

    @property
    def objects(self) -> Path:
        """Its object store."""
        return self.folder / "objects"


def common_options(command: Command) -> Command:
    """Add `--store` and `--json` to a command."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout."),
        click.option(
            "--store",
            type=click.Path(path_type=Path),
            help="Store file, or the folder of its task. Default: .outlay/store.db here.",
        ),
    ):
        command = option(command)
    return command


def store_path(store: Path | None, name: str | None = None) -> tuple[Path, str | None]:
    """Return the store's file and the name of the run that a user meant, `None` if left open.

    A name that is a task's folder stands for the store in it.
    """
    if store is None and name is not None:
        is_path = "/" in name or name in (".", "..")
        if is_path or (not default_store(".").exists() and default_store(name).exists()):
            return default_store(name), None
    place = Path(".") if store is None else store
    if place.is_dir():
        direct = place / STORE
        place = direct if direct.exists() else default_store(place)
    return place, name


def one_run(store: SqliteStore, name: str | None) -> str:
    """Return the run that is meant; without a name, the only one.

    Raises:
        InputError: There is none of that name, or several and none was named.
    """
    names = [run.name for run in store.runs()]
    if name is not None and name in names:
        return name
    if name is None and len(names) == 1:
        return names[0]
    found = "no run named" if name is None else repr(name)
    here = ", ".join(sorted(names)) or "none"
    raise InputError(f"RUN: found {found}, allowed: a run of {store.path}: {here}")


def read_run(store: Path | None, name: str | None) -> Found:
    """Return the run with its whole log, read from its store."""
    path, wanted = store_path(store, name)
    with SqliteStore(path) as opened:
        run = one_run(opened, wanted)
        entries = list(opened.read(run))
    found = Found(path, run, State.of(entries), entries)
    if found.state.started is None:
        raise InputError(f"run {run!r}: it has not begun, so there is nothing to show")
    return found


def answer(data: object, text: str, *, as_json: bool) -> None:
    """Write the answer to stdout: the data as JSON, or the text for people."""
    if as_json:
        body = msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
    else:
        # A terminal obeys control characters; a file should get what there is.
        body = printable(text) if sys.stdout.isatty() else text
    sys.stdout.write(body.rstrip("\n") + "\n")


def talk(text: str) -> None:
    """Write a line to stderr."""
    sys.stderr.write(printable(text) + "\n")
