"""One command, run to its end or to a limit, and then all of its processes ended."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from typing import IO, TYPE_CHECKING, Literal, NamedTuple

from outlay.execution import processes
from outlay.execution.sandbox import die_with

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from outlay.execution.capture import Capture
    from outlay.execution.processes import Process, Row

Stop = Literal["", "timeout", "memory", "ended"]
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
        waited: Seconds spent waiting for a lock, which count for nothing.
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
        self.peak = 0
        self._begun = time.monotonic()
        self._told = -_BEAT

    def used(self) -> float:
        """Return the seconds of work so far."""
        return time.monotonic() - self._begun - self.waited

    def stop(self) -> Stop:
        """Return why the work must stop now, empty if it may go on."""
        if self.asked:
            return "ended"
        if self.seconds is not None and self.used() >= self.seconds:
            return "timeout"
        return ""

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
) -> Ended:
    """Run a command and return how it ended, when none of its processes is left.

    Raises `OSError` if it cannot be started.
    """
    begun = time.monotonic()
    parent = os.getpid()
    child = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: die_with(parent),
    )
    assert child.stdout is not None  # noqa: S101 - both are pipes
    assert child.stderr is not None  # noqa: S101
    streams = {child.stdout: out, child.stderr: err}
    try:
        stop = _follow(child, streams, watch)
    finally:
        left = end_tree()
        code = child.poll() if left else child.wait()
        _reap()
        for stream, capture in streams.items():
            _drain(stream, capture)
            stream.close()
            capture.close()
    return Ended(
        code=-signal.SIGKILL if code is None else code,
        stop=stop,
        seconds=time.monotonic() - begun,
        out=out,
        err=err,
        left=len(left),
    )


def end_tree() -> list[Process]:
    """End every process below this one, and return those that cannot be ended."""

    def find() -> list[Process]:
        return [row.process for row in processes.below([os.getpid()], processes.table())]

    return processes.end_all(find)


def _reap() -> None:
    """Collect the orphans that came to us; the command itself must have been waited for."""
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return


def _follow(
    child: subprocess.Popen[bytes], streams: dict[IO[bytes], Capture], watch: Watch
) -> Stop:
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ, stream)
        selector.register(watch.wake, selectors.EVENT_READ)
        handle = os.pidfd_open(child.pid)
        try:
            selector.register(handle, selectors.EVENT_READ)
            return _loop(child, selector, streams, watch)
        finally:
            os.close(handle)


def _loop(
    child: subprocess.Popen[bytes],
    selector: selectors.BaseSelector,
    streams: dict[IO[bytes], Capture],
    watch: Watch,
) -> Stop:
    """Read the streams and look at the limits until the command ends or must end."""
    next_look = time.monotonic()
    while not (stop := watch.stop()):
        if time.monotonic() >= next_look:
            begun = time.monotonic()
            if stop := watch.look():
                return stop
            # A long process table must not cost more than a twentieth of a core.
            next_look = begun + max(watch.pause(), 20 * (time.monotonic() - begun))
        for key, _ in selector.select(max(min(watch.pause(), next_look - time.monotonic()), 0)):
            if key.fd == watch.wake:
                os.read(watch.wake, 512)
            elif key.data is None:
                return ""
            elif _read(key.data, streams[key.data]) == b"":
                selector.unregister(key.fileobj)
    return stop


def _read(stream: IO[bytes], capture: Capture) -> bytes | None:
    """Move what is there to the capture; empty at the end, `None` if there is nothing now."""
    try:
        data = os.read(stream.fileno(), 1 << 16)
    except BlockingIOError:
        return None
    capture.feed(data)
    return data


def _drain(stream: IO[bytes], capture: Capture) -> None:
    while _read(stream, capture):
        pass
