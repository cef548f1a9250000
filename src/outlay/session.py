"""One sitting of a run: store, run folder, engine and driver opened together and given back."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from outlay.agents.reflector import BUILT_IN
from outlay.driver import Driver
from outlay.errors import InputError
from outlay.execution.calls import Calls
from outlay.execution.pool import LocalPool
from outlay.runs import check_run_name, open_run, place_of, prepare_folder, run_folder
from outlay.sqlite_store import SqliteStore
from outlay.store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from outlay.agents.reflector import Reflector
    from outlay.events import Entry
    from outlay.execution.calls import Function
    from outlay.execution.pool import Engine
    from outlay.runs import Settings
    from outlay.state import State
    from outlay.task import Task

    OnStep = Callable[[list[Entry], State], None]


def quiet(entries: list[Entry], state: State) -> None:
    """Show nothing of a step."""


@contextmanager
def sitting(
    task: Task,
    run: str,
    settings: Settings,
    *,
    store: Path | None,
    function: Function | None = None,
    engine: Engine | None = None,
    on_step: OnStep = quiet,
    reflector: Reflector = BUILT_IN,
    files: str | None = None,
) -> Iterator[Driver]:
    """Open a run, or take it up again, and yield its driver.

    Args:
        task: What to research.
        run: Name of the run.
        settings: Seed, agent and workers.
        store: File of the store; `None` keeps the run in memory.
        function: Evaluates configurations in this process, in place of the task's evaluator.
        engine: Carries jobs out, in place of child processes and of `function`.
        on_step: Called after each recorded step.
        reflector: Who drafts new plans.
        files: Hash of a manifest in the run's object store that stands in for the workspace's
            files; `None` takes them from the workspace.

    Raises:
        InputError: The run differs from what it was.
        StoreError: The store is locked, newer, or out of reach.
    """
    check_run_name(run)
    with MemoryStore() if store is None else _file_store(store) as opened:
        folder = None if store is None else run_folder(store, run)
        keeps_files = folder is not None and function is None and engine is None
        kept = folder if keeps_files else None
        state, began = open_run(opened, task, run, settings, kept, files=files)
        hands = engine or (Calls(function) if function else _pool(folder, settings))
        place = place_of(task, folder or _nowhere(), settings)
        driver = Driver(
            opened,
            run,
            state,
            place,
            hands,
            reflector=reflector,
            on_step=on_step,
            stop_requested=_request(folder),
        )
        try:
            driver.record(*began)
            yield driver
        finally:
            hands.close()


def _file_store(path: Path) -> SqliteStore:
    prepare_folder(path)
    return SqliteStore(path, "write")


def _pool(folder: Path | None, settings: Settings) -> LocalPool:
    if folder is None:
        raise InputError("store: found none, allowed: a file, for work in child processes")
    return LocalPool(folder, settings.workers)


def _nowhere() -> Path:
    from pathlib import Path

    return Path("/nonexistent/outlay/run")


def _request(folder: Path | None) -> Callable[[], bool]:
    """Return whether someone asked the run to stop since the last call, through its folder."""
    if folder is None:
        return lambda: False
    # One that is there already was meant for a driver that is gone.
    (folder / "stop").unlink(missing_ok=True)

    def requested() -> bool:
        file = folder / "stop"
        if not file.exists():
            return False
        file.unlink()
        return True

    return requested
