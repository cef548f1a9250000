"""The commands of a job, in order: agent, correctness check, evaluations."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outlay.execution import fault, harbor, metric, sandbox, snapshot, step
from outlay.execution.folder import file_text
from outlay.execution.job import Evaluated
from outlay.execution.runner import Runner, how_it_ended
from outlay.execution.workspace import Workspace

if TYPE_CHECKING:
    from outlay.agents.clients.contract import Ending
    from outlay.execution.job import AgentTold, AgentWork, Job

_NOT_ITS_OWN = ("key", "provider", "cut")
"""Why a client failed through no fault of its own."""

_OWN_FAULTS = ("crash", "metric")
"""Faults that concern one evaluation only."""


class Progress:
    """What a job has to show so far, whatever comes next."""

    def __init__(self) -> None:
        self.runs: list[Evaluated] = []
        self.files = ""
        self.detail = ""
        self.usage: dict[str, Any] = {}
        self.agent: AgentTold | None = None


def carry_out(job: Job, kind: sandbox.Kind, watch: step.Watch, progress: Progress) -> None:
    """Do everything the job asks for; raises `Fault` at the first thing that goes wrong."""
    folder = Path(job.folder)
    for name in ("tmp", "exchange"):
        (folder / name).mkdir(exist_ok=True)
    spaces = [Workspace(job, index) for index in range(len(job.subjects))]
    with open(folder / "out.txt", "ab", 0) as out, open(folder / "err.txt", "ab", 0) as err:
        work = _Work(job, Runner(job, kind, watch, out, err))
        for space in spaces:
            space.lay_out()
        progress.files = spaces[0].files
        if job.agent is not None:
            work.agent(job.agent, spaces[0], progress)
        if job.check:
            work.check(spaces)
        _evaluate_all(job, work, spaces, progress)


def _evaluate_all(job: Job, work: _Work, spaces: list[Workspace], progress: Progress) -> None:
    """Carry out the runs; raises the first fault, at once or, to keep going, at the end."""
    first: fault.Fault | None = None
    for index, seed in job.runs:
        try:
            work.evaluate(spaces[index], index, seed, progress)
        except fault.Fault as found:
            if not job.keep_going or found.reason not in _OWN_FAULTS:
                raise
            first = first or found
    if first is not None:
        raise first


class _Work:
    """The three kinds of command that a job runs."""

    def __init__(self, job: Job, runner: Runner) -> None:
        self._job = job
        self._runner = runner

    def agent(self, task: AgentWork, space: Workspace, progress: Progress) -> None:
        """Let the agent work in the workspace, with the hidden files absent.

        What it left is kept whatever came of it; asked for an answer, it leaves no files.
        """
        from outlay.execution.agent import Session

        before = space.files
        space.withhold()
        session = Session(task, self._runner, space)
        try:
            ending = session.work()
        finally:
            progress.usage, progress.agent = session.used(), session.told()
            if not task.schema:
                progress.detail = space.settle()
                progress.files = space.files
        if not ending.ok and ending.reason in _NOT_ITS_OWN:
            raise fault.machine(ending.reason, ending.detail)
        if not ending.ok and not (task.partial and space.files != before):
            raise fault.failed(ending.reason or "agent", ending.detail)
        if space.files == before and not task.schema:
            raise fault.failed("unchanged", _changed_nothing(ending))

    def check(self, spaces: list[Workspace]) -> None:
        """Run the correctness command in every workspace."""
        for space in spaces:
            ended = self._runner.run(f"{space.subject.label} check", self._job.check, space, {})
            if ended.code != 0:
                raise fault.failed("check", how_it_ended("the correctness command", ended))

    def evaluate(self, space: Workspace, index: int, seed: int | None, progress: Progress) -> None:
        """Evaluate once, and note the value or the fault."""
        result = self._runner.exchange / "result.json"
        _clear(self._runner.exchange, "result.json")
        if self._job.source != "stdout":
            _clear(space.root, self._job.source)
        label = f"{space.subject.label} seed {seed}"
        env = {"OUTLAY_RESULT": str(result), "OUTLAY_CONFIG": json.dumps(space.subject.config)}
        begun = time.monotonic()
        try:
            with self._runner.exclusive():
                begun = time.monotonic()
                ended = self._runner.run(label, self._command(space, seed), space, env)
            reading = self._reading(result, space, ended)
            # A verifier may say by its exit code what its reward says; other evaluators may not.
            if ended.code != 0 and not (self._job.container and reading.value is not None):
                raise fault.failed("crash", how_it_ended("the evaluator", ended))
            space.check()
            if reading.value is None:
                raise fault.failed("metric", reading.fault)
        except fault.Fault as found:
            progress.runs.append(_evaluated(index, seed, begun, fault=found.detail))
            raise
        progress.runs.append(_evaluated(index, seed, begun, reading.value, reading.metrics))

    def _command(self, space: Workspace, seed: int | None) -> tuple[str, ...]:
        if self._job.function is not None:
            source = Path(__file__).with_name("call.py").read_text(encoding="utf-8")
            return (sys.executable, "-c", source, self._job.function, json.dumps(seed))
        shown = "" if seed is None else str(seed)
        command = tuple(part.replace("{seed}", shown) for part in self._job.command)
        return command + space.subject.args

    def _reading(self, result: Path, space: Workspace, ended: step.Ended) -> metric.Reading:
        job = self._job
        rule = metric.Rule(
            name=job.metric, line=job.line, low=job.low, high=job.high, secondary=job.secondary
        )
        if job.container:
            missing = "the verifier left neither reward.json nor reward.txt in /logs/verifier"
            return harbor.reading(rule, self._runner.exchange) or metric.Reading(None, {}, missing)
        if (text := file_text(result)) is not None:
            return metric.from_json(rule, text, "the file named in OUTLAY_RESULT")
        if job.source == "stdout":
            return metric.from_stdout(rule, ended.out.text())
        text = file_text(space.root / job.source)
        if text is None:
            return metric.Reading(None, {}, f"metric file {job.source} was not written")
        return metric.from_json(rule, text, job.source)


def _evaluated(
    subject: int,
    seed: int | None,
    begun: float,
    value: float | None = None,
    metrics: dict[str, float] | None = None,
    *,
    fault: str = "",
) -> Evaluated:
    return Evaluated(
        subject=subject,
        seed=seed,
        value=value,
        seconds=time.monotonic() - begun,
        metrics=metrics or {},
        fault=fault,
    )


def _changed_nothing(ending: Ending) -> str:
    said = ending.detail or " ".join(ending.answer.split())[:200]
    return "the agent changed no file" + (f"; it said: {said}" if said else "")


def _clear(root: Path, path: str) -> None:
    """Remove what an earlier command may have left where an answer is expected."""
    if os.path.lexists(root / path):
        snapshot.free(root, path)
