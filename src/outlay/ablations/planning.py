"""What an ablation is to do: of a task's levers, or of what a search's champion changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from outlay.ablations.components import origin_of, take_apart
from outlay.ablations.running import ablation_of, is_ablation
from outlay.errors import InputError
from outlay.execution.snapshot import remove_tree
from outlay.runs import check_run_name, run_folder

if TYPE_CHECKING:
    from pathlib import Path

    from outlay.ablations.components import By, Origin
    from outlay.state import State
    from outlay.task import Budget, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """An ablation that can be begun, or gone on with.

    Attributes:
        task: The task that it measures.
        run: Its name.
        store: File of its store.
        origin: What is taken apart; `None` for the levers of a task.
        files: Hash of the manifest of its files; `None` takes them from the task's folder.
    """

    task: Task
    run: str
    store: Path
    origin: Origin | None = None
    files: str | None = None

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return run_folder(self.store, self.run)


def of_task(task: Task, store: Path, run: str | None, limits: Budget) -> Plan:
    """Return the ablation of a task's levers.

    Args:
        task: The task.
        store: File of the store.
        run: Name of the new run; by default the task's with `-ablation`.
        limits: Of measurements (`attempts`, the baseline included) and of seconds.
    """
    return Plan(
        task=ablation_of(task, limits), run=_name(run, f"{task.name}-ablation"), store=store
    )


def of_champion(
    state: State, searched: str, store: Path, by: By, run: str | None, limits: Budget
) -> Plan:
    """Return the ablation of what the champion of a search changed.

    Args:
        state: The state of the search.
        searched: Its name.
        store: File of its store, which the ablation goes into as well.
        by: What a component of a patch is, `hunk` or `file`; with levers, each is a component.
        run: Name of the new run; by default search, node and component.
        limits: See `of_task`.

    Raises:
        InputError: If the run is no search, or has no confirmed champion.
    """
    if is_ablation(state.task):
        raise InputError(
            f"run {searched!r}: is an ablation itself, allowed: the run of a search; "
            f"`outlay resume {searched}` goes on with it"
        )
    kind: By = "lever" if state.with_levers else by
    name = _name(run, f"{searched}-node{state.contest.champion}-by-{kind}")
    if name == searched:
        raise InputError(f"name: found {name!r}, which is the search, allowed: a new name")
    folder = run_folder(store, name)
    objects, is_new = folder / "objects", not folder.exists()
    source = run_folder(store, searched) / "objects"
    try:
        apart = take_apart(state, searched, source, objects, kind)
        task = ablation_of(apart.task, limits)
    except InputError:
        if is_new and folder.exists():
            remove_tree(folder)
        raise
    return Plan(
        task=task,
        run=name,
        store=store,
        origin=origin_of(apart.files, objects),
        files=apart.files,
    )


def _name(run: str | None, default: str) -> str:
    return check_run_name(default if run is None else run)
