"""What became of a job, as its folder and the process table tell; and ending what it left."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from outlay.execution import folder, processes

if TYPE_CHECKING:
    from pathlib import Path

    from outlay.execution.job import Result
    from outlay.execution.processes import Process


class NeverStarted(NamedTuple):
    """Nobody had claimed the job; now nobody can."""


class Alive(NamedTuple):
    """The job's process runs."""

    process: Process


class Finished(NamedTuple):
    """The job left its result."""

    result: Result


class Dead(NamedTuple):
    """The job's process ended without a result, having used at least this; fields of `Result`."""

    used: dict[str, Any]


Fate = NeverStarted | Alive | Finished | Dead


def look(run_folder: str | os.PathLike[str], job_id: str, token: str) -> Fate:
    """Return what became of a job.

    A job that nobody had claimed is claimed here, so that a process that starts late finds it
    taken and ends before it spends anything.
    """
    place = folder.job_folder(run_folder, job_id)
    if (result := folder.read_result(place)) is not None:
        return Finished(result)
    place.mkdir(parents=True, exist_ok=True)
    if folder.take_claim(place, token, None):
        return NeverStarted()
    claim = folder.read_claim(place)
    if claim is None or claim.process is None:
        return NeverStarted()
    process = folder.holder(claim)
    # The result may have come between the two looks, so it is asked for again.
    if (result := folder.read_result(place)) is not None:
        return Finished(result)
    return Dead(_used(place)) if process is None else Alive(process)


def ensure_ended(
    run_folder: str | os.PathLike[str], job_id: str, token: str, *, seconds: float = 10.0
) -> list[Process]:
    """End the job's process and everything it started, and return what could not be ended.

    Found by the claim, by the token in their environment, by the last list that the job's process
    left, and by descent from any of these; always with the start time, never by name.
    """
    place = folder.job_folder(run_folder, job_id)
    spared = processes.ancestors(os.getpid())

    def find() -> list[Process]:
        rows = processes.table()
        roots = {*processes.with_token(token, rows), *_told(place)} & {r.process for r in rows}
        found = roots | {r.process for r in processes.below([p.pid for p in roots], rows)}
        return [process for process in found if process.pid not in spared]

    return processes.end_all(find, seconds=seconds)


def _used(place: Path) -> dict[str, Any]:
    return {"seconds": folder.read_usage(place).seconds, **folder.agent_usage(place)}


def _told(place: Path) -> list[Process]:
    claim = folder.read_claim(place)
    if claim is None or claim.boot != folder.boot():
        return []
    holder = [claim.process] if claim.process else []
    return holder + folder.read_usage(place).seen
