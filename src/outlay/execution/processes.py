"""Processes as the kernel's `/proc` tells of them, and ending exactly the ones that were meant.

A process is named by its id and its start time together, since ids are used again.
"""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

TOKEN = "OUTLAY_TOKEN"  # noqa: S105 - the name of a variable
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Process(NamedTuple):
    """A process: id and start time in clock ticks since boot."""

    pid: int
    start: int


class Row(NamedTuple):
    """What one line of the process table says."""

    process: Process
    parent: int
    resident: int


def row(pid: int) -> Row | None:
    """Return the table's row of a process; `None` if it is gone or only waits to be reaped."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # The name may hold spaces and brackets, so fields are counted from the last bracket.
    fields = text[text.rfind(b")") + 2 :].split()
    # Where only the first thread has ended the process is shown as a zombie, but it runs.
    if fields[0] in (b"Z", b"X") and int(fields[17]) <= 1:
        return None
    return Row(Process(pid, int(fields[19])), int(fields[1]), int(fields[21]) * _PAGE)


def table() -> list[Row]:
    """Return all processes that this one can see."""
    rows = (row(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return [one for one in rows if one is not None]


def alive(process: Process) -> bool:
    """Return whether this very process still runs."""
    found = row(process.pid)
    return found is not None and found.process == process


def below(root: Iterable[int], rows: list[Row]) -> list[Row]:
    """Return the rows of all descendants of the given process ids, without those themselves."""
    children: dict[int, list[Row]] = {}
    for one in rows:
        children.setdefault(one.parent, []).append(one)
    found: list[Row] = []
    todo = list(root)
    while todo:
        kids = children.pop(todo.pop(), [])
        found += kids
        todo += [kid.process.pid for kid in kids]
    return found


def ancestors(pid: int) -> set[int]:
    """Return the process and everything above it."""
    found: set[int] = set()
    while pid > 0 and pid not in found:
        found.add(pid)
        above = row(pid)
        pid = above.parent if above else 0
    return found


def with_token(token: str, rows: list[Row]) -> list[Process]:
    """Return the processes that were started with this token in their environment."""
    needle = f"{TOKEN}={token}".encode()
    found = []
    for one in rows:
        try:
            with open(f"/proc/{one.process.pid}/environ", "rb") as file:
                held = needle in file.read().split(b"\0")
        except OSError:
            continue
        if held:
            found.append(one.process)
    return found


def proportional(pids: Iterable[int]) -> int:
    """Return resident bytes with shared pages divided among their users.

    Falls back to plain resident bytes for a process whose figure cannot be read.
    """
    return sum(_proportional(pid) for pid in pids)


def _proportional(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    found = row(pid)
    return found.resident if found else 0


def send(process: Process, number: int) -> bool:
    """Send a signal to this very process and return whether it was still there."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        # The handle pins the process, so the check cannot be overtaken by a reused id.
        if not alive(process):
            return False
        signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(handle)


def end_all(find: Callable[[], list[Process]], *, seconds: float = 10.0) -> list[Process]:
    """Kill what `find` returns, again and again until it finds nothing, and return what is left.

    Something is left only if the kernel cannot end it in the given time (a hung file system).
    """
    deadline = time.monotonic() + seconds
    pause = 0.0005
    while left := find():
        for process in left:
            send(process, signal.SIGKILL)
        if time.monotonic() > deadline:
            return left
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
    return []
