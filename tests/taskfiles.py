"""Texts of task files, changed and loaded."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from outlay import taskfile

if TYPE_CHECKING:
    from pathlib import Path

    from outlay.task import Task

SMALLEST = """
[task]
name = "switches"
question = "Which switches raise the score?"
[evaluate]
command = "python3 score.py --seed {seed}"
metric = "score"            # prints {"score": 0.5} as its last line
direction = "maximize"
[budget]
attempts = 16
[levers.a]
options = { off = "", on = "--a 1" }
"""


def load(folder: Path, text: str | bytes) -> Task:
    data = text if isinstance(text, bytes) else text.encode()
    (folder / "outlay.toml").write_bytes(data)
    return taskfile.load(folder)


def changed(old: str, new: str) -> str:
    assert old in SMALLEST
    return SMALLEST.replace(old, new)


TASK = "[evaluate]"

SCORED = f"""\
[evaluate]
command = "{sys.executable} -I -S score.py --seed {{seed}}"
metric = "score"
direction = "maximize"
[seeds]
final = [1001, 1002, 1003]
"""
