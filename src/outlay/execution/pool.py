"""Jobs as child processes of this machine."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from typing import NamedTuple, Protocol

from outlay.execution import folder, recover, sandbox
from outlay.execution.job import Job, Result
from outlay.execution.processes import TOKEN


class Engine(Protocol):
    """Starts `outlay attempt RUN_FOLDER JOB_ID` somewhere; claim, limits and result are its own.

    One thread uses an engine. An engine never starts a job twice, and its faults come back as
    results of status `infrastructure`. What was started outlives the engine's own process.
    """

    def start(self, job: Job) -> None:
        """Write the job down and start its process; raises `OSError` if it cannot be written."""

    def adopt(self, job_id: str, token: str) -> None:
        """Watch a job that an earlier driver started."""

    def wait(self, timeout: float | None) -> list[Result]:
        """Return the results that are new, each once; empty after so many seconds without."""

    def end(self, job_id: str) -> None:
        """End a job and everything it started; its result comes from `wait`."""

    def close(self) -> None:
        """End all jobs in flight."""


class _Flight(NamedTuple):
    """A job in flight; `handle` is readable when its process has ended.

    One that an earlier driver wrote down and never started is no fault of the machine.
    """

    token: str
    handle: int | None
    child: subprocess.Popen[bytes] | None
    adopted: bool = False


class LocalPool:
    """Runs each job as a child in a session of its own, so that Ctrl-C is the driver's alone."""

    def __init__(
        self, run_folder: str | os.PathLike[str], workers: int, *, grace: float = 5.0
    ) -> None:
        """Make a pool over a run folder.

        Args:
            run_folder: Holds `jobs/`.
            workers: Jobs that may be in flight at once, at least 1.
            grace: Seconds that a job has to end its tree and answer, before it is killed.
        """
        self._run_folder = os.path.realpath(run_folder)
        self._grace = grace
        self._flights: dict[str, _Flight] = {}
        self.workers = workers

    @property
    def free(self) -> int:
        """Jobs that may be started now."""
        return self.workers - len(self._flights)

    def __enter__(self) -> LocalPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, job: Job) -> None:
        """Write `job.json` and start its process."""
        # Asked once per driver, not once per job.
        folder.write_job(job._replace(sandbox=job.sandbox or sandbox.best()))
        self._flights[job.id] = _flight(job.token, self._popen(job))

    def adopt(self, job_id: str, token: str) -> None:
        """Watch a job that an earlier driver started."""
        claim = folder.read_claim(folder.job_folder(self._run_folder, job_id))
        process = folder.holder(claim) if claim else None
        handle = _open(process.pid) if process else None
        if handle is not None and process and claim and folder.holder(claim) != process:
            os.close(handle)
            handle = None
        self._flights[job_id] = _Flight(token, handle, None, adopted=True)

    def wait(self, timeout: float | None) -> list[Result]:
        """Return new results, as soon as there is one; empty if the time is over or none flies."""
        lost = [job_id for job_id, flight in self._flights.items() if flight.handle is None]
        if not lost and self._flights:
            poll = select.poll()
            ids = {flight.handle: job_id for job_id, flight in self._flights.items()}
            for handle in ids:
                poll.register(handle or 0, select.POLLIN)
            ready = poll.poll(None if timeout is None else max(timeout, 0) * 1000)
            lost = [ids[handle] for handle, _ in ready]
        return [self._collect(job_id) for job_id in lost]

    def end(self, job_id: str) -> None:
        """Ask the job's process to end its tree and answer; kill what has not after the grace."""
        self._ask(job_id)
        self._finish(job_id, time.monotonic() + self._grace)

    def close(self) -> None:
        """End all jobs in flight; their results stay in their folders."""
        for job_id in self._flights:
            self._ask(job_id)
        deadline = time.monotonic() + self._grace
        for job_id in list(self._flights):
            self._finish(job_id, deadline)
            self._collect(job_id)

    def _popen(self, job: Job) -> subprocess.Popen[bytes] | None:
        environment = os.environ | {TOKEN: job.token}
        # Compiling our modules anew would cost each job more than all the rest of its start.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-P", "-m", "outlay", "attempt", self._run_folder, job.id]
        with open(folder.job_folder(self._run_folder, job.id) / "wrapper.txt", "ab") as talk:
            try:
                return subprocess.Popen(
                    command,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=talk,
                    stderr=talk,
                    start_new_session=True,
                )
            except OSError as error:  # no room for another process; `wait` tells
                talk.write(f"the job's process did not start: {error}\n".encode())
                return None

    def _ask(self, job_id: str) -> None:
        handle = self._flights[job_id].handle
        if handle is not None:
            _send(handle, signal.SIGTERM)

    def _finish(self, job_id: str, deadline: float) -> None:
        flight = self._flights[job_id]
        if flight.handle is None:
            return
        poll = select.poll()
        poll.register(flight.handle, select.POLLIN)
        if not poll.poll(max(deadline - time.monotonic(), 0) * 1000):
            _send(flight.handle, signal.SIGKILL)
            poll.poll(1000)

    def _collect(self, job_id: str) -> Result:
        flight = self._flights.pop(job_id)
        if flight.handle is not None:
            os.close(flight.handle)
        if flight.child is not None:
            flight.child.wait()
        fate = recover.look(self._run_folder, job_id, flight.token)
        if isinstance(fate, recover.Finished):
            return fate.result
        if flight.adopted and isinstance(fate, recover.NeverStarted):
            return Result(id=job_id, status="infrastructure", reason="ended")
        recover.ensure_ended(self._run_folder, job_id, flight.token)
        used = fate.used if isinstance(fate, recover.Dead) else {}
        return Result(
            id=job_id,
            status="infrastructure",
            reason="disk" if folder.is_full(self._run_folder) else "host",
            detail=self._last_words(job_id) or "the job's process ended without a result",
            **used,
        )

    def _last_words(self, job_id: str) -> str:
        talk = folder.job_folder(self._run_folder, job_id) / "wrapper.txt"
        lines = talk.read_text("utf-8", "replace").splitlines() if talk.exists() else []
        return lines[-1][:300] if lines else ""


def _flight(token: str, child: subprocess.Popen[bytes] | None) -> _Flight:
    return _Flight(token, os.pidfd_open(child.pid) if child else None, child)


def _open(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


def _send(handle: int, number: int) -> None:
    try:
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return
