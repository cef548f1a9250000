"""What a run came to, for people: one HTML file, or Markdown."""

from __future__ import annotations

import platform
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING

from outlay.errors import OutlayError
from outlay.execution.folder import write_whole
from outlay.execution.objects import Damaged
from outlay.report.attempt_cards import chosen_attempts
from outlay.report.history import history
from outlay.report.logs import log_tail
from outlay.report.markdown import markdown
from outlay.report.page import page
from outlay.report.programs import files_of, patch_between
from outlay.report.view import View

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from outlay.events import Entry
    from outlay.state import State

__all__ = ["View", "gather", "history", "log_tail", "markdown", "page", "write_report"]


def write_report(state: State, entries: Iterable[Entry], folder: Path, run: str) -> Path:
    """Write `report.html` into the run's folder, whole or not at all, and return its path.

    Args:
        state: The run's state.
        entries: Its whole log.
        folder: Its folder, where the jobs' logs lie.
        run: Its name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "report.html"
    write_whole(path, page(gather(state, entries, folder, run)))
    return path


def gather(state: State, entries: Iterable[Entry], folder: Path, run: str) -> View:
    """Return all that a report is written from; see `write_report`."""
    view = View(run=run, state=state, history=history(entries), versions=_versions())
    jobs = [f"{t.work}.{t.event.trial}" for t in chosen_attempts(view)]
    logs = {job: text for job in jobs if (text := log_tail(folder, job))}
    return replace(view, logs=logs, patch=_patch(state, folder))


def _patch(state: State, folder: Path) -> str:
    """Return what the champion changes of the files; empty where they are gone."""
    if state.started is None:
        return ""
    with suppress(OutlayError, Damaged, OSError):
        before, after = (files_of(state, n) for n in (state.baseline, state.contest.champion))
        return patch_between(before, after, folder / "objects")
    return ""


def _versions() -> tuple[tuple[str, str], ...]:
    names = ("outlay", "numpy", "scipy")
    found = [(f"{name}, which wrote this", version(name)) for name in names[:1]]
    found += [(name, version(name)) for name in names[1:]]
    return (*found, ("Python", platform.python_version()), ("system", platform.platform()))
