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
import socket
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outlay import events
from outlay._taskcheck import NAME_ALLOWED, is_name
from outlay.agents import access
from outlay.errors import InputError, StoreError, bad_value
from outlay.execution.environment import child_environment, for_uv, threads
from outlay.execution.folder import holder, read_claim
from outlay.execution.recover import ensure_ended
from outlay.execution.snapshot import dirty, load, remove_tree, take
from outlay.jobs import Place, agent_work
from outlay.locks import unwritable
from outlay.state import State
from outlay.task import task_hash, to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from outlay.events import AnyEvent
    from outlay.store import Store
    from outlay.task import Task

STORE = "store.db"
LARGEST = 2**63
"""What the store cannot hold any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a run is carried out; what of it decides outcomes is part of the run's identity.

    Attributes:
        seed: Seed of every random stream.
        agent: `levers`, or a client as in `outlay.task.Agent`.
        workers: Attempts at once; may differ from sitting to sitting.
    """

    seed: int = 0
    agent: str = "levers"
    workers: int = 1

    def __post_init__(self) -> None:
        """Refuse what could be neither carried out nor read back from the store.

        Raises:
            InputError: If seed or workers are no whole number, or out of range.
        """
        for name, value, least in (("seed", self.seed, 0), ("workers", self.workers, 1)):
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            if not is_whole or not least <= value < LARGEST:
                allowed = f"a whole number, at least {least} and below 2^63"
                raise bad_value("run", name, value, allowed)


def default_store(folder: str | os.PathLike[str]) -> Path:
    """Return the store that belongs to a task's folder."""
    return Path(folder).resolve() / ".outlay" / STORE


def check_run_name(run: str) -> str:
    """Return the name; raises `InputError` unless it is one that a folder may bear."""
    if not isinstance(run, str) or not is_name(run):
        raise bad_value("command line", "run", run, NAME_ALLOWED)
    return run


def run_folder(store: Path, run: str) -> Path:
    """Return the folder of a run of the store."""
    return store.resolve().parent / "runs" / run


def prepare_folder(store: Path) -> None:
    """Make the store's folder, hidden from git; raises `StoreError` if it cannot be written."""
    folder = store.resolve().parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if folder.name == ".outlay" and not (folder / ".gitignore").exists():
            (folder / ".gitignore").write_text("*\n")
    except OSError as error:
        raise unwritable(folder, error) from None


def place_of(task: Task, folder: Path, settings: Settings) -> Place:
    """Return where the jobs of a run live, and what they may see of the machine."""
    return Place(
        folder=folder,
        environment=child_environment((), threads(settings.workers)) | for_uv(task.workspace.path),
        mask=(task.workspace.path, str(folder.parent.parent)),
        executor=agent_work(task, access.executor(task, settings.agent)),
        reflector=agent_work(task, access.reflector(task, settings.agent)),
    )


def load_state(store: Store, run: str, *, for_good: bool = False) -> State:
    """Return the state of a run of the store, as of now.

    Args:
        store: Open in any mode.
        run: Name of the run.
        for_good: The state will live as long as the process, so the garbage collector need never
            look at it: half a second less for 100,000 attempts, now and at times later.

    Raises:
        StoreError: An event is missing, or does not fit those before it.
    """
    try:
        with _without_collection(for_good=for_good):
            return State.of(store.read(run))
    except StoreError as error:
        raise StoreError(f"run {run!r}: {error}") from error


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
    check_run_name(run)
    taken = files is None and folder is not None
    if files is None:
        files = _taken(task, run, folder)
    began: list[AnyEvent] = []
    state = State()
    if run in {known.name for known in store.runs()}:
        state = load_state(store, run, for_good=True)
        if _worth_nothing(state):
            store.remove(run)
            state = State()
        else:
            changed = _changed_files(folder, state, files)
            _refuse_difference(state, task, run, settings, changed)
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


def _taken(task: Task, run: str, folder: Path | None) -> str:
    """Return the manifest hash of the workspace as it stands, kept in the run's folder."""
    if folder is None:
        return ""
    if not Path(task.workspace.path).is_dir():
        raise bad_value(f"run {run!r}", "task.workspace", task.workspace.path, "a folder there is")
    return take(task.workspace.path, folder / "objects")


def _clear(folder: Path | None) -> None:
    """End and remove what an earlier run of that name left: its results must not pass for new."""
    jobs = folder / "jobs" if folder is not None else None
    for job in jobs.iterdir() if jobs is not None and jobs.is_dir() else ():
        claim = read_claim(job)
        if folder is not None and claim is not None and holder(claim) is not None:
            ensure_ended(folder, job.name, claim.token)
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


def _changed_files(folder: Path | None, state: State, files: str) -> list[str]:
    """Return the paths in which the workspace differs from what the run began with."""
    then = state.started.files if state.started is not None else files
    if folder is None or then == files:
        return []
    before, after = (load(manifest, folder / "objects") for manifest in (then, files))
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))


def _refuse_difference(
    state: State, task: Task, run: str, settings: Settings, changed: list[str]
) -> None:
    started = state.started
    if started is None:
        return
    found = _differences(started, task)
    if changed:
        more = f" and {len(changed) - 5} more" if len(changed) > 5 else ""
        found.append(f"the workspace's files ({', '.join(map(repr, changed[:5]))}{more})")
    if started.seed != settings.seed:
        found.append(f"seed ({started.seed} then, {settings.seed} now)")
    if started.agent != settings.agent:
        found.append(f"agent ({started.agent!r} then, {settings.agent!r} now)")
    if found:
        raise InputError(
            f"run {run!r}: changed since it began: {', '.join(found)}; "
            "begin another with --run NEW (for parts of a champion --name NEW), or undo the change"
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
    if isinstance(then, list) and isinstance(now, list):
        then, now = ({_entry(v, k): v for k, v in enumerate(side)} for side in (then, now))
    if isinstance(then, dict) and isinstance(now, dict):
        names = dict.fromkeys([*then, *now])
        inside = [_unequal(then.get(n), now.get(n), f"{key}.{n}".strip(".")) for n in names]
        return [difference for found in inside for difference in found]
    return [(key, then, now)]


def _entry(value: Any, place: int) -> str:
    """Return what an entry of a list is called in a dotted key: its name, or its place."""
    return str(value["name"]) if isinstance(value, dict) and "name" in value else str(place)


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
