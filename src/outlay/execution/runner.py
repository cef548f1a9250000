"""A job's commands, run in its workspaces inside the sandbox and under the job's limits."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from outlay.execution import fault, harbor, sandbox, step
from outlay.execution.capture import Capture
from outlay.execution.folder import is_full
from outlay.execution.processes import TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from outlay.execution.job import Job
    from outlay.execution.workspace import Workspace

_OUTLAY = str(Path(__file__).resolve().parents[1])

_CAUSES = {
    "timeout": "the time limit of the job was reached",
    "memory": "the memory limit of the job was reached",
    "ended": "the job was asked to end",
}


class Runner:
    """Runs commands one after another; a limit, or a fault of the machine, raises `Fault`."""

    def __init__(
        self,
        job: Job,
        kind: sandbox.Kind,
        watch: step.Watch,
        out: IO[bytes],
        err: IO[bytes],
    ) -> None:
        self._job = job
        self.kind = kind
        self.watch = watch
        self._files = (out, err)
        self.folder = Path(job.folder)
        self.exchange = self.folder / "exchange"
        self.network = job.network
        steps = len(job.runs) + (job.agent is not None) + bool(job.check) * len(job.subjects)
        self._share = job.output // 2 // max(steps, 1)

    def run(
        self,
        label: str,
        command: tuple[str, ...],
        space: Workspace,
        env: dict[str, str],
        *,
        network: bool = False,
        stdin: str | os.PathLike[str] = os.devnull,
        tap: Callable[[bytes], None] | None = None,
    ) -> step.Ended:
        """Run one command; raises `Fault` where a limit or the machine ended it.

        Args:
            label: What the kept output calls it.
            command: Program and arguments.
            space: Where it runs.
            env: Variables of its own.
            network: Whether it may use the network even where the job may not.
            stdin: File that it reads as its standard input.
            tap: Called with each piece of standard output as it comes.
        """
        self._stop_if_asked()
        if self._job.container:
            if self.kind != "bwrap":
                raise fault.failed("crash", harbor.NEEDS_BUBBLEWRAP)
            harbor.make_folders(space.root, self.exchange)
        out, err = self._captures(label, tap)
        ooms = _oom_kills()
        try:
            ended = step.run(
                sandbox.wrap(self.kind, command, self._view(space, network=network)),
                folder=space.root,
                environment=self._environment(space, env),
                watch=self.watch,
                out=out,
                err=err,
                stdin=stdin,
            )
        except OSError as error:
            if error.filename != command[0] or error.errno in (errno.EAGAIN, errno.ENOMEM):
                raise
            detail = f"command {command[0]!r} cannot be started: {error.strerror}"
            raise fault.failed("crash", detail) from error
        self._raise_fault(ended, ooms)
        return ended

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the job's lock file; the time spent waiting for it counts for nothing."""
        if self._job.exclusive is None:
            yield
            return
        with open(self._job.exclusive, "ab") as file:
            while not _locked(file):
                self._stop_if_asked()
                begun = time.monotonic()
                select.select([self.watch.wake], [], [], 0.02)
                self.watch.waited += time.monotonic() - begun
            yield

    def _stop_if_asked(self) -> None:
        if stop := self.watch.stop():
            raise _stopped(stop)

    def _raise_fault(self, ended: step.Ended, ooms: int) -> None:
        if ended.left:
            raise fault.machine("host", f"{ended.left} processes could not be ended")
        if ended.stop and ended.stop != "given up":
            raise _stopped(ended.stop)
        if lost := ended.out.fault or ended.err.fault:
            raise fault.machine("disk", f"output could not be kept: {lost}")
        if ended.code == 0 or ended.stop:
            return
        if _oom_kills() > ooms:
            raise fault.machine("memory", "the host ran out of memory and killed a process")
        if ended.code in (-signal.SIGKILL, 128 + signal.SIGKILL):
            raise fault.machine("host", "the command was killed from outside")
        if is_full(self._job.folder):
            raise fault.machine("disk", "disk full; " + how_it_ended("the command", ended))
        last = ended.err.last_line()
        if self.kind == "bwrap" and last.startswith("bwrap: ") and "execvp" not in last:
            raise fault.machine("host", f"the sandbox did not start: {last}")

    def _captures(
        self, label: str, tap: Callable[[bytes], None] | None
    ) -> tuple[Capture, Capture]:
        out, err = (Capture(file, self._share) for file in self._files)
        out.tap = tap
        for file in self._files:
            file.write(f"== {label} ==\n".encode())
        return out, err

    def _environment(self, space: Workspace, env: dict[str, str]) -> dict[str, str]:
        tmp = "/tmp" if self.kind == "bwrap" else f"{self._job.folder}/tmp"  # noqa: S108
        own = {TOKEN: self._job.token, "TMPDIR": tmp}
        return self._job.environment | own | space.subject.env | env

    def _view(self, space: Workspace, *, network: bool) -> sandbox.View:
        job, folder = self._job, self.folder
        home = self._job.environment.get("HOME", "")
        secrets = [f"{home}/{name}" for name in sandbox.SECRETS] if home else []
        read = {os.path.realpath(path) for path in job.read}
        masks = [str(folder.parent.parent), job.objects, *job.mask, *secrets]
        pythons = (sys.prefix, sys.base_prefix, job.environment.get("VIRTUAL_ENV", sys.prefix))
        # Outlay itself, for evaluators that import it, unless it is what is under research.
        own = () if any(_OUTLAY.startswith(f"{path}/") for path in job.mask) else (_OUTLAY,)
        visible = {os.path.realpath(path) for path in (*pythons, *own, *job.data)} | read
        return sandbox.View(
            work=str(space.root),
            exchange=str(self.exchange),
            tmp=str(folder / "tmp"),
            masks=tuple(sorted({os.path.realpath(path) for path in masks} - read)),
            visible=tuple(sorted(visible)),
            protected=tuple(str(path) for path in space.guarded() if not path.is_symlink()),
            network=job.network or network,
            gpu=job.gpu,
            container=job.container,
        )


def _locked(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _stopped(stop: str) -> fault.Fault:
    kind = fault.machine if stop == "ended" else fault.failed
    return kind(stop, _CAUSES[stop])


def how_it_ended(who: str, ended: step.Ended) -> str:
    """Return one line: the exit code and the last line that was printed."""
    code = ended.code if ended.code >= 0 else f"by signal {-ended.code}"
    last = ended.err.last_line() or ended.out.last_line()
    return f"{who} ended with {code}" + (f": {last}" if last else "")


def _oom_kills() -> int:
    """Return how often this machine's kernel has killed for memory."""
    try:
        with open("/proc/vmstat", "rb") as file:
            return next((int(x.split()[1]) for x in file if x.startswith(b"oom_kill ")), 0)
    except OSError:
        return 0
