"""Where the events of runs are kept: the contract of a store, and one in memory.

`outlay.sqlite_store` keeps them in a file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

from outlay.errors import InputError
from outlay.events import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

    from outlay.events import AnyEvent


class RunSummary(NamedTuple):
    """A run as a list shows it: its name, its number of events, and when it was last written."""

    name: str
    events: int
    last_written: float


class Store(ABC):
    """An append-only log of events for each of several runs.

    Threads: an instance belongs to the thread that made it.

    Ownership: at most one writer has a store at a time, whatever the process; opening a second
    one raises `StoreError` naming the first. Any number of readers may read meanwhile. What was
    read is never changed by later writes.

    Durability: when `append` returns, all of its events are kept and survive the death of the
    process and of the machine; if it raises, or the process dies in it, none of them is. The
    events of one call are one *step*, and no reader ever sees part of a step.

    Errors: `InputError` for an unknown run or a name that is taken, `StoreError` for a store that
    is locked, of a newer version or read-only, and `OutlayError` for a full disk; after any of
    them the store is as it was before the call.
    """

    @abstractmethod
    def runs(self) -> list[RunSummary]:
        """Return all runs, the one written last first."""

    @abstractmethod
    def create(self, run: str) -> None:
        """Add an empty run; raises `InputError` if the name is taken."""

    @abstractmethod
    def append(
        self, run: str, events: Sequence[AnyEvent], *, at: float, elapsed: float
    ) -> list[Entry]:
        """Append the events as one step and return them with their places in the log.

        Args:
            run: Name of a run that exists.
            events: At least one.
            at: Wall clock, seconds since 1970.
            elapsed: Seconds that drivers were alive in this run so far.
        """

    @abstractmethod
    def read(self, run: str, after: int = 0) -> Iterator[Entry]:
        """Yield the entries whose sequence number is above `after`, in order."""

    @abstractmethod
    def remove(self, run: str) -> None:
        """Forget the run and its events; raises `InputError` if there is none of that name."""

    def close(self) -> None:  # noqa: B027
        """Give the store back; closing twice is harmless."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def no_such_run(run: str, existing: Sequence[str]) -> InputError:
    """Return the error for a run that is not in the store."""
    known = ", ".join(existing) or "none yet"
    return InputError(f"run {run!r}: not in this store; runs here: {known}")


def name_taken(run: str) -> InputError:
    """Return the error for a name that another run has."""
    return InputError(f"run {run!r}: the name is taken; choose another with --run")


class MemoryStore(Store):
    """A store that lives as long as its process: for ask/tell, simulations and tests."""

    def __init__(self) -> None:
        self._logs: dict[str, list[Entry]] = {}

    def runs(self) -> list[RunSummary]:
        found = [
            RunSummary(name, len(log), log[-1].at if log else 0.0)
            for name, log in self._logs.items()
        ]
        return sorted(found, key=lambda run: -run.last_written)

    def create(self, run: str) -> None:
        if run in self._logs:
            raise name_taken(run)
        self._logs[run] = []

    def append(
        self, run: str, events: Sequence[AnyEvent], *, at: float, elapsed: float
    ) -> list[Entry]:
        log = self._log(run)
        step = log[-1].step + 1 if log else 1
        entries = [
            Entry(sequence=len(log) + k, step=step, at=at, elapsed=elapsed, event=event)
            for k, event in enumerate(events, 1)
        ]
        log.extend(entries)
        return entries

    def read(self, run: str, after: int = 0) -> Iterator[Entry]:
        yield from self._log(run)[after:]

    def remove(self, run: str) -> None:
        self._log(run)
        del self._logs[run]

    def _log(self, run: str) -> list[Entry]:
        if run not in self._logs:
            raise no_such_run(run, list(self._logs))
        return self._logs[run]
