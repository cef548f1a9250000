"""A store in one SQLite file, with one writer lock beside it.

WAL with `synchronous=FULL`: a step is one transaction, and it is on the disk when it returns.
Older SQLite versions can corrupt a WAL that two connections write or checkpoint at once; the
writer lock keeps that from happening, and readers open the file read-only.
"""

from __future__ import annotations

import os
import re
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import MsgspecError

from outlay.errors import MAKE_ROOM, OutlayError, StoreError
from outlay.events import Entry, decode, encode
from outlay.locks import take_lock, unwritable
from outlay.store import RunSummary, Store, name_taken, no_such_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from outlay.events import AnyEvent

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE runs (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
    CREATE TABLE events (
        place INTEGER PRIMARY KEY,
        step INTEGER NOT NULL,
        at REAL NOT NULL,
        elapsed REAL NOT NULL,
        body TEXT NOT NULL
    ) STRICT;
    """,
)
"""Step `k` brings a file from version `k` to `k + 1`; an empty file is version 0.

The place of an event is its run's id times `SPAN` plus its sequence number. With one whole number
as key an append writes half the pages that it would write with a key of two columns.
"""

SPAN = 2**32
"""Places set aside for each run."""

NETWORK_FILE_SYSTEMS = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "gfs2", "glusterfs"}
    | {"gpfs", "lustre", "nfs", "nfs4", "ocfs2", "smb3", "smbfs"}
)

_INSERT = "INSERT INTO events VALUES (?, ?, ?, ?, ?)"


class SqliteStore(Store):
    """A store in the file `path`; see `Store` for the contract.

    Args:
        path: The file; made, with its folder, when opened for writing.
        mode: `"write"` takes the writer lock; `"read"` never waits and never writes.
    """

    def __init__(self, path: str | Path, mode: Literal["read", "write"] = "read") -> None:
        self.path = Path(path)
        self._lock: int | None = None
        self._ends: dict[str, tuple[int, int, int]] = {}
        if mode == "write":
            self._open_for_writing()
        else:
            self._open_for_reading()

    def runs(self) -> list[RunSummary]:
        rows = self._query(
            "SELECT name, coalesce(place % :span, 0), coalesce(at, 0) FROM runs "
            "LEFT JOIN events ON place = (SELECT place FROM events WHERE place >= id * :span "
            "AND place < (id + 1) * :span ORDER BY place DESC LIMIT 1) ORDER BY 3 DESC",
            {"span": SPAN},
        )
        return [RunSummary(*row) for row in rows]

    def create(self, run: str) -> None:
        try:
            self._write("INSERT INTO runs (name) VALUES (?)", [(run,)])
        except sqlite3.IntegrityError:
            raise name_taken(run) from None

    def append(
        self, run: str, events: Sequence[AnyEvent], *, at: float, elapsed: float
    ) -> list[Entry]:
        number, sequence, step = self._end(run)
        entries = [
            Entry(sequence=sequence + k, step=step + 1, at=at, elapsed=elapsed, event=event)
            for k, event in enumerate(events, 1)
        ]
        self._write(
            _INSERT,
            [
                (
                    number * SPAN + entry.sequence,
                    entry.step,
                    at,
                    elapsed,
                    encode(entry.event).decode(),
                )
                for entry in entries
            ],
        )
        self._ends[run] = (number, sequence + len(entries), step + 1)
        return entries

    def read(self, run: str, after: int = 0) -> Iterator[Entry]:
        first, sequence = self._number(run) * SPAN, after
        try:
            cursor = self._connection.execute(
                "SELECT place - ?, step, at, elapsed, body FROM events "
                "WHERE place > ? AND place < ? ORDER BY place",
                (first, first + after, first + SPAN),
            )
            for sequence, step, at, elapsed, body in cursor:
                yield Entry(
                    sequence=sequence, step=step, at=at, elapsed=elapsed, event=decode(body)
                )
        except sqlite3.Error as error:
            raise _translated(self.path, error) from None
        except MsgspecError as error:
            raise StoreError(
                f"{self.path}: run {run!r}: event {sequence} cannot be read: {error}"
            ) from None

    def remove(self, run: str) -> None:
        number = self._number(run)
        first = number * SPAN
        self._run_script(
            [
                ("DELETE FROM events WHERE place >= ? AND place < ?", (first, first + SPAN)),
                ("DELETE FROM runs WHERE id = ?", (number,)),
            ]
        )
        self._ends.pop(run, None)

    def close(self) -> None:
        self._connection.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _open_for_writing(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(self.path.parent, error) from None
        refuse_network(self.path.parent)
        self._lock = take_lock(self.path.with_name(self.path.name + ".lock"))
        try:
            self._connect(str(self.path), self._prepare)
        except Exception:
            os.close(self._lock)
            raise

    def _open_for_reading(self) -> None:
        if not self.path.exists():
            raise StoreError(f"{self.path}: there is no store here; a search makes one")
        uri = f"{self.path.resolve().as_uri()}?mode=ro"
        if not (os.access(self.path.parent, os.W_OK) or self._has_wal()):
            # Without a file that coordinates them, readers must rely on nobody writing.
            uri += "&immutable=1"
        self._connect(uri, self._refuse_other_versions)

    def _has_wal(self) -> bool:
        wal = self.path.with_name(self.path.name + "-wal")
        return wal.exists() and wal.stat().st_size > 0

    def _connect(self, name: str, prepare: Callable[[], None]) -> None:
        try:
            self._connection = sqlite3.connect(
                name, uri=name.startswith("file:"), isolation_level=None
            )
        except sqlite3.Error as error:
            raise _translated(self.path, error) from None
        try:
            prepare()
        except sqlite3.Error as error:
            self._connection.close()
            raise _translated(self.path, error) from None
        except Exception:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        if self._version() > len(MIGRATIONS):
            self._refuse_other_versions()
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._migrate()

    def _version(self) -> int:
        return int(self._query("PRAGMA user_version")[0][0])

    def _refuse_other_versions(self) -> None:
        found, known = self._version(), len(MIGRATIONS)
        if found > known:
            raise StoreError(
                f"{self.path}: store of version {found}, this Outlay reads up to {known}; "
                "install a newer Outlay"
            )
        if not self._query("SELECT 1 FROM sqlite_master LIMIT 1"):
            raise StoreError(f"{self.path}: nothing is in this store yet")
        if found < known:
            raise StoreError(
                f"{self.path}: store of version {found}, this Outlay reads {known}; "
                "any command that writes brings it up to date"
            )

    def _migrate(self) -> None:
        found, known = self._version(), len(MIGRATIONS)
        if 0 < found < known:
            self._back_up(self.path.with_name(f"{self.path.name}.v{found}"))
        for version in range(found, known):
            statements = [part for part in MIGRATIONS[version].split(";") if part.strip()]
            self._run_script(
                [*((s, ()) for s in statements), (f"PRAGMA user_version = {version + 1}", ())]
            )

    def _back_up(self, path: Path) -> None:
        copy = sqlite3.connect(path)
        try:
            self._connection.backup(copy)
        finally:
            copy.close()

    def _end(self, run: str) -> tuple[int, int, int]:
        if run not in self._ends:
            number = self._number(run)
            first = number * SPAN
            rows = self._query(
                "SELECT place - ?, step FROM events WHERE place >= ? AND place < ? "
                "ORDER BY place DESC LIMIT 1",
                (first, first, first + SPAN),
            )
            sequence, step = rows[0] if rows else (0, 0)
            self._ends[run] = (number, int(sequence), int(step))
        return self._ends[run]

    def _number(self, run: str) -> int:
        rows = self._query("SELECT id FROM runs WHERE name = ?", (run,))
        if not rows:
            raise no_such_run(run, [found.name for found in self.runs()])
        return int(rows[0][0])

    def _query(
        self, statement: str, values: tuple[object, ...] | dict[str, object] = ()
    ) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, values).fetchall()

    def _write(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        self._run_script([(statement, row) for row in rows])

    def _run_script(self, statements: Sequence[tuple[str, tuple[object, ...]]]) -> None:
        execute = self._connection.execute
        try:
            execute("BEGIN IMMEDIATE")
            for statement, values in statements:
                execute(statement, values)
            execute("COMMIT")
        except sqlite3.Error as error:
            # Some errors end the transaction by themselves; a second ROLLBACK would raise.
            if self._connection.in_transaction:
                execute("ROLLBACK")
            raise _translated(self.path, error) from None


def refuse_network(folder: Path, mounts: str | Path = "/proc/self/mountinfo") -> None:
    """Raise `StoreError` if the folder lies on a network file system, where locks cannot hold.

    Args:
        folder: Folder of a store.
        mounts: The mounts of this process, in the format of proc(5), "mountinfo".
    """
    try:
        lines = Path(mounts).read_text().splitlines()
    except OSError:
        return
    kind = _file_system(str(folder.resolve()), lines)
    if kind in NETWORK_FILE_SYSTEMS:
        raise StoreError(
            f"{folder}: a store cannot live on a network file system ({kind}); "
            "name a local place with --store"
        )


def _file_system(folder: str, mounts: Sequence[str]) -> str:
    best, kind = -1, ""
    for line in mounts:
        left, _, right = line.partition(" - ")
        mount = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), left.split()[4])
        inside = folder == mount or folder.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= best:
            best, kind = len(mount), right.split()[0]
    return kind


def _translated(path: Path, error: sqlite3.Error) -> Exception:
    text = str(error)
    if isinstance(error, sqlite3.IntegrityError):
        return error
    if "disk is full" in text or "disk I/O" in text:
        return OutlayError(f"{path}: {text}; {MAKE_ROOM}")
    if "readonly" in text:
        return StoreError(f"{path}: the store is read-only; name another with --store")
    return StoreError(f"{path}: {text}")
