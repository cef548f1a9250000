from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from outlay import events, sqlite_store
from outlay.errors import InputError, OutlayError, StoreError
from outlay.sqlite_store import MIGRATIONS, SqliteStore, refuse_network
from outlay.testing import StoreContract, append

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class TestSqliteStore(StoreContract):
    def open(self, folder, mode):
        return SqliteStore(folder / "store.db", mode)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed store with the run `run` of two steps, two events each."""
    made = tmp_path / "store.db"
    with SqliteStore(made, "write") as store:
        store.create("run")
        append(store, "run", 2)
        append(store, "run", 2)
    return made


def steps(path: Path) -> list[int]:
    with SqliteStore(path) as store:
        return [entry.step for entry in store.read("run")]


# Versions.


@pytest.mark.parametrize("mode", ["read", "write"])
def test_a_newer_version_is_refused_naming_both(path: Path, mode) -> None:
    _set_version(path, 7)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=f"version 7.*up to {len(MIGRATIONS)}") as caught:
        SqliteStore(path, mode)
    assert caught.value.exit_code == 5
    assert path.read_bytes() == before
    _set_version(path, len(MIGRATIONS))
    with SqliteStore(path, "write") as store:  # the lock was given back
        assert len(append(store, "run", 1)) == 1


def test_an_older_version_is_brought_up_to_date_after_a_backup(path: Path, monkeypatch) -> None:
    known = len(MIGRATIONS)
    added = "ALTER TABLE runs ADD COLUMN note TEXT; UPDATE runs SET note = 'moved'"
    monkeypatch.setattr(sqlite_store, "MIGRATIONS", (*MIGRATIONS, added))
    with pytest.raises(StoreError, match=f"version {known}.*reads {known + 1}"):
        SqliteStore(path, "read")
    with SqliteStore(path, "write") as store:
        assert len(append(store, "run", 1)) == 1
    assert steps(path) == [1, 1, 2, 2, 3]
    assert _rows(path, "SELECT note FROM runs") == [("moved",)]
    monkeypatch.setattr(sqlite_store, "MIGRATIONS", MIGRATIONS)
    assert steps(path.with_name(f"store.db.v{known}")) == [1, 1, 2, 2]


def test_the_backup_holds_what_still_lies_beside_the_file(path: Path, monkeypatch) -> None:
    crashed = _as_if_crashed(path, path.parent / "crashed")
    assert crashed.with_name("store.db-wal").stat().st_size > 0
    monkeypatch.setattr(sqlite_store, "MIGRATIONS", (*MIGRATIONS, "SELECT 1"))
    SqliteStore(crashed, "write").close()
    monkeypatch.setattr(sqlite_store, "MIGRATIONS", MIGRATIONS)
    assert steps(crashed.with_name(f"store.db.v{len(MIGRATIONS)}")) == [1, 1, 2, 2, 3, 3]


def test_a_migration_that_fails_changes_nothing(path: Path, monkeypatch) -> None:
    bad = "ALTER TABLE runs ADD COLUMN note TEXT; INSERT INTO nowhere VALUES (1)"
    monkeypatch.setattr(sqlite_store, "MIGRATIONS", (*MIGRATIONS, bad))
    with pytest.raises(StoreError, match="nowhere"):
        SqliteStore(path, "write")
    monkeypatch.setattr(sqlite_store, "MIGRATIONS", MIGRATIONS)
    assert steps(path) == [1, 1, 2, 2]
    assert "note" not in str(_rows(path, "SELECT sql FROM sqlite_master"))


# Damage.


def test_a_log_cut_anywhere_in_its_last_step_keeps_every_earlier_one(
    path: Path, tmp_path: Path
) -> None:
    cut = _as_if_crashed(path, tmp_path / "crashed")
    wal = cut.with_name("store.db-wal")
    whole, last = wal.stat().st_size, _frames_of_last_step(wal)
    assert steps(cut) == [1, 1, 2, 2, 3, 3]
    for size in range(whole - 1, whole - last - 1, -1):
        os.truncate(wal, size)
        assert steps(cut) == [1, 1, 2, 2], size


def test_a_writer_goes_on_from_a_cut_log(path: Path, tmp_path: Path) -> None:
    source = _as_if_crashed(path, tmp_path / "crashed")
    wal = source.with_name("store.db-wal")
    whole, last = wal.stat().st_size, _frames_of_last_step(wal)
    for size in range(whole - last, whole, 509):
        cut = tmp_path / f"cut{size}" / "store.db"
        shutil.copytree(source.parent, cut.parent)
        os.truncate(cut.with_name("store.db-wal"), size)
        with SqliteStore(cut, "write") as store:
            assert append(store, "run", 1)[0].sequence == 5
        assert steps(cut) == [1, 1, 2, 2, 3]


def test_a_cut_side_file_of_the_readers_is_made_again(path: Path, tmp_path: Path) -> None:
    cut = _as_if_crashed(path, tmp_path / "crashed")
    index = cut.with_name("store.db-shm")
    for size in range(index.stat().st_size - 1, 0, -997):
        os.truncate(index, size)
        assert steps(cut) == [1, 1, 2, 2, 3, 3]


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_text("hello, this is not a database" * 50)
    for mode in ("read", "write"):
        with pytest.raises(StoreError, match="not a database"):
            SqliteStore(path, mode)


def test_an_event_that_cannot_be_read_is_named(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(
            """UPDATE events SET body = '{"type":"New"}' WHERE place % 4294967296 = 3"""
        )
    connection.close()
    with (
        SqliteStore(path) as store,
        pytest.raises(StoreError, match=r"run 'run': event 3 cannot be read.*New"),
    ):
        list(store.read("run"))


# Places.


def test_nothing_is_made_by_reading(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no store here"):
        SqliteStore(tmp_path / "store.db", "read")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_fails_one_step_and_the_run_goes_on_when_there_is_room(
    tmp_path: Path,
) -> None:
    with _mounted(tmp_path / "small", "size=160k") as folder:
        ballast = folder / "ballast"
        with SqliteStore(folder / "store.db", "write") as store:
            store.create("run")
            append(store, "run", 2)
            ballast.write_bytes(b"x" * 40_000)
            with pytest.raises(OutlayError, match="make room") as caught:
                _fill(store)
            assert caught.value.exit_code == 1
            kept = len(list(store.read("run")))
            assert steps(folder / "store.db") == [1 + k // 2 for k in range(kept)]
            ballast.unlink()
            assert append(store, "run", 1)[0].sequence == kept + 1
        assert len(steps(folder / "store.db")) == kept + 1


def test_a_store_on_a_read_only_disk_can_be_read_but_not_written(path: Path, tmp_path) -> None:
    with _mounted(tmp_path / "disk", "size=4m") as folder:
        shutil.copy(path, folder / "clean.db")
        crashed = _as_if_crashed(path, folder / "crashed")
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        assert steps(folder / "clean.db") == [1, 1, 2, 2]
        assert steps(crashed) == [1, 1, 2, 2, 3, 3]
        for name in ("clean.db", "other.db"):
            with pytest.raises(StoreError, match="Read-only") as caught:
                SqliteStore(folder / name, "write")
            assert caught.value.exit_code == 5
        with pytest.raises(StoreError, match="cannot be written"):
            SqliteStore(folder / "new" / "store.db", "write")


def test_a_network_file_system_is_refused(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    space = str(tmp_path / "with space").replace(" ", "\\040")
    mounts.write_text(
        "22 1 0:21 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        f"36 22 0:40 / {space} rw,relatime shared:2 - nfs4 host:/export rw\n"
        f"37 36 0:41 / {space}/local rw - tmpfs tmpfs rw\n"
    )
    for refused in ("with space", "with space/deep/down"):
        with pytest.raises(StoreError, match=r"network file system \(nfs4\)") as caught:
            refuse_network(tmp_path / refused, mounts)
        assert caught.value.exit_code == 5
    for local in ("", "with space/local", "with space/local/deep", "with space and more"):
        refuse_network(tmp_path / local, mounts)
    refuse_network(tmp_path, tmp_path / "no such file")


def test_a_holder_that_left_no_name_is_still_refused(path: Path) -> None:
    with SqliteStore(path, "write"):
        path.with_name("store.db.lock").write_bytes(b"")
        with pytest.raises(StoreError, match=r"store\.db: in use by another process"):
            SqliteStore(path, "write")


def test_a_name_that_is_taken_leaves_no_transaction_open(path: Path) -> None:
    with SqliteStore(path, "write") as store:
        with pytest.raises(InputError, match="taken"):
            store.create("run")
        assert len(append(store, "run", 1)) == 1


def test_an_event_that_cannot_be_written_leaves_the_step_out(path: Path) -> None:
    bad = events.RunEnded(status="budget", reason=object())  # type: ignore[arg-type]
    with SqliteStore(path, "write") as store:
        with pytest.raises(TypeError):
            store.append("run", [events.Ticked(), bad], at=1.0, elapsed=0.0)
        assert append(store, "run", 1)[0].sequence == 5


def _fill(store: SqliteStore) -> None:
    for _ in range(1000):
        append(store, "run", 2)


def _set_version(path: Path, version: int) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def _rows(path: Path, query: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    found = connection.execute(query).fetchall()
    connection.close()
    return found


def _as_if_crashed(path: Path, folder: Path) -> Path:
    """Return a copy as a writer leaves it that is killed after one step more."""
    with SqliteStore(path, "write") as store:
        append(store, "run", 2)
        folder.mkdir()
        for suffix in ("", "-wal", "-shm"):
            shutil.copy(f"{path}{suffix}", folder)
    return folder / path.name


def _frames_of_last_step(wal: Path) -> int:
    """Return the bytes of the last transaction: its frames end with one that carries a size."""
    content, frame = wal.read_bytes(), 24 + 4096
    places = range(32, len(content), frame)
    commits = [place for place in places if content[place + 4 : place + 8] != bytes(4)]
    before = commits[-2] + frame if len(commits) > 1 else 32
    return len(content) - before


@contextmanager
def _mounted(folder: Path, options: str) -> Iterator[Path]:
    """A file system of its own in memory; skips where that is not allowed."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if os.getuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_importing_the_store_does_not_import_pytest() -> None:
    code = "import outlay.sqlite_store, sys; print('pytest' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
