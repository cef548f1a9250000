"""An engine for a Python callable that lives in the driver's own process.

One job at a time, and no limit can be enforced: nothing can end a call from outside.
"""

from __future__ import annotations

import time
from math import isfinite
from typing import TYPE_CHECKING

from outlay.execution.job import Evaluated, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from outlay.execution.job import Job

    Function = Callable[[dict[str, str], int | None], float | Mapping[str, float]]


class Calls:
    """Calls `function(configuration, seed)` for every evaluation of a job.

    A call returns the metric, or a mapping with the metric and secondary ones. Whatever it raises
    is a fault of that evaluation, and so are NaN and infinities; `KeyboardInterrupt` passes.
    """

    def __init__(
        self, function: Function, *, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._function = function
        self._clock = clock
        self._results: list[Result] = []

    def start(self, job: Job) -> None:
        """Carry the job out at once."""
        runs: list[Evaluated] = []
        for subject, seed in job.runs:
            runs.append(self._evaluate(job, subject, seed))
            if runs[-1].fault and not job.keep_going:
                break
        fault = next((run.fault for run in runs if run.fault), "")
        self._results.append(
            Result(
                id=job.id,
                status="failed" if fault else "done",
                reason="crash" if fault else "",
                detail=fault,
                runs=tuple(runs),
                seconds=sum(run.seconds for run in runs),
                files=job.subjects[0].files,
                sandbox="none",
            )
        )

    def adopt(self, job_id: str, token: str) -> None:
        """Report a job of an earlier driver as ended: it died with that driver."""
        self._results.append(Result(id=job_id, status="infrastructure", reason="ended"))

    def wait(self, timeout: float | None) -> list[Result]:
        """Return the results since the last call."""
        found, self._results = self._results, []
        return found

    def end(self, job_id: str) -> None:
        """Do nothing: a job is over before anyone can ask."""

    def close(self) -> None:
        """Do nothing, for the same reason."""

    def _evaluate(self, job: Job, subject: int, seed: int | None) -> Evaluated:
        began = self._clock()
        value: float | None = None
        metrics: dict[str, float] = {}
        fault = ""
        try:
            value, metrics = _read(job, self._function(dict(job.subjects[subject].config), seed))
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
        return Evaluated(
            subject=subject,
            seed=seed,
            value=value,
            seconds=self._clock() - began,
            metrics=metrics,
            fault=fault,
        )


def _read(job: Job, returned: float | Mapping[str, float]) -> tuple[float, dict[str, float]]:
    """Return the metric and the secondary ones; raises `ValueError` for what is no score."""
    if isinstance(returned, (int, float)):
        named: dict[str, float] = {job.metric: returned}
    else:
        named = dict(returned)
    if job.metric not in named:
        raise ValueError(
            f"found no {job.metric!r} among {', '.join(map(repr, named)) or 'nothing'}"
        )
    value = float(named[job.metric])
    low = -float("inf") if job.low is None else job.low
    high = float("inf") if job.high is None else job.high
    if not isfinite(value) or not low <= value <= high:
        raise ValueError(f"{job.metric}: found {value}, allowed: a number in [{low}, {high}]")
    return value, {k: float(v) for k, v in named.items() if k in job.secondary}
