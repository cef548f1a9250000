"""One command, run to its end or to a limit, and then all of its processes ended."""

from __future__ import annotations

import os
import select
import signal
import time
from typing import TYPE_CHECKING, Literal, NamedTuple

from outlay.execution import processes
from outlay.execution.sandbox import die_with

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from outlay.execution.capture import Capture
    from outlay.execution.processes import Process, Row

Stop = Literal["", "timeout", "memory", "ended", "given up"]
_BEAT = 1.0
_LOOK = 0.05


class Watch:
    """The limits of a job and what it has used, shared by its commands.

    Attributes:
        seconds: Limit of the whole job, or `None`.
        memory: Limit of resident bytes of all its processes, or `None`.
        wake: Readable when a signal came.
        tell: Called about every second with the seconds used and the processes seen.
        asked: Whether a signal asked the job to end.
        give_up: Asked at every look whether the command at work is worth waiting for no longer.
        idle: Seconds that the command at work spent waiting for others, so far.
        waited: Seconds spent waiting for a lock or for others, which count for nothing.
        peak: Largest resident bytes seen.
    """

    def __init__(
        self,
        seconds: float | None,
        memory: int | None,
        wake: int,
        tell: Callable[[float, list[Process]], None],
    ) -> None:
        self.seconds = seconds
        self.memory = memory
        self.wake = wake
        self.tell = tell
        self.asked = False
        self.waited = 0.0
        self.give_up: Callable[[], bool]
        self.idle: Callable[[], float]
        self._expect_nothing()
        self.peak = 0
        self._begun = time.monotonic()
        self._told = -_BEAT

    def used(self) -> float:
        """Return the seconds of work so far."""
        return time.monotonic() - self._begun - self.waited - self.idle()

    def rest(self) -> None:
        """Note that the command at work has ended."""
        self.waited += self.idle()
        self._expect_nothing()

    def _expect_nothing(self) -> None:
        self.give_up = lambda: False
        self.idle = lambda: 0.0

    def stop(self) -> Stop:
        """Return why the work must stop now, empty if it may go on."""
        if self.asked:
            return "ended"
        if self.seconds is not None and self.used() >= self.seconds:
            return "timeout"
        return "given up" if self.give_up() else ""

    def look(self) -> Stop:
        """Look at the memory of all processes below this one; tell if it is time to."""
        rows = processes.below([os.getpid()], processes.table())
        resident = sum(row.resident for row in rows)
        if self.memory is not None and resident > self.memory:
            # Pages shared after a fork were counted for each process; count them once.
            resident = processes.proportional(row.process.pid for row in rows)
        self.peak = max(self.peak, resident)
        self._beat(rows)
        return "memory" if self.memory is not None and resident > self.memory else ""

    def _beat(self, rows: list[Row]) -> None:
        if (now := self.used()) - self._told >= _BEAT:
            self._told = now
            self.tell(now, [row.process for row in rows])

    def pause(self) -> float:
        """Return the seconds until the next look that the limits need."""
        left = _LOOK if self.memory is not None else 4 * _LOOK
        if self.seconds is not None:
            left = min(left, max(self.seconds - self.used(), 0.0))
        return left


class Ended(NamedTuple):
    """How a command ended.

    Attributes:
        code: Exit code; negative for a signal.
        stop: Why we ended it, empty if it ended by itself.
        seconds: Wall clock.
        out, err: What it printed.
        left: Processes that could not be ended.
    """

    code: int
    stop: Stop
    seconds: float
    out: Capture
    err: Capture
    left: int = 0


def run(
    command: list[str],
    *,
    folder: Path,
    environment: dict[str, str],
    watch: Watch,
    out: Capture,
    err: Capture,
    stdin: str | os.PathLike[str] = os.devnull,
) -> Ended:
    """Run a command and return how it ended, when none of its processes is left.

    Raises `OSError` if it cannot be started, with the program as its file name if that is why.
    """
    begun = time.monotonic()
    child, streams = _start(command, folder, environment, (out, err), stdin)
    handle = os.pidfd_open(child)
    try:
        stop = _follow(handle, streams, watch)
    finally:
        left = end_tree()
        os.close(handle)
        code = _collect(child, wait=not left)
        for stream, capture in streams.items():
            _drain(stream, capture)
            os.close(stream)
            capture.close()
    return Ended(
        code=code,
        stop=stop,
        seconds=time.monotonic() - begun,
        out=out,
        err=err,
        left=len(left),
    )


def _start(
    command: list[str],
    folder: Path,
    environment: dict[str, str],
    captures: tuple[Capture, Capture],
    stdin: str | os.PathLike[str],
) -> tuple[int, dict[int, Capture]]:
    """Start the command in a session of its own, and return its id and its open streams."""
    pipes = [os.pipe2(os.O_CLOEXEC) for _ in range(3)]
    fault_read, fault_write = pipes[2]
    parent, child = os.getpid(), os.fork()
    if child == 0:
        try:
            os.setsid()
            die_with(parent)
            os.dup2(os.open(stdin, os.O_RDONLY), 0)
            os.dup2(pipes[0][1], 1)
            os.dup2(pipes[1][1], 2)
            for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them for itself
                signal.signal(number, signal.SIG_DFL)
            os.chdir(folder)
            os.execvpe(command[0], command, environment)  # noqa: S606 - no shell is the point
        except OSError as error:
            os.write(fault_write, str(error.errno).encode())
        finally:
            os._exit(127)
    for _, write in pipes:
        os.close(write)
    with open(fault_read, "rb") as told:  # ends without a word when the command runs
        fault = told.read()
    streams = {pipes[0][0]: captures[0], pipes[1][0]: captures[1]}
    if fault:
        os.waitpid(child, 0)
        for stream in streams:
            os.close(stream)
        raise OSError(int(fault), os.strerror(int(fault)), command[0])
    return child, streams


def _collect(child: int, *, wait: bool) -> int:
    """Return the command's exit code, negative for a signal; collect orphans that came to us."""
    found, status = os.waitpid(child, 0 if wait else os.WNOHANG)
    code = os.waitstatus_to_exitcode(status) if found else -signal.SIGKILL
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return code
    return code


def end_tree() -> list[Process]:
    """End every process below this one, and return those that cannot be ended."""

    def find() -> list[Process]:
        return [row.process for row in processes.below([os.getpid()], processes.table())]

    return processes.end_all(find)


def _follow(child: int, streams: dict[int, Capture], watch: Watch) -> Stop:
    """Read the streams and look at the limits until the command ends or must end."""
    poll = select.poll()
    for handle in (*streams, watch.wake, child):
        poll.register(handle, select.POLLIN)
    for stream in streams:
        os.set_blocking(stream, False)
    next_look = time.monotonic() + _LOOK  # a quick command is over before it needs a look
    while not (stop := watch.stop()):
        if time.monotonic() >= next_look:
            begun = time.monotonic()
            if stop := watch.look():
                return stop
            # A long process table must not cost more than a twentieth of a core.
            next_look = begun + max(watch.pause(), 20 * (time.monotonic() - begun))
        pause = min(watch.pause(), next_look - time.monotonic())
        for handle, _ in poll.poll(max(1000 * pause, 0)):
            if handle == child:
                return ""
            if handle == watch.wake:
                os.read(handle, 512)
            elif _read(handle, streams[handle]) == b"":
                poll.unregister(handle)
    return stop


def _read(stream: int, capture: Capture) -> bytes | None:
    """Move what is there to the capture; empty at the end, `None` if there is nothing now."""
    try:
        data = os.read(stream, 1 << 16)
    except BlockingIOError:
        return None
    capture.feed(data)
    return data


def _drain(stream: int, capture: Capture) -> None:
    while _read(stream, capture):
        pass
