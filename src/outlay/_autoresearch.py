"""The layout of an autoresearch workspace, as the tables of a task file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from outlay import _tasktext

if TYPE_CHECKING:
    from pathlib import Path

_FILES = ("program.md", "train.py", "prepare.py")


def is_autoresearch(folder: Path) -> bool:
    """Return whether the folder has the layout."""
    return all((folder / name).is_file() for name in _FILES)


def defaults(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the tables that the layout stands for; the question is the text of `program.md`."""
    return {
        "task": {
            "name": "autoresearch",
            "question": _tasktext.text(folder / "program.md"),
            "editable": ["train.py"],
            "protected": ["prepare.py"],
        },
        "evaluate": {
            "command": "uv run train.py",
            "metric": "val_bpb",
            "direction": "minimize",
            # Training stops by the clock, so work beside it changes the score.
            "noise": "machine",
            "secondary": ["peak_vram_mb"],
        },
        "limits": {"seconds": 600},
        # One night: the layout's own page counts on about a hundred experiments.
        "budget": {"attempts": 100},
        "sandbox": {"gpu": True},
    }
