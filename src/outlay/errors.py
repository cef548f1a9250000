"""What can go wrong, named by what the user can do about it.

    OutlayError              exit 1: something failed; the run can be continued
    ├── InputError           exit 2: a task file, option or data file is wrong; correct it
    ├── BudgetError          exit 3: the budget is too small to start, or nothing is affordable
    ├── NothingUsableError   exit 4: everything ran and nothing usable came out
    └── StoreError           exit 5: the store is locked, of another version, or out of reach

A message is one line: what was found, where, and what to do.
"""

from __future__ import annotations

import errno

FULL_DISK = (errno.ENOSPC, errno.EDQUOT)
MAKE_ROOM = "make room and run the same command again"


class OutlayError(Exception):
    """Root of all errors that Outlay raises on purpose."""

    exit_code = 1


class InputError(OutlayError, ValueError):
    """Raised for a task, option or file that is wrong, before anything is spent."""

    exit_code = 2


class BudgetError(OutlayError):
    """Raised when the budget cannot pay for a first step, or nothing is affordable."""

    exit_code = 3


class NothingUsableError(OutlayError):
    """Raised when a run ended without one usable result."""

    exit_code = 4


class StoreError(OutlayError):
    """Raised when a store is locked by another writer, of another version, or unreachable."""

    exit_code = 5


def bad_value(where: str, key: str, found: object, allowed: str) -> InputError:
    """Return the error for one wrong value: place, key, what was found, what is allowed."""
    try:
        shown = repr(found)
    except Exception as error:  # whatever a stranger's object does, it is wrong here
        shown = f"a {type(found).__name__} without a text ({error})"
    if len(shown) > 120:
        shown = shown[:117] + "..."
    return InputError(f"{where}: {key}: found {shown}, allowed: {allowed}")
