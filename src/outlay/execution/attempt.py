"""The process of one job: `outlay attempt RUN_FOLDER JOB_ID`. Standard library only.

It claims the job, holds its limits, ends its whole process tree and leaves one result file. Exit
codes: 0 the result is there, or another process has the job and nothing was spent; 1 no result
could be written; 2 there is no such job.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from typing import TYPE_CHECKING

from outlay.execution import evaluation, fault, folder, sandbox, snapshot, step
from outlay.execution.folder import Usage
from outlay.execution.job import Job, Result
from outlay.execution.processes import row

if TYPE_CHECKING:
    from pathlib import Path

_SPARE = 1 << 30


def main(arguments: list[str]) -> int:
    """Carry out one job and return the exit code."""
    if len(arguments) != 2:
        return _say("usage: outlay attempt RUN_FOLDER JOB_ID", 2)
    place = folder.job_folder(os.path.realpath(arguments[0]), arguments[1])
    try:
        job = folder.read_job(place)._replace(folder=str(place))
    except (OSError, ValueError) as error:
        return _say(f"no job {arguments[1]} in {arguments[0]}: {error}", 2)
    me = row(os.getpid())
    if not folder.take_claim(place, job.token, me.process if me else None):
        return _say(f"job {job.id} is taken; nothing was done", 0)
    result = _attempt(job, place)
    code = 0 if _leave(place, result) else _say(f"job {job.id}: no result could be written", 1)
    _clean(place, keep=job.keep)
    return code


def _attempt(job: Job, place: Path) -> Result:
    watch = step.Watch(
        job.seconds,
        job.memory,
        _listen(),
        lambda seconds, seen: folder.write_usage(place, Usage(seconds, seen)),
    )
    signal.signal(signal.SIGTERM, lambda *_: setattr(watch, "asked", True))
    signal.signal(signal.SIGINT, lambda *_: setattr(watch, "asked", True))
    signal.signal(signal.SIGHUP, lambda *_: setattr(watch, "asked", True))
    progress = evaluation.Progress()
    kind: sandbox.Kind = "subreaper"
    ending = fault.Fault("done", "", "")
    try:
        sandbox.become_subreaper()
        _limit(job)
        kind = job.sandbox or sandbox.best()
        evaluation.carry_out(job, kind, watch, progress)
    except Exception as error:  # whatever happens, the driver gets an answer
        ending = fault.of(error)
    return Result(
        id=job.id,
        status=ending.status,
        reason=ending.reason,
        detail="; ".join(part for part in (ending.detail, progress.detail) if part),
        runs=tuple(progress.runs),
        seconds=watch.used(),
        files=progress.files,
        sandbox=kind,
        agent=progress.agent,
        peak_memory=max(watch.peak, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024),
        **progress.usage,
    )


def _listen() -> int:
    """Return a handle that becomes readable when a signal comes."""
    readable, writable = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    return readable


def _limit(job: Job) -> None:
    """Set what the kernel enforces beside the looks at the process table; children inherit it."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if job.memory is not None and not job.gpu:
        # Far above the limit, since reserved memory is not used memory.
        most = 2 * job.memory + _SPARE
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        if hard == resource.RLIM_INFINITY or most < hard:
            resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def _leave(place: Path, result: Result) -> bool:
    try:
        folder.write_result(place, result)
    except OSError:
        # On a full disk, what the job itself laid out is the room that it needs.
        _clean(place, keep=False)
        try:
            folder.write_result(place, result)
        except OSError:
            return False
    return True


def _clean(place: Path, *, keep: bool) -> None:
    for name in ("tmp", "exchange") if keep else ("tmp", "exchange", "work"):
        if (place / name).is_dir():
            try:
                snapshot.remove_tree(place / name)
            except OSError as error:
                _say(f"{place / name} could not be removed: {error}", 0)


def _say(text: str, code: int) -> int:
    print(f"outlay attempt: {text}", file=sys.stderr)  # noqa: T201 - the process's own talk
    return code
