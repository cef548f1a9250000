"""A job's own folder: the claim, the heartbeat and the result, each written as a whole or not.

job.json      what to do, written by the driver before the process starts
claim         who does it; made once, by exclusive creation
usage.json    seconds used so far and the processes seen, about every second
metered.json  tokens and money of its agent so far, after every response of a model
result.json   the answer, durable before it appears
out.txt, err.txt, wrapper.txt   output kept; the last is the wrapper's own
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from outlay.execution import processes
from outlay.execution.job import Job, Result, job_from_json, result_from_json, to_json
from outlay.execution.processes import Process


class Claim(NamedTuple):
    """Who took a job; `process` is `None` where a driver fenced it off before it began."""

    process: Process | None
    token: str
    boot: str


class Usage(NamedTuple):
    """What a running job had used when it last told."""

    seconds: float
    seen: list[Process]


USAGE = "usage.json"
"""File in the job's `exchange` where an agent may tell what it used."""

_METERED = "metered.json"

MOST_RESULT = 10_000_000
"""Bytes that are read of a file from a command."""

LEAST_FREE = 1 << 20
"""Bytes below which a disk counts as full."""


def is_full(folder: str | os.PathLike[str]) -> bool:
    """Return whether the folder's disk has no room left."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize < LEAST_FREE


def job_folder(run_folder: str | os.PathLike[str], job_id: str) -> Path:
    """Return the folder of a job."""
    return Path(run_folder) / "jobs" / job_id


def write_whole(path: Path, text: str, *, durable: bool = False) -> None:
    """Write the file beside its place and rename it there; durable means synced to disk."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(beside, "w", encoding="utf-8") as file:
            file.write(text)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        beside.rename(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    if durable:
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_job(job: Job) -> None:
    """Make the job's folder and leave `job.json` in it."""
    folder = Path(job.folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "job.json", to_json(job))


def read_job(folder: Path) -> Job:
    """Return the job in a folder; raises `OSError` or `ValueError` if there is none."""
    try:
        return job_from_json((folder / "job.json").read_text(encoding="utf-8"))
    except (TypeError, KeyError) as error:
        raise ValueError(f"{folder / 'job.json'}: {error}") from error


def write_result(folder: Path, result: Result) -> None:
    """Leave `result.json`, on disk for good before it appears under that name."""
    write_whole(folder / "result.json", to_json(result), durable=True)


def read_result(folder: Path) -> Result | None:
    """Return the result; `None` if there is none or it is not whole."""
    try:
        return result_from_json((folder / "result.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def boot() -> str:
    """Return the name of this boot of the machine: start times only compare within one."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def take_claim(folder: Path, token: str, process: Process | None) -> bool:
    """Take the job and return whether it was free; of many callers exactly one gets `True`.

    The claim appears with its content (a hard link of a finished file), so nobody reads half.
    """
    pid, start = process or (0, 0)
    text = json.dumps({"pid": pid, "start": start, "token": token, "boot": boot()})
    beside = folder / f".claim.{os.getpid()}"
    beside.write_text(text, encoding="utf-8")
    try:
        os.link(beside, folder / "claim")
    except FileExistsError:
        return False
    finally:
        beside.unlink(missing_ok=True)
    return True


def read_claim(folder: Path) -> Claim | None:
    """Return the claim; `None` if the job is free."""
    try:
        fields: Any = json.loads((folder / "claim").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    process = Process(fields["pid"], fields["start"]) if fields["pid"] else None
    return Claim(process, fields["token"], fields["boot"])


def holder(claim: Claim) -> Process | None:
    """Return the process that holds the claim, if it still runs on this boot."""
    if claim.process is None or claim.boot != boot() or not processes.alive(claim.process):
        return None
    return claim.process


def write_usage(folder: Path, usage: Usage) -> None:
    """Tell how much was used so far."""
    write_whole(folder / "usage.json", json.dumps(usage._asdict()))


def read_usage(folder: Path) -> Usage:
    """Return what was last told; nothing used if nothing was."""
    try:
        fields: Any = json.loads((folder / "usage.json").read_text(encoding="utf-8"))
        return Usage(float(fields["seconds"]), [Process(*pair) for pair in fields["seen"]])
    except (OSError, ValueError, TypeError, KeyError):
        return Usage(0.0, [])


def file_text(path: Path) -> str | None:
    """Return a regular file's text, at most 10 MB of it; `None` if there is none."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(handle, "rb") as file:
            return file.read(MOST_RESULT).decode("utf-8", "replace")
    except OSError:
        return None


def head_and_tail(path: Path, most: int) -> str:
    """Return the first and the last half of at most so many bytes of a file; "" if there is none.

    Unlike `file_text` it is meant for our own files.
    """
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(most // 2 if size > most else most)
            if size <= most:
                return head.decode("utf-8", "replace")
            file.seek(-(most // 2), os.SEEK_END)
            return (head + b"\n...\n" + file.read()).decode("utf-8", "replace")
    except OSError:
        return ""


def write_metered(folder: Path, used: dict[str, Any]) -> None:
    """Keep what our own meter has counted so far, out of the agent's reach."""
    write_whole(folder / _METERED, json.dumps(used))


def agent_usage(folder: Path) -> dict[str, Any]:
    """Return what the job's agent used, as fields of `Result`; only numbers count.

    Our own meter's word comes before the agent's.
    """
    text = file_text(folder / _METERED) or file_text(folder / "exchange" / USAGE)
    try:
        told: Any = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    names = {"tokens_in": int, "tokens_cached": int, "tokens_out": int, "usd": float}
    numbers = told if isinstance(told, dict) else {}
    return {
        name: kind(numbers[name])
        for name, kind in names.items()
        if type(numbers.get(name)) in (int, kind) and 0 <= numbers[name] < 1e15
    }
