from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from outlay import taskfile

if TYPE_CHECKING:
    from outlay.task import Option

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "kernel"
TASK = taskfile.load(FOLDER)
OPTIONS = [(lever.name, option) for lever in TASK.levers for option in lever.options]


def lay_out(option: Option, folder: Path) -> dict[str, str]:
    """Copy the example with one option on and return its environment."""
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__", ".outlay"))
    for target, source in option.files.items():
        shutil.copy(folder / source, folder / target)
    if option.patch:
        git = ["git", "apply", option.patch]
        subprocess.run(git, cwd=folder, check=True)
    return {**os.environ, **option.env}


@pytest.mark.parametrize(("lever", "option"), OPTIONS, ids=lambda value: str(value)[:40])
def test_every_option_but_single_precision_passes_the_check(
    lever: str, option: Option, tmp_path: Path
) -> None:
    folder = tmp_path / "kernel"
    env = lay_out(option, folder)
    check = [sys.executable, *TASK.evaluator.check[1:]]
    done = subprocess.run(check, cwd=folder, env=env, capture_output=True, text=True)
    breaks = (lever, option.name) == ("distances", "single")
    assert done.returncode == int(breaks), done.stdout + done.stderr
    assert ("relative error" in done.stdout) == breaks


def test_the_score_is_a_positive_time(tmp_path: Path) -> None:
    folder = tmp_path / "kernel"
    columns = next(o for name, o in OPTIONS if (name, o.name) == ("order", "columns"))
    env = lay_out(columns, folder)
    command = [sys.executable, *TASK.evaluator.command[1:], *columns.args]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1])["milliseconds"] > 0


def test_the_task_has_one_lever_of_each_kind() -> None:
    assert TASK.evaluator.noise == "machine"
    assert any(option.files for _, option in OPTIONS)
    assert any(option.env for _, option in OPTIONS)
    assert any(option.patch for _, option in OPTIONS)
    assert any(option.args for _, option in OPTIONS)
