"""The main job from Python: `search`, and `Study` for those who own the loop."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from outlay import taskfile
from outlay.agents.access import LEVERS, suited
from outlay.agents.choosing import chosen
from outlay.agents.refusals import refuse_agent, refuse_key
from outlay.agents.strangers import refuse_unconfirmed
from outlay.doctor import refuse_baseline
from outlay.errors import InputError
from outlay.execution.job import Evaluated, Job, Result
from outlay.run import Run
from outlay.runs import Settings, default_store, run_folder
from outlay.session import quiet, sitting
from outlay.task import Agent, Evaluator, Task, check

if TYPE_CHECKING:
    from typing import Self

    from outlay.driver import Driver
    from outlay.execution.calls import Function
    from outlay.session import OnStep
    from outlay.state import State
    from outlay.task import Budget


def search(
    task: Task | str | Path,
    evaluate: Function | None = None,
    *,
    store: str | Path | None = None,
    run: str | None = None,
    seed: int = 0,
    workers: int = 1,
    agent: str | Agent | None = None,
    budget: Budget | None = None,
    on_step: OnStep = quiet,
) -> Run:
    """Search over plans under the task's budget and return the run.

    The same call continues a run that was interrupted, if its store is a file.

    Args:
        task: A task, or the path of a task file or of its folder.
        evaluate: Called as `evaluate(configuration, seed)` in this process, one call at a time, in
            place of the task's evaluator; its limits cannot be enforced. A task whose evaluator
            names a `module:function` needs no argument here and keeps its limits.
        store: File of the store; by default `.outlay/store.db` beside a task file, and memory
            for a task built in Python that is evaluated here.
        run: Name of the run; the task's name by default.
        seed: Seed of every random stream.
        workers: Attempts at once.
        agent: `levers`, `codex`, `claude`, `opencode`, or `command:` or `acp:` and a command line;
            or an `outlay.Agent` with its model, address and key; the task's own by default.
        budget: Limits that replace those of the task, one by one.
        on_step: Called after each recorded step with its entries and the state.

    Raises:
        InputError: The task is wrong, differs from the run of that name, or the metric of the
            program as it stands is at fault; or its file would have a key sent where neither this
            machine nor the key's usual provider is, which a `Task` may.
        OutlayError: The program has no score as it stands.
        StoreError: The store is locked, newer, or out of reach.
    """
    called = evaluate is not None
    loaded = _with_agent(_loaded(task, budget, called=called), agent, called=called)
    who = chosen(loaded.agent, os.environ)
    if called and (who, workers) != (LEVERS, 1):
        found = f"agent {who!r} and {workers} workers"
        raise InputError(f"search: found {found} with a callable, allowed: {LEVERS!r} and 1")
    if not isinstance(task, Task):
        url, instead = agent.url if isinstance(agent, Agent) else "", "a Task in place of its path"
        refuse_unconfirmed(loaded, who, url=url, named=agent is not None, instead=instead)
    place = _store_of(task, loaded, store, in_memory=called)
    loaded, name = suited(loaded, who), loaded.name if run is None else run
    settings = Settings(seed=seed, agent=who, workers=workers)
    refuse_agent(loaded, who)
    refuse_key(loaded, who)
    with sitting(
        loaded, name, settings, store=place, function=evaluate, on_step=on_step
    ) as driver:
        driver.drive()
        refuse_baseline(driver.state, f"run {name!r}")
        return Run(name, list(driver.store.read(name)), run_folder(place, name) if place else None)


def _loaded(task: Task | str | Path, budget: Budget | None, *, called: bool) -> Task:
    if isinstance(task, Task):
        loaded = replace(task, budget=task.budget.with_limits(budget))
        check(loaded, called=called)
    elif isinstance(task, str | Path):
        loaded = taskfile.load(task, budget)
    else:
        raise InputError(f"task: found a {type(task).__name__}, allowed: a Task, or a path")
    if called:  # the caller's function gets seeds whatever the command does
        return replace(loaded, evaluator=Evaluator(noise=loaded.evaluator.noise))
    return loaded


def _with_agent(task: Task, agent: str | Agent | None, *, called: bool) -> Task:
    """Return the task with who carries plans out, as the command line would have it."""
    if agent is None:
        return task
    table = agent if isinstance(agent, Agent) else replace(task.agent, client=agent)
    changed = replace(task, agent=table)
    check(changed, "search", called=called)
    return changed


def _store_of(
    task: Task | str | Path, loaded: Task, store: str | Path | None, *, in_memory: bool
) -> Path | None:
    if store is not None:
        return Path(store)
    if isinstance(task, Task):
        return None if in_memory else default_store(loaded.workspace.path)
    path = Path(task)
    return default_store(path if path.is_dir() else path.parent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One evaluation that the study wants.

    Attributes:
        configuration: Lever to option.
        seed: Seed to evaluate with; `None` if the evaluator takes none.
        purpose: `attempt`, or `measurement` for baseline, confirmation and final estimate.
        job: Which piece of work it belongs to.
        place: Its place in that.
    """

    configuration: dict[str, str]
    seed: int | None
    purpose: str
    job: str
    place: int


class Study:
    """A search whose evaluations are carried out by the caller.

        study = outlay.Study(task)
        while (ask := study.ask()) is not None:
            study.tell(ask, evaluate(ask.configuration, ask.seed))
        print(study.run().champion)

    Several asks may be out at once, up to `workers` pieces of work; `ask` returns `None` when
    nothing can be handed out before something is told, and when the run has ended (`ended`).
    What was asked and never told is asked again when the study is opened the next time.

    Args:
        task: What to research; it needs levers.
        store: File of the store; `None` keeps the study in memory.
        run: Name of the run; the task's name by default.
        seed: Seed of every random stream.
        workers: Pieces of work that may be out at once.
    """

    def __init__(
        self,
        task: Task | str | Path,
        *,
        store: str | Path | None = None,
        run: str | None = None,
        seed: int = 0,
        workers: int = 1,
    ) -> None:
        loaded = _loaded(task, None, called=True)
        settings = Settings(seed=seed, workers=workers)
        refuse_agent(loaded, settings.agent)
        self.name = loaded.name if run is None else run
        self._store = Path(store) if store is not None else None
        self._desk = _Desk()
        self._context = sitting(
            loaded,
            self.name,
            settings,
            store=self._store,
            engine=self._desk,
        )
        self._driver: Driver = self._context.__enter__()
        self._driver.adopt()
        self._take_in()

    @property
    def state(self) -> State:
        """The state of the run."""
        return self._driver.state

    @property
    def ended(self) -> bool:
        """Whether the run is over."""
        return self.state.ended is not None

    def ask(self) -> Ask | None:
        """Return an evaluation to carry out, or `None` if there is none now."""
        if not self._desk.waiting:
            self._driver.advance()
        return self._desk.hand_out()

    def tell(self, ask: Ask, value: float, *, seconds: float = 0.0) -> None:
        """Give the value of an evaluation, in metric units; NaN and infinities are failures.

        Raises:
            InputError: It is no number; nothing was told then.
        """
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise InputError(f"tell: found {value!r}, allowed: a number; fail() is for failures")
        fault = "" if isfinite(value) else f"found {value}, allowed: a finite number"
        self._close(ask, None if fault else float(value), seconds, fault)

    def fail(self, ask: Ask, reason: str, *, seconds: float = 0.0) -> None:
        """Say that an evaluation gave no value, and why."""
        self._close(ask, None, seconds, reason or "no reason given")

    def run(self) -> Run:
        """Return the run as it stands."""
        folder = run_folder(self._store, self.name) if self._store else None
        return Run(self.name, list(self._driver.store.read(self.name)), folder)

    def close(self) -> None:
        """Give the store back; the study can be opened again."""
        self._context.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _close(self, ask: Ask, value: float | None, seconds: float, fault: str) -> None:
        self._desk.take_back(ask, value, seconds, fault)
        self._take_in()

    def _take_in(self) -> None:
        for result in self._desk.wait(0):
            self._driver.settle(result)


class _Desk:
    """The engine of a study: keeps jobs until the caller has carried their evaluations out."""

    def __init__(self) -> None:
        self.waiting: list[Ask] = []
        self._jobs: dict[str, Job] = {}
        self._done: dict[str, dict[int, Evaluated]] = {}
        self._results: list[Result] = []

    def start(self, job: Job) -> None:
        self._jobs[job.id], self._done[job.id] = job, {}
        for place, (subject, seed) in enumerate(job.runs):
            self.waiting.append(
                Ask(
                    configuration=dict(job.subjects[subject].config),
                    seed=seed,
                    purpose="attempt" if job.id.startswith("a") else "measurement",
                    job=job.id,
                    place=place,
                )
            )

    def hand_out(self) -> Ask | None:
        return self.waiting.pop(0) if self.waiting else None

    def take_back(self, ask: Ask, value: float | None, seconds: float, fault: str) -> None:
        if ask.job not in self._jobs or ask.place in self._done[ask.job]:
            raise ValueError(f"evaluation {ask.place} of {ask.job} was told already")
        job, done = self._jobs[ask.job], self._done[ask.job]
        done[ask.place] = Evaluated(
            subject=job.runs[ask.place][0],
            seed=ask.seed,
            value=value,
            seconds=seconds,
            fault=fault,
        )
        if len(done) == len(job.runs):
            self._finish(job, tuple(done[place] for place in range(len(job.runs))))

    def _finish(self, job: Job, runs: tuple[Evaluated, ...]) -> None:
        del self._jobs[job.id], self._done[job.id]
        faults = [run.fault for run in runs if run.fault]
        result = Result(
            id=job.id,
            status="failed" if faults else "done",
            reason="crash" if faults else "",
            detail=faults[0] if faults else "",
            runs=runs,
            seconds=sum(run.seconds for run in runs),
        )
        self._results.append(result._replace(files=job.subjects[0].files))

    def adopt(self, job_id: str, token: str) -> None:
        self._results.append(Result(id=job_id, status="infrastructure", reason="ended"))

    def wait(self, timeout: float | None) -> list[Result]:
        found, self._results = self._results, []
        return found

    def end(self, job_id: str) -> None:
        self.adopt(job_id, "")

    def close(self) -> None:
        self.waiting.clear()
