"""A run in memory with its folder, and records that were tampered with."""

from __future__ import annotations

import json
import lzma
from typing import TYPE_CHECKING

import msgspec

from outlay.digest import digest
from outlay.events import Entry
from outlay.recording.keep import keep
from outlay.runs import Settings
from outlay.session import sitting
from outlay.taskfile import load
from tests.e2e.conftest import SCORE, TASK

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def searched(folder: Path) -> tuple[list[Entry], Path]:
    """Search the one-lever task to its end; return its log and its folder."""
    task, store = folder / "task", folder / ".outlay" / "store.db"
    task.mkdir(parents=True)
    (task / "score.py").write_text(SCORE)
    (task / "outlay.toml").write_text(TASK)
    with sitting(load(task), "switches", Settings(), store=store) as driver:
        driver.drive()
        return list(driver.store.read("switches")), store.parent / "runs" / "switches"


def recorded(folder: Path) -> Path:
    """Search the one-lever task and return the file of its record."""
    entries, run = searched(folder)
    keep("switches", entries, run, folder / "run.record")
    return folder / "run.record"


def rewritten(record: Path, change: Callable[[list[bytes]], list[bytes]]) -> Path:
    """Return a copy of the record with its lines changed."""
    lines = lzma.decompress(record.read_bytes()).splitlines(keepends=True)
    place = record.with_name("rewritten.record")
    place.write_bytes(lzma.compress(b"".join(change(lines))))
    return place


def sealed(lines: list[bytes]) -> list[bytes]:
    """Return the lines with the digest that their events have, as anybody can work it out."""
    found = [json.loads(line) for line in lines[:-1]]
    entries = [msgspec.convert(e["entry"], Entry) for e in found if e["line"] == "event"]
    end = {"line": "end", "digest": digest(entries)}
    return [*lines[:-1], json.dumps(end).encode() + b"\n"]
