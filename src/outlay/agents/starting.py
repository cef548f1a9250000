"""Whether an agent's command line can start where an attempt is, as far as it can be known."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from outlay.execution import sandbox
from outlay.execution.absent import outline
from outlay.execution.environment import VENV
from outlay.execution.harbor import ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from outlay.agents.access import Access
    from outlay.task import Task


def start_of(task: Task) -> Path:
    """Return the folder of the workspace that an agent starts in the copy of."""
    return Path(task.workspace.path, ENVIRONMENT if task.evaluator.container else "")


def lack(program: str, folder: Path) -> str:
    """Return what keeps a program from being started in a folder, empty if nothing does."""
    inside = "/" in program and not os.path.isabs(program)
    place = folder / program if "/" in program else shutil.which(program)
    if place is None or not os.path.isfile(place):
        where = "in the workspace" if inside else "there" if "/" in program else "on PATH"
        return f"is not {where}"
    return "" if os.access(place, os.X_OK) else "is not executable (chmod +x)"


def hidden(task: Task, found: Access) -> str:
    """Return the first path in the command line that is there, but not for an attempt.

    Empty if there is none. The program of a client is shown to it in any case.
    """
    if sandbox.best() != "bwrap":
        return ""
    root = task.workspace.path
    data = (os.path.join(root, path) for path in (*task.workspace.data, VENV))
    seen = outline((root,), data, task.sandbox.read, os.environ, network=task.sandbox.network)
    words = found.command[found.client != "command" :]
    return next((path for path in _paths(words) if seen.hides(path)), "")


def _paths(words: tuple[str, ...]) -> Iterator[str]:
    """Yield the absolute paths of files that words name, as in `/a/b` and `--file=/a/b`."""
    for word in words:
        for text in (word, word.partition("=")[2]):
            if os.path.isabs(text) and os.path.lexists(text):
                yield text
