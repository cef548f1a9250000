"""What commands that read a store share: which store, which run, and how to answer."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec

from outlay.errors import InputError, OutlayError, StoreError
from outlay.execution.objects import Damaged
from outlay.report.words import printable
from outlay.runs import STORE, default_store, load_state, run_folder
from outlay.sqlite_store import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from outlay.events import Entry
    from outlay.state import State

    Command = Callable[..., Any]

STDOUT = "standard output"


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

    Raises:
        InputError: The name is a path, and no folder with a store.
    """
    if name == "":
        raise InputError("RUN: found an empty name, allowed: the name of a run")
    is_path = name is not None and ("/" in name or name in (".", ".."))
    if store is None and name is not None:
        holds = default_store(name).exists()
        if holds and (is_path or not default_store(".").exists()):
            return default_store(name), None
    if is_path:
        raise InputError(
            f"RUN: found {name!r}, allowed: the name of a run, or a folder that has a store"
        )
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
    with reading(path), SqliteStore(path) as opened:
        run = one_run(opened, wanted)
        entries = list(opened.read(run))
        found = Found(path, run, load_state(opened, run), entries)
    if found.state.started is None:
        raise InputError(f"run {run!r}: it has not begun, so there is nothing to show")
    return found


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what SQLite says of a file that is no store into one line."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"{path}: this is no store, or a damaged one: {error}") from None


@contextmanager
def intact(found: Found) -> Iterator[None]:
    """Turn a stored file of a run that is gone or damaged into one line that names it."""
    try:
        yield
    except Damaged as error:
        raise OutlayError(
            f"run {found.name!r}: a stored file is gone or damaged: {error}"
        ) from None


def answer(data: object, text: str, *, as_json: bool, patch: str = "") -> None:
    """Write the answer to stdout: the data as JSON, or the text for people.

    Args:
        data: What `--json` prints.
        text: What a person reads, without what a terminal would obey.
        as_json: Which of the two.
        patch: Put after the text; `git apply` needs it byte for byte, so only a terminal gets it
            without control characters.
    """
    if as_json:
        body = msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
        put(body + "\n")
        return
    body = printable(text).rstrip("\n") + "\n" if text else ""
    put(body + (printable(patch) if sys.stdout.isatty() else patch))


def put(text: str) -> None:
    """Write to stdout; what goes wrong there carries its name, as for any other file."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        error.filename = STDOUT
        raise


def talk(text: str) -> None:
    """Write a line to stderr."""
    sys.stderr.write(printable(text) + "\n")
