"""Starting a run, taking it up again, and the folders that it owns.

.outlay/              beside the task, ignored by git
├── store.db          the events of every run
└── runs/NAME/        objects, jobs, the plan tree as files, the report
"""

from __future__ import annotations

import gc
import json
import os
import secrets
import shlex
import socket
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outlay import events
from outlay.errors import InputError
from outlay.execution.environment import child_environment, threads
from outlay.execution.snapshot import dirty, remove_tree, take
from outlay.jobs import Place
from outlay.state import State
from outlay.task import task_hash, to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from outlay.events import AnyEvent
    from outlay.store import Store
    from outlay.task import Task

STORE = "store.db"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a run is carried out; what of it decides outcomes is part of the run's identity.

    Attributes:
        seed: Seed of every random stream.
        agent: `levers`, or `command:` with a command line.
        workers: Attempts at once; may differ from sitting to sitting.
    """

    seed: int = 0
    agent: str = "levers"
    workers: int = 1


def default_store(folder: str | os.PathLike[str]) -> Path:
    """Return the store that belongs to a task's folder."""
    return Path(folder).resolve() / ".outlay" / STORE


def run_folder(store: Path, run: str) -> Path:
    """Return the folder of a run of the store."""
    return store.resolve().parent / "runs" / run


def prepare_folder(store: Path) -> None:
    """Make the store's folder, hidden from git."""
    folder = store.resolve().parent
    folder.mkdir(parents=True, exist_ok=True)
    if folder.name == ".outlay" and not (folder / ".gitignore").exists():
        (folder / ".gitignore").write_text("*\n")


def place_of(task: Task, folder: Path, settings: Settings) -> Place:
    """Return where the jobs of a run live, and what they may see of the machine."""
    kind, _, command = settings.agent.partition(":")
    return Place(
        folder=folder,
        environment=child_environment((), threads(settings.workers)),
        mask=(task.workspace.path, str(folder.parent.parent)),
        agent=tuple(shlex.split(command)) if kind == "command" else (),
    )


def load_state(store: Store, run: str, *, for_good: bool = False) -> State:
    """Return the state of a run of the store, as of now.

    Args:
        store: Open in any mode.
        run: Name of the run.
        for_good: The state will live as long as the process, so the garbage collector need never
            look at it: half a second less for 100,000 attempts, now and at times later.
    """
    with _without_collection(for_good=for_good):
        return State.of(store.read(run))


@contextmanager
def _without_collection(*, for_good: bool) -> Iterator[None]:
    """Hold the garbage collector off: a replay makes many records and no garbage in cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
        if for_good:
            gc.freeze()
    finally:
        if enabled:
            gc.enable()


def open_run(
    store: Store,
    task: Task,
    run: str,
    settings: Settings,
    folder: Path | None,
    *,
    files: str | None = None,
) -> tuple[State, list[AnyEvent]]:
    """Return the state to go on from, and the events that this sitting begins with.

    A run of that name is continued if task (budget aside), workspace and settings are the same. A
    run whose baseline failed before anything else happened is begun again.

    Args:
        store: Open for writing.
        task: What to research.
        run: Name of the run.
        settings: How.
        folder: The run's folder, where the workspace is kept; `None` for a task without files.
        files: Hash of a manifest in the run's object store that stands in for the workspace.

    Raises:
        InputError: If the run differs, naming what does.
    """
    taken = files is None and folder is not None
    if files is None:
        files = take(task.workspace.path, folder / "objects") if folder is not None else ""
    began: list[AnyEvent] = []
    state = State()
    if run in {known.name for known in store.runs()}:
        state = load_state(store, run, for_good=True)
        if _worth_nothing(state):
            store.remove(run)
            state = State()
        else:
            _refuse_difference(state, task, run, settings, files)
            if state.budget != task.budget:
                began.append(events.BudgetChanged(budget=task.budget))
    if state.started is None:
        _clear(folder)
        store.create(run)
        is_dirty = taken and dirty(task.workspace.path)
        began.append(_start(task, settings, files, is_dirty=is_dirty))
    began.append(
        events.SittingStarted(pid=os.getpid(), host=socket.gethostname(), workers=settings.workers)
    )
    return state, began


def _clear(folder: Path | None) -> None:
    """Remove what an earlier run of that name left: its results must not pass for new ones."""
    for name in ("jobs", "tree"):
        if folder is not None and (folder / name).exists():
            remove_tree(folder / name)


def _start(task: Task, settings: Settings, files: str, *, is_dirty: bool) -> AnyEvent:
    return events.RunStarted(
        uid=secrets.token_hex(16),
        task=to_json(task),
        task_hash=task_hash(task),
        files=files,
        dirty=is_dirty,
        seed=settings.seed,
        agent=settings.agent,
        workers=settings.workers,
        budget=task.budget,
    )


def _worth_nothing(state: State) -> bool:
    ended = state.ended is not None and state.ended.status == "failed"
    return state.started is None or (ended and not state.attempts)


def _refuse_difference(state: State, task: Task, run: str, settings: Settings, files: str) -> None:
    started = state.started
    if started is None:
        return
    found = _differences(started, task)
    if started.files != files:
        found.append("the workspace's files")
    if started.seed != settings.seed:
        found.append(f"seed ({started.seed} then, {settings.seed} now)")
    if started.agent != settings.agent:
        found.append(f"agent ({started.agent!r} then, {settings.agent!r} now)")
    if found:
        raise InputError(
            f"run {run!r}: changed since it began: {', '.join(found)}; "
            "begin another with --run NEW, or undo the change"
        )


def _differences(started: events.RunStarted, task: Task) -> list[str]:
    """Return the keys of the task that differ, budget and place aside."""
    if started.task_hash == task_hash(task):
        return []
    then, now = json.loads(started.task), json.loads(to_json(task))
    for fields in (then, now):
        del fields["budget"], fields["workspace"]["path"]
    return [
        f"{key} ({_shown(then_value)} then, {_shown(now_value)} now)"
        for key, then_value, now_value in _unequal(then, now, "")
    ]


def _unequal(then: Any, now: Any, key: str) -> list[tuple[str, Any, Any]]:
    if then == now:
        return []
    if isinstance(then, dict) and isinstance(now, dict):
        names = dict.fromkeys([*then, *now])
        inside = [_unequal(then.get(n), now.get(n), f"{key}.{n}".strip(".")) for n in names]
        return [difference for found in inside for difference in found]
    return [(key, then, now)]


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
