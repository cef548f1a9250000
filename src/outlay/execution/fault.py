"""Why a job has no score: a fault of the work, which is final, or of the machine, which is not."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outlay.execution.job import Status

_FULL = (errno.ENOSPC, errno.EDQUOT)


class Fault(Exception):  # noqa: N818 - the word of the domain
    """Ends a job with a status, a one-word reason and one line for people."""

    def __init__(self, status: Status, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.status: Status = status
        self.reason = reason
        self.detail = detail


def failed(reason: str, detail: str) -> Fault:
    """Return a fault of the work."""
    return Fault("failed", reason, detail)


def machine(reason: str, detail: str) -> Fault:
    """Return a fault of the machine: the same work may be tried again."""
    return Fault("infrastructure", reason, detail)


def of(error: Exception) -> Fault:
    """Return the fault that an exception outside the commands stands for: always the machine's."""
    if isinstance(error, Fault):
        return error
    if isinstance(error, OSError) and error.errno in _FULL:
        return machine("disk", f"disk full: {error}")
    return machine("host", f"{type(error).__name__}: {error}")
