"""Ablations of tasks and of champions from Python: what `outlay ablate` does, as functions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from outlay import taskfile
from outlay.ablations.concluding import conclude
from outlay.ablations.planning import of_champion, of_task
from outlay.ablations.running import SurfaceReflector
from outlay.errors import BudgetError, bad_value
from outlay.runs import Settings, default_store, load_state
from outlay.session import quiet, sitting
from outlay.sqlite_store import SqliteStore
from outlay.store import no_such_run
from outlay.task import Budget, Task, check

if TYPE_CHECKING:
    from outlay.ablations.planning import Plan
    from outlay.session import OnStep
    from outlay.surfaces.surface import Surface


def ablate_task(
    task: Task | str | Path,
    budget: int | Budget | None = None,
    *,
    store: str | Path | None = None,
    run: str | None = None,
    seed: int = 0,
    workers: int = 1,
    on_step: OnStep = quiet,
) -> Surface:
    """Return the response surface of a task's levers, as `outlay ablate TASK` measures it.

    Each measurement is an attempt of a run, so the same call goes on where one was interrupted,
    and a raised budget buys more. Report and pictures are written into the run's folder.

    Args:
        task: A task, or the path of a task file or of its folder.
        budget: Number of measurements, the baseline included; or `Budget` with `attempts`
            (measurements) or `seconds`. The task's own by default.
        store: File of the store; by default `.outlay/store.db` beside the task.
        run: Name of the run; by default the task's with `-ablation`.
        seed: Seed of every random stream.
        workers: Attempts at once.
        on_step: Called after each recorded step with its entries and the state.

    Raises:
        InputError: The task or the budget is wrong, or the run of that name is another.
        OutlayError: The program has no score as it stands.
        BudgetError: The budget ended before that was known.
        StoreError: The store is locked, newer, or out of reach.
    """
    limits, settings = _limits(budget), Settings(seed=seed, workers=workers)
    if isinstance(task, Task):
        check(task)
        loaded, folder = task, Path(task.workspace.path)
    elif not isinstance(task, str | Path):
        raise bad_value("ablate", "task", task, "a Task, or the path of a task file or its folder")
    else:
        loaded, path = taskfile.load(task, limits), Path(task)
        folder = path if path.is_dir() else path.parent
    place = _place(store, folder)
    plan = of_task(loaded, place, run, limits)
    return _carried_out(plan, settings, on_step)


def ablate_run(
    run: str,
    budget: int | Budget | None = None,
    *,
    by: Literal["hunk", "file"] = "hunk",
    store: str | Path | None = None,
    name: str | None = None,
    seed: int = 0,
    workers: int = 1,
    on_step: OnStep = quiet,
) -> Surface:
    """Return the response surface of what a search's champion changed, part by part.

    It is what `outlay ablate --run RUN` measures; the report in the new run's folder names the
    minimal champion, and `outlay.ablations.findings.minimal(surface)` returns it.

    Args:
        run: Name of the search.
        budget: See `ablate_task`.
        by: What a part of a champion's patch is; with levers, each is a part.
        store: File of the store; by default `.outlay/store.db` in the current folder.
        name: Name of the new run; by default search, node and part.
        seed: Seed of every random stream.
        workers: Attempts at once.
        on_step: Called after each recorded step with its entries and the state.

    Raises:
        InputError: There is no such search, it has no confirmed champion, or the budget is wrong.
        BudgetError: The budget ended before the baseline was measured.
        StoreError: The store is locked, newer, or out of reach.
    """
    if by not in ("hunk", "file"):
        raise bad_value("ablate", "by", by, "hunk or file")
    settings = Settings(seed=seed, workers=workers)
    place = _place(store, Path())
    with SqliteStore(place) as opened:
        names = [known.name for known in opened.runs()]
        if run not in names:
            raise no_such_run(run, names)
        state = load_state(opened, run)
    plan = of_champion(state, run, place, by, name, _limits(budget))
    return _carried_out(plan, settings, on_step)


def _limits(budget: int | Budget | None) -> Budget:
    if budget is None or isinstance(budget, Budget):
        return budget or Budget()
    if isinstance(budget, bool) or not isinstance(budget, int):
        raise bad_value("ablate", "budget", budget, "a number of measurements, or a Budget")
    return Budget(attempts=budget)


def _place(store: str | Path | None, folder: Path) -> Path:
    if store is not None and not isinstance(store, str | Path):
        raise bad_value("ablate", "store", store, "the path of a file")
    return default_store(folder) if store is None else Path(store)


def _carried_out(plan: Plan, settings: Settings, on_step: OnStep) -> Surface:
    with sitting(
        plan.task,
        plan.run,
        settings,
        store=plan.store,
        on_step=on_step,
        reflector=SurfaceReflector(plan.origin),
        files=plan.files,
    ) as driver:
        driver.drive()
        found, surface, _ = conclude(driver, plan)
    if surface is None:
        raise BudgetError(f"run {plan.run!r}: {found.reason}")
    return surface
