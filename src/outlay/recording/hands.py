"""What stands in for the engine in a replay: what came from outside is taken from the record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from outlay import events
from outlay.errors import OutlayError
from outlay.execution.environment import child_environment, for_uv, threads
from outlay.execution.job import AgentTold, Result
from outlay.execution.pool import LocalPool
from outlay.jobs import Place, job_for, job_id, template, work_of
from outlay.settling import settle_attempt, settle_measurement, settle_reflection

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from outlay.events import Launch, Settled
    from outlay.execution.job import Job
    from outlay.recording.lines import Record
    from outlay.state import State
    from outlay.task import Task

_EARNED = ("crash", "metric", "protected")
"""Faults of a program that was evaluated; it has them again."""

_UNEVALUATED = ("check", "patch")
"""Likewise, of one that did not come to its evaluation."""


class Hands:
    """Tells what work came to when it was recorded; of models, as their answers and exchanges say.

    Args:
        record: What is replayed.
        task: Its task.
        folder: A run's folder that holds the record's files.
        evaluate: Carry evaluations out, where they came to an end of their own.

    Attributes:
        evaluations: Evaluations that were carried out.
    """

    def __init__(self, record: Record, task: Task, folder: Path, *, evaluate: bool) -> None:
        happened = [entry.event for entry in record.entries]
        sittings = (e.workers for e in happened if isinstance(e, events.SittingStarted))
        workers, path = max(sittings, default=1), task.workspace.path
        environment = child_environment((), threads(workers)) | for_uv(path)
        self.evaluations = 0
        self._record = record
        self._evaluate = evaluate
        self._place = Place(folder=folder, environment=environment, mask=(path,))
        self._common = template(task, self._place)
        self._pool = LocalPool(folder, workers)
        self._settled = {job_id(e): e for e in happened if isinstance(e, events.Settled)}
        self._results: dict[str, Result] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.close()

    def start(self, state: State, launch: Launch) -> None:
        """Start the evaluations of a launch, if they are to be carried out."""
        settled = self._settled.get(job_id(launch))
        if self._evaluate and settled is not None and _is_of_program(settled):
            self._pool.start(self._job(state, launch, settled))

    def settle(self, state: State, settled: Settled) -> Settled:
        """Return what work came to now, once it is there, given what it came to then."""
        launch, told = state.works[work_of(settled)].launch, self._told(settled)
        if isinstance(launch, events.ReflectionLaunched):
            if settled.outcome != "scored":
                return settled
            answered = Result(id=job_id(settled), status="done", agent=told)
            return self._with_use(settle_reflection(state, launch, answered), settled)
        if not _is_of_program(settled):
            return settled
        if not self._evaluate:
            return self._with_use(settled, settled)
        result = self._wait(job_id(settled))._replace(agent=told)
        self.evaluations += len(result.runs)
        if isinstance(launch, events.MeasurementLaunched):
            return settle_measurement(state, launch, result)
        return self._with_use(settle_attempt(state, launch, result, cut=False), settled)

    def _job(self, state: State, launch: Launch, settled: Settled) -> Job:
        """Return the job of a launch, on the files that the agent left then."""
        job = job_for(state, launch, self._common, self._place, None)
        if (seconds := state.task.limits.seconds) is not None:
            job = job._replace(seconds=seconds * len(job.runs))
        if isinstance(settled, events.AttemptSettled) and not state.with_levers:
            left = job.subjects[0]._replace(files=settled.files or state.start)
            job = job._replace(subjects=(left,))
        return job

    def _wait(self, job: str) -> Result:
        while job not in self._results:
            found = self._pool.wait(None)
            if not found:
                raise OutlayError(f"record: {job} has no result, and is not under way")
            self._results.update((result.id, result) for result in found)
        return self._results.pop(job)

    def _told(self, settled: Settled) -> AgentTold | None:
        """Return the last words of its client, if there was one."""
        if isinstance(settled, events.MeasurementSettled) or settled.agent is None:
            return None
        answer = self._record.answers.get(job_id(settled), "")
        return AgentTold(settled.agent.client, answer=answer)

    def _with_use(self, made: Settled, settled: Settled) -> Settled:
        """Return the outcome with what its model used, as its exchanges count it if it has any."""
        if isinstance(made, events.MeasurementSettled) or isinstance(
            settled, events.MeasurementSettled
        ):
            return made
        charge, agent = replace(settled.charge, attempts=made.charge.attempts), settled.agent
        counted = self._record.counted.get(job_id(settled))
        if counted is not None and agent is not None and agent.source == "proxy":
            charge = replace(
                charge,
                tokens_in=counted.input - counted.cached,
                tokens_cached=counted.cached,
                tokens_out=counted.output,
            )
            agent = replace(
                agent,
                requests=counted.requests,
                reasoning=counted.reasoning,
                cache_write=counted.cache_write,
            )
        return replace(made, charge=charge, agent=agent)


def _is_of_program(settled: Settled) -> bool:
    """Return whether the outcome is that of a program, and not of a limit, machine or agent."""
    if isinstance(settled, events.ReflectionSettled) or settled.outcome not in (
        "scored",
        "failed",
    ):
        return False
    if settled.outcome == "scored" or settled.reason in _UNEVALUATED:
        return True
    return settled.reason in _EARNED and bool(settled.evaluations)
