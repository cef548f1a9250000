"""Files that one process writes at a time, by a lock beside them."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
from typing import TYPE_CHECKING

from outlay.errors import FULL_DISK, MAKE_ROOM, OutlayError, StoreError

if TYPE_CHECKING:
    from pathlib import Path


def take_lock(path: Path, option: str = "--store") -> int:
    """Return the descriptor that holds the writer lock; the process's end lets go of it.

    Raises `StoreError` naming the process that has it; `option` names another file.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise unwritable(path.parent, error, option) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(handle, 4096, 0).decode(errors="replace")
        os.close(handle)
        raise StoreError(f"{path.with_suffix('')}: in use by {_named(holder)}") from None
    mine = {"pid": os.getpid(), "host": socket.gethostname(), "command": sys.argv[:3]}
    os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps(mine).encode(), 0)
    return handle


def unwritable(folder: Path, error: OSError, option: str = "--store") -> OutlayError:
    """Return the error for a folder in which nothing can be written; `option` names another."""
    if error.errno in FULL_DISK:
        return OutlayError(f"{folder}: {error.strerror}; {MAKE_ROOM}")
    return StoreError(f"{folder}: cannot be written: {error.strerror}; name another with {option}")


def _named(holder: str) -> str:
    try:
        fields = json.loads(holder)
        command = " ".join(str(part) for part in fields["command"])
        return f"process {fields['pid']} on {fields['host']} ({command}); wait for it or stop it"
    except (ValueError, KeyError, TypeError):
        return "another process; wait for it or stop it"
