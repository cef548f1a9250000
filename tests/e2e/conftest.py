"""Small real tasks, and the installed command."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from outlay.digest import digest
from outlay.sqlite_store import SqliteStore
from tests.taskfiles import SCORED

if TYPE_CHECKING:
    from outlay.events import Entry

OUTLAY = Path(sys.executable).with_name("outlay")

SCORE = """\
import json, random, sys, time
arguments = sys.argv[1:]
seed = int(arguments[arguments.index("--seed") + 1])
random.seed(seed * 7919 + len(arguments))
if "--slow" in arguments:
    time.sleep(float(arguments[arguments.index("--slow") + 1]))
if "--broken" in arguments:
    raise SystemExit("this option does not work")
gain = 0.2 * ("--a" in arguments)
print(json.dumps({"score": 0.5 + gain + random.gauss(0, 0.01)}))
"""

TASK = f"""\
[task]
name = "switches"
question = "Which switches raise the score?"
{SCORED}[budget]
attempts = 16
[levers.a]
options = {{ off = "", on = "--a" }}
"""

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """A folder with the one-lever task, a second or so for a whole search."""
    folder = tmp_path / "task"
    folder.mkdir()
    (folder / "score.py").write_text(SCORE)
    (folder / "outlay.toml").write_text(TASK)
    return folder


@pytest.fixture
def outlay(tmp_path: Path) -> Command:
    """The installed command, run in an empty folder."""

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [OUTLAY, *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=120,
            check=False,
        )

    return run


def edit(task: Path, old: str, new: str) -> None:
    """Replace a text in the task file, which must hold it."""
    text = (task / "outlay.toml").read_text()
    assert old in text
    (task / "outlay.toml").write_text(text.replace(old, new))


def log_of(task: Path, run: str = "switches") -> list[Entry]:
    """Return the log of a run of the task's own store."""
    with SqliteStore(task / ".outlay" / "store.db") as store:
        return list(store.read(run))


def digest_of(task: Path, run: str = "switches") -> str:
    """Return the digest of a run of the task's own store."""
    return digest(log_of(task, run))


def until(true: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)
