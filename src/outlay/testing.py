# ruff: noqa: S101 - asserting is what this module is for
"""The contract of a store as tests, for the stores of this package and for those of others.

A store passes if a subclass that opens it passes under pytest:

    class TestMyStore(StoreContract):
        def open(self, folder, mode):
            return MyStore(folder / "my.store", mode)
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from outlay import events
from outlay.errors import InputError, StoreError
from outlay.samples import one_of_each

if TYPE_CHECKING:
    from collections.abc import Iterator

    from outlay.events import Entry
    from outlay.store import Store

STEP = 3
"""Events in each step that a child process writes."""


class StoreContract:
    """Every sentence of the contract on `outlay.store.Store`, as pytest tests.

    Attributes:
        shared: Whether other processes can open the store. `False` skips what needs them.
    """

    shared = True

    def open(self, folder: Path, mode: Literal["write", "read"]) -> Store:
        """Return the store that lives in the folder, made if it is opened for writing."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        """Yield an empty store that is open for writing."""
        with self.open(tmp_path, "write") as store:
            yield store

    def test_every_kind_of_event_comes_back_as_it_was(self, store: Store) -> None:
        """An entry that is read equals the one that `append` returned."""
        store.create("run")
        sample = one_of_each()
        appended = store.append("run", sample, at=12.5, elapsed=0.25)
        assert list(store.read("run")) == appended
        assert [entry.event for entry in appended] == sample
        assert {(entry.at, entry.elapsed) for entry in appended} == {(12.5, 0.25)}

    def test_entries_are_numbered_from_1_without_gaps(self, store: Store) -> None:
        """Sequence numbers count events and step numbers count calls, for each run apart."""
        for run in ("a", "b"):
            store.create(run)
            assert list(store.read(run)) == []
        for size in (1, 3, 2):
            append(store, "a", size)
        append(store, "b", 2)
        assert [(e.sequence, e.step) for e in store.read("a")] == [
            (1, 1),
            (2, 2),
            (3, 2),
            (4, 2),
            (5, 3),
            (6, 3),
        ]
        assert [(e.sequence, e.step) for e in store.read("b")] == [(1, 1), (2, 1)]

    def test_reading_may_begin_after_any_entry(self, store: Store) -> None:
        """`after` leaves out that many entries."""
        store.create("run")
        everything = append(store, "run", 2) + append(store, "run", 3)
        for after in range(7):
            assert list(store.read("run", after)) == everything[after:]

    def test_what_was_read_stays_as_it_was(self, store: Store) -> None:
        """Later writes change nothing that was handed out."""
        store.create("run")
        append(store, "run", 2)
        before = list(store.read("run"))
        copy = list(before)
        append(store, "run", 2)
        store.remove("run")
        assert before == copy

    def test_runs_are_listed_by_their_last_write(self, store: Store) -> None:
        """The run written last comes first, with the number of its events."""
        for place, run in enumerate(("old", "new", "empty")):
            store.create(run)
            if run != "empty":
                store.append(run, [events.Ticked()] * (place + 1), at=10.0 + place, elapsed=0.0)
        found = store.runs()
        assert [(run.name, run.events) for run in found] == [("new", 2), ("old", 1), ("empty", 0)]
        assert [run.last_written for run in found[:2]] == [11.0, 10.0]
        append(store, "old", 1, at=99.0)
        assert store.runs()[0].name == "old"

    def test_a_taken_name_is_refused(self, store: Store) -> None:
        """The run that has the name keeps its events."""
        store.create("run")
        appended = append(store, "run", 2)
        with pytest.raises(InputError, match="run"):
            store.create("run")
        assert list(store.read("run")) == appended

    def test_an_unknown_run_is_refused(self, store: Store) -> None:
        """The error names the runs that exist, and nothing was made."""
        store.create("known")
        with pytest.raises(InputError, match="known"):
            append(store, "other", 1)
        with pytest.raises(InputError, match="known"):
            list(store.read("other"))
        with pytest.raises(InputError, match="known"):
            store.remove("other")
        assert [run.name for run in store.runs()] == ["known"]

    def test_a_removed_run_is_gone_and_its_name_is_free(self, store: Store) -> None:
        """Other runs stay; the name begins again at 1."""
        for run in ("kept", "gone"):
            store.create(run)
            append(store, run, 2)
        store.remove("gone")
        assert [run.name for run in store.runs()] == ["kept"]
        store.create("gone")
        assert list(store.read("gone")) == []
        assert [e.sequence for e in append(store, "gone", 1)] == [1]
        assert len(list(store.read("kept"))) == 2

    def test_closing_twice_is_harmless(self, tmp_path: Path) -> None:
        """A `with` block closes, too."""
        with self.open(tmp_path, "write") as store:
            store.create("run")
            store.close()
        store.close()

    def test_a_store_opens_again_with_everything(self, tmp_path: Path) -> None:
        """A later writer goes on with the next numbers."""
        self._needs_sharing()
        with self.open(tmp_path, "write") as store:
            store.create("run")
            first = append(store, "run", 2)
        with self.open(tmp_path, "write") as store:
            second = append(store, "run", 1)
            assert list(store.read("run")) == first + second
            assert (second[0].sequence, second[0].step) == (3, 2)

    def test_a_reader_reads_while_a_writer_writes(self, store: Store, tmp_path: Path) -> None:
        """It sees each step once the writer's call has returned, and it cannot write."""
        self._needs_sharing()
        store.create("run")
        with self.open(tmp_path, "read") as reader:
            for _ in range(3):
                append(store, "run", 2)
                assert list(reader.read("run")) == list(store.read("run"))
            with pytest.raises(StoreError):
                append(reader, "run", 1)
            with pytest.raises(StoreError):
                reader.create("other")
        assert len(append(store, "run", 1)) == 1

    def test_a_second_writer_of_this_process_is_refused(
        self, store: Store, tmp_path: Path
    ) -> None:
        """The error names the first; the first goes on."""
        self._needs_sharing()
        store.create("run")
        with pytest.raises(StoreError, match=str(os.getpid())):
            self.open(tmp_path, "write")
        assert len(append(store, "run", 1)) == 1

    def test_a_second_writer_of_another_process_is_refused(self, tmp_path: Path) -> None:
        """The error names that process; when it is gone, however it went, writing is free."""
        self._needs_sharing()
        with self._writing(tmp_path) as child:
            _acknowledged(child)
            with pytest.raises(StoreError, match=str(child.pid)):
                self.open(tmp_path, "write")
        with self.open(tmp_path, "write") as store:
            assert len(append(store, "run", 1)) == 1

    def test_what_was_appended_survives_the_death_of_the_process(self, tmp_path: Path) -> None:
        """Killed at any instant, a writer leaves whole steps, all that it was told are kept."""
        self._needs_sharing()
        kept = 0
        for steps in (1, 2, 5, 9):
            with self._writing(tmp_path) as child:
                for _ in range(steps):
                    kept = _acknowledged(child)
            with self.open(tmp_path, "read") as reader:
                found = list(reader.read("run"))
            assert len(found) >= kept
            assert_whole_steps(found)
            kept = len(found)

    def test_a_reader_never_sees_part_of_a_step(self, tmp_path: Path) -> None:
        """Whatever the moment, it finds a beginning of the log that ends with a step."""
        self._needs_sharing()
        with self._writing(tmp_path) as child:
            _acknowledged(child)
            lengths = set()
            for _ in range(40):
                with self.open(tmp_path, "read") as reader:
                    found = list(reader.read("run"))
                assert_whole_steps(found)
                lengths.add(len(found))
                _acknowledged(child)
        assert len(lengths) > 1

    def _needs_sharing(self) -> None:
        if not self.shared:
            pytest.skip("this store lives in one process")

    @contextmanager
    def _writing(self, folder: Path) -> Iterator[subprocess.Popen[str]]:
        """Run a process that appends steps without end, and kill it."""
        kind = type(self)
        call = f"write_for_ever({kind.__module__!r}, {kind.__name__!r}, {str(folder)!r})"
        child = subprocess.Popen(
            [sys.executable, "-c", f"from outlay.testing import write_for_ever; {call}"],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            text=True,
        )
        with child:
            try:
                yield child
            finally:
                child.send_signal(signal.SIGKILL)


def write_for_ever(module: str, contract: str, folder: str) -> None:
    """Append steps to the run `run` until killed, printing the length of the log after each."""
    made: StoreContract = getattr(import_module(module), contract)()
    with made.open(Path(folder), "write") as store:
        if not store.runs():
            store.create("run")
        while True:
            sys.stdout.write(f"{append(store, 'run', STEP)[-1].sequence}\n")
            sys.stdout.flush()


def append(store: Store, run: str, size: int, at: float = 1.0) -> list[Entry]:
    """Append one step of so many events."""
    return store.append(run, [events.Ticked()] * size, at=at, elapsed=0.0)


def assert_whole_steps(entries: list[Entry]) -> None:
    """Check that the log is numbered without gaps and that each step has all of its events."""
    assert [entry.sequence for entry in entries] == list(range(1, len(entries) + 1))
    assert [entry.step for entry in entries] == [1 + k // STEP for k in range(len(entries))]
    assert len(entries) % STEP == 0


def _acknowledged(child: subprocess.Popen[str]) -> int:
    if child.stdout is None:
        raise ValueError("the child's output is not read")
    line = child.stdout.readline()
    assert line, "the writing process ended by itself"
    return int(line)
