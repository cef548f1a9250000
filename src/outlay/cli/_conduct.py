"""A sitting on the command line: signals, progress, report, the summary and the exit code."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from outlay.agents.reflector import BUILT_IN
from outlay.agents.refusals import refuse_agent, refuse_key
from outlay.cli._progress import Progress
from outlay.doctor import refuse_baseline
from outlay.planfiles import PlanFiles
from outlay.report import write_report
from outlay.report.belief_cards import favourite, saved, taken
from outlay.report.words import ending, many, tokens
from outlay.runs import run_folder
from outlay.session import sitting
from outlay.summary import Estimate, Standing, Summary, summarise

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import FrameType

    from outlay.agents.reflector import Reflector
    from outlay.driver import Driver
    from outlay.events import Entry
    from outlay.runs import Settings
    from outlay.state import State
    from outlay.task import Task

INTERRUPTED, TERMINATED = 130, 143

_EXPLAINED = {
    3: "the budget is too small to start",
    4: "no attempt has a score",
    INTERRUPTED: "interrupted; the same command goes on",
    TERMINATED: "terminated; the same command goes on",
}


class Signals:
    """Ctrl-C once starts nothing new, twice ends the children, three times leaves."""

    def __init__(self, driver: Driver) -> None:
        self.code = 0
        self._driver = driver
        self._count = 0

    def on_interrupt(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        self.code = INTERRUPTED
        if self._count > 2:
            os._exit(INTERRUPTED)
        self._driver.interrupt()
        said = ("starting nothing new; again to end what runs", "ending what runs; again to leave")
        sys.stderr.write(f"\noutlay: {said[self._count - 1]}\n")

    def on_terminate(self, number: int, frame: FrameType | None) -> None:
        self.code = TERMINATED
        self._driver.interrupt()
        self._driver.interrupt()


@contextmanager
def _listening(driver: Driver) -> Iterator[Signals]:
    signals = Signals(driver)
    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, signals.on_interrupt),
        signal.SIGTERM: signal.signal(signal.SIGTERM, signals.on_terminate),
    }
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def driven(
    task: Task,
    run: str,
    settings: Settings,
    store: Path,
    *,
    reflector: Reflector = BUILT_IN,
    files: str | None = None,
) -> Iterator[tuple[Driver, Signals]]:
    """Take the run as far as it goes, and yield its driver before the store is given back."""
    with (
        Progress(task, run, folder=run_folder(store, run)) as progress,
        sitting(
            task,
            run,
            settings,
            store=store,
            on_step=progress.step,
            reflector=reflector,
            files=files,
        ) as driver,
    ):
        plans = PlanFiles(run_folder(store, run), driver.state, driver.store.read(run))

        def on_step(entries: list[Entry], state: State) -> None:
            plans.step(entries, state)
            progress.step(entries, state)

        driver.on_step = on_step
        with _listening(driver) as signals:
            driver.drive()
        yield driver, signals


def conduct(
    task: Task, run: str, settings: Settings, store: Path, *, where: str, as_json: bool
) -> int:
    """Take the run as far as it goes, say what it came to, and return the exit code."""
    refuse_agent(task, settings.agent)
    refuse_key(task, settings.agent)
    with driven(task, run, settings, store) as (driver, signals):
        state = driver.state
        report = write_report(state, driver.store.read(run), run_folder(store, run), run)
    summary = summarise(state, run, str(report))
    refuse_baseline(state, where)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(summary) + b"\n")
    else:
        sys.stdout.write(in_words(summary, state) + "\n")
    return closing(signals, state, summary.reason)


def closing(signals: Signals, state: State, reason: str) -> int:
    """Return the exit code of a sitting, after a word on stderr if it is not 0."""
    code = signals.code or exit_code(state)
    if code in _EXPLAINED:
        sys.stderr.write(f"outlay: {_EXPLAINED[code]}: {reason}\n")
    return code


def exit_code(state: State) -> int:
    """Return 0 for a run that did its job, 3 if it could not start, 4 if nothing was usable."""
    if state.ended is None:
        return 0
    if state.ended.status == "budget" and not state.attempts:
        return 3
    scored = any(node.status == "scored" and node.attempt for node in state.tree.nodes)
    tried = state.attempts or (state.drafting and state.ended.status == "exhausted")
    return 4 if tried and not scored else 0


def in_words(summary: Summary, state: State) -> str:
    """Return the summary for a person, a few lines."""
    ended = f"{summary.status}, {summary.reason}"
    if state.ended is not None:
        ended = ending(state, state.ended)
    lines = [f"{summary.run}: {ended} ({many(summary.attempts, 'attempt')})"]
    if summary.baseline is not None and summary.champion is not None:
        lines.append(f"baseline  {_scores(summary, summary.baseline)}")
        if summary.champion.node == summary.baseline.node:
            lines.append("champion  none: no gain was confirmed, the baseline stands")
        else:
            lines.append(f"champion  {_scores(summary, summary.champion)}")
            lines.append(f"          node {summary.champion.node}: {_changed(summary)}")
    if summary.difference is not None and summary.champion != summary.baseline:
        lines.append(f"gain      {_interval(summary.difference)}, paired, positive is better")
    lines += [f"{used.role:<9} {used.who}: {tokens(used)}" for used in summary.agents]
    if summary.beliefs is not None:
        lines.append(f"beliefs   {favourite(summary.beliefs)}")
        lines.append(f"designs   {taken(summary.beliefs)} {saved(summary.beliefs)}")
    if summary.untested:
        named = ", ".join(map(str, summary.untested))
        lines.append(f"untested  node {named}: may be better; a raised limit compares it first")
    if summary.self_reported:
        lines.append("caution   self-reported: a file that the agent may edit prints the metric")
    lines += [f"problem   {problem}" for problem in summary.problems]
    if summary.report:
        lines.append(f"report    {summary.report}")
    return "\n".join(lines)


def _scores(summary: Summary, standing: Standing) -> str:
    fresh = f"; fresh {_interval(standing.fresh)}" if standing.fresh else ""
    return f"{summary.metric} selected at {standing.selected:.6g}{fresh}"


def _changed(summary: Summary) -> str:
    if summary.baseline is None or summary.champion is None:
        return ""
    before = summary.baseline.configuration
    changes = [
        f"{lever}={option}"
        for lever, option in summary.champion.configuration.items()
        if before.get(lever) != option
    ]
    return ", ".join(changes) or "its files differ"


def _interval(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return f"{estimate.mean:.6g} (one seed, no interval)"
    return (
        f"{estimate.mean:.6g} [{estimate.low:.6g}, {estimate.high:.6g}] (95 %, {estimate.n} seeds)"
    )
