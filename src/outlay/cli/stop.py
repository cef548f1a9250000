"""`outlay stop`: asks the driver of a run to finish."""

from __future__ import annotations

import fcntl
import json
from typing import TYPE_CHECKING, Any

import click

from outlay import events
from outlay.cli._reading import answer, common_options, read_run

if TYPE_CHECKING:
    from pathlib import Path

    from outlay.cli._reading import Found

STOP = "stop"
"""Name of the file in the run's folder that a driver takes as the request to finish."""


@click.command()
@click.argument("run", required=False)
@common_options
def command(run: str | None, store: Path | None, as_json: bool) -> None:
    """Ask a running search to start nothing new and to finish.

    What is in flight is completed, and the champion gets its final measurement.
    """
    found = read_run(store, run)
    driver = driver_of(found)
    if driver is not None:
        found.folder.mkdir(parents=True, exist_ok=True)
        (found.folder / STOP).touch()
        text = f"asked process {driver} to finish run {found.name}"
    else:
        text = f"nobody runs {found.name}; there is nothing to stop"
    data = {"run": found.name, "asked": driver is not None, "pid": driver}
    answer(data, text, as_json=as_json)


def driver_of(found: Found) -> int | None:
    """Return the process id of the driver that has the run now, `None` without one."""
    pid = _writer(found.store)
    sittings = [
        entry.event for entry in found.entries if isinstance(entry.event, events.SittingStarted)
    ]
    is_driver = bool(sittings) and sittings[-1].pid == pid and found.state.ended is None
    return pid if is_driver else None


def _writer(store: Path) -> int | None:
    """Return the process that holds the store's writer lock."""
    try:
        with open(store.with_name(store.name + ".lock"), "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                holder: Any = json.loads(file.read() or b"{}")
                return int(holder["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return None
