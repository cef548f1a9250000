"""What can be known before anything is spent: whether a task works, its noise and its cost.

The evaluator is tried as the run's baseline would be, in a place that is thrown away.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from outlay.agents.access import LEVERS, executor, metered, reflector
from outlay.agents.prices import price_of
from outlay.agents.refusals import refuse_agent
from outlay.allocation.policies import by_name
from outlay.decision.baseline import NOISE_SEEDS
from outlay.decision.reserves import final_reserve
from outlay.errors import InputError, OutlayError
from outlay.execution import sandbox
from outlay.execution.agent import by_itself
from outlay.execution.snapshot import load
from outlay.globs import matches
from outlay.session import sitting
from outlay.taskfile import notes
from outlay.trust import imports_from_agent

if TYPE_CHECKING:
    from outlay.runs import Settings
    from outlay.state import State
    from outlay.task import Task

LITTLE_DISK = 500_000_000
"""Free bytes below which a run may not get far."""

CHALLENGERS = 0.4
"""Share of attempts that are expected to be compared with the champion, for the estimate."""

PAIRS_EACH = 2.5
"""Pairs that such a comparison takes on average."""


_WEAKER = {
    "unshare": "unshare: own processes; files and network are shared",
    "subreaper": "subreaper: processes are found and ended; files and network are shared",
}

_KEYS = {
    "check": "evaluate.check",
    "timeout": "limits.seconds",
    "memory": "limits.memory",
    "protected": "task.protected",
    "patch": "levers",
}
"""Where to look for what kept the baseline from having a score."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at.

    Attributes:
        name: What.
        ok: `False` means that a search would be wrong or stop.
        found: What was found, one line.
    """

    name: str
    ok: bool
    found: str


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is expected to take.

    Attributes:
        evaluation_seconds: One evaluation.
        evaluations: All of them, with the expected share of comparisons.
        seconds: Wall clock of the whole run.
        usd: Money; levers spend none. `None` for an agent, whose attempts nobody can foretell.
        priced: Whether every model that works has a price.
    """

    evaluation_seconds: float
    evaluations: int
    seconds: float
    usd: float | None = 0.0
    priced: bool = True


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that doctor found.

    Attributes:
        task: Name of the task.
        checks: What was looked at.
        noise: `seed`, `machine` or `none`, as one seed run twice shows.
        noise_sd: Standard deviation of one evaluation over `values`, metric units.
        values: The baseline's values.
        cost: What a run is expected to take.
    """

    task: str
    checks: list[Check]
    noise: str
    noise_sd: float | None
    values: list[float]
    cost: Cost

    @property
    def ok(self) -> bool:
        """Whether a search can begin."""
        return all(check.ok for check in self.checks)


def examine(task: Task, settings: Settings, where: str) -> Findings:
    """Return what is found by really evaluating the program as it stands.

    Args:
        task: What would be researched.
        settings: How.
        where: What messages call the task, such as the path of its file.

    Raises:
        InputError: The evaluator's metric is at fault.
        OutlayError: The program fails as it stands.
    """
    with tempfile.TemporaryDirectory(prefix="outlay-doctor-") as folder:
        trial = replace(task, budget=replace(task.budget, seconds=None))
        store = Path(folder) / "store.db"
        refused = _refused(task, settings)
        # An agent that cannot start changes nothing about the baseline, which it takes no part in.
        able = replace(settings, agent=LEVERS) if refused else settings
        with sitting(trial, "doctor", able, store=store) as driver:
            driver.drive(until=lambda state: state.reward is not None or state.ended is not None)
            state = driver.state
            kept = _kept(task, Path(folder) / "runs" / "doctor" / "objects", state)
    refuse_baseline(state, where)
    return Findings(
        task=task.name,
        checks=[
            *_surroundings(task, able.agent),
            kept,
            *_evaluator(state),
            *(refused or _plan(task, state)),
        ],
        noise=_noise_kind(state),
        noise_sd=state.contest.noise.sd,
        values=list(state.baseline_values.values()),
        cost=expected_cost(state, settings.agent),
    )


def refuse_baseline(state: State, where: str) -> None:
    """Raise the error of a baseline that has no score; do nothing if it has one.

    Args:
        state: The run's state after its baseline.
        where: What the message calls the task.
    """
    fault, metric = state.baseline_fault, state.task.metric
    if state.defaults_differ:
        raise InputError(f"{where}: {state.problems[-1]}")
    if fault is None:
        return
    found = fault.detail or fault.reason
    if fault.reason == "metric":
        low = "" if metric.low is None else f", at least {metric.low:g}"
        high = "" if metric.high is None else f", at most {metric.high:g}"
        raise InputError(
            f"{where}: evaluate.metric: found: {found}; allowed: one finite number named "
            f"{metric.name!r}{low}{high}"
        )
    key = _KEYS.get(fault.reason, "evaluate.command")
    raise OutlayError(
        f"{where}: {key}: the program has no score as it stands: {found}; "
        "put it right and run the same command again"
    )


def expected_cost(state: State, agent: str) -> Cost:
    """Return what a run is expected to take, from the baseline's seconds and the limits.

    Args:
        state: After the baseline.
        agent: Who carries plans out.
    """
    task = state.task
    attempts = task.budget.attempts
    selection = len(task.seeds.selection)
    compares = task.coordination.confirmation != "none"
    each = selection + compares * 2 * CHALLENGERS * PAIRS_EACH
    fixed = selection + NOISE_SEEDS + 2 * len(task.seeds.final)
    if attempts is None:
        left = (task.budget.seconds or 0.0) - final_reserve(state)
        attempts = max(0, int(left / max(each * state.baseline_seconds, 1e-9)))
    evaluations = round(attempts * each + fixed)
    seconds = evaluations * state.baseline_seconds / state.workers
    if task.budget.seconds is not None:
        seconds = min(seconds, task.budget.seconds)
    works = executor(task, agent), reflector(task, agent)
    models = [found.model for found in works if found is not None]
    return Cost(
        evaluation_seconds=state.baseline_seconds,
        evaluations=evaluations,
        seconds=seconds,
        usd=None if models else 0.0,
        priced=all(price_of(task, model) is not None for model in models),
    )


def _surroundings(task: Task, agent: str) -> list[Check]:
    free = shutil.disk_usage(task.workspace.path).free
    return [
        *(Check(name="harbor", ok=True, found=note) for note in notes(task)),
        Check(name="sandbox", ok=True, found=_held(task, agent)),
        Check(name="disk", ok=free > LITTLE_DISK, found=f"{free / 1e9:.1f} GB free"),
        Check(name="sqlite", ok=True, found=sqlite3.sqlite_version),
    ]


def _held(task: Task, agent: str) -> str:
    """Return how attempts are held, and what is open to them all the same."""
    kind = sandbox.best()
    if kind != "bwrap":
        return _WEAKER[kind]
    works = filter(None, (executor(task, agent), reflector(task, agent)))
    alone = {w.client for w in works if by_itself(w.client, metered(w, os.environ).url)}
    opened = [f"the network for {client}, on an account of its own" for client in sorted(alone)]
    if task.sandbox.network:
        opened = ["the network for every attempt (sandbox.network)"]
    if task.sandbox.read:
        opened.append(f"{', '.join(task.sandbox.read)} to read (sandbox.read)")
    own = "own processes" if task.sandbox.network else "own processes, own network"
    held = f"bubblewrap: {own}, the run's store out of sight"
    return f"{held}; open: {'; '.join(opened)}" if opened else held


def _kept(task: Task, objects: Path, state: State) -> Check:
    """Return how many files attempts start from, and how many of them are protected."""
    paths = list(load(state.start, objects))
    safe = sum(matches(path, task.workspace.protected) for path in paths)
    hidden = sum(matches(path, task.workspace.hidden) for path in paths)
    found = f"{len(paths)} files, {safe} protected, {hidden} hidden"
    missing = [
        glob
        for glob in (*task.workspace.protected, *task.workspace.hidden)
        if not any(matches(path, (glob,)) for path in paths)
    ]
    if missing:
        found += f"; nothing matches {', '.join(missing)}"
    return Check(name="workspace", ok=not missing, found=found)


def _refused(task: Task, settings: Settings) -> list[Check]:
    """Return what of policy and agent would keep a first attempt from starting."""
    try:
        by_name(task.search.policy)
        refuse_agent(task, settings.agent)
    except InputError as error:
        return [Check(name="plan", ok=False, found=str(error))]
    return []


def _plan(task: Task, state: State) -> list[Check]:
    """Return what of the budget would keep a first attempt from starting."""
    left = task.budget.seconds
    needed = final_reserve(state) + (NOISE_SEEDS + 3) * state.baseline_seconds
    if left is not None and left < needed:
        found = f"time is {left:g} s; baseline, one attempt and final estimate need {needed:.1f} s"
        return [Check(name="budget", ok=False, found=found)]
    return []


def _evaluator(state: State) -> list[Check]:
    metric = state.task.metric
    values = ", ".join(f"{value:.6g}" for value in state.baseline_values.values())
    checks = [Check(name="metric", ok=True, found=f"{metric.name} = {values}")]
    checks += [Check(name="evaluator", ok=False, found=problem) for problem in state.problems]
    if not state.problems:
        checks.append(Check(name="noise", ok=True, found=_noise_words(state)))
    if not state.with_levers and (script := imports_from_agent(state.task)):
        found = (
            f"an agent could put a json.py beside {script}, which would be imported in place of "
            "Python's own; list what may change in task.editable, or run it with python3 -P"
        )
        checks.append(Check(name="imports", ok=True, found=found))
    return checks


def _noise_kind(state: State) -> str:
    if state.repeat_differs:
        return "machine"
    return "seed" if len(set(state.baseline_values.values())) > 1 else "none"


_NOISE_WORDS = {
    "machine": "one seed gave two values: the machine decides",
    "seed": "one seed gave one value twice, and seeds differ",
    "none": "every evaluation gave the same value: no noise was seen",
}


def _noise_words(state: State) -> str:
    """Return what one seed run twice says beside what the task declares."""
    declared, found = state.task.evaluator.noise, _noise_kind(state)
    words = f"declared {declared}; {_NOISE_WORDS[found]}"
    if declared == "machine" and found == "seed":
        return f'{words}, so noise = "seed" would do and is faster'
    return words
