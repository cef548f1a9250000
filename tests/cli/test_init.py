from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from outlay import taskfile
from outlay.cli.init import command
from outlay.errors import InputError
from outlay.execution import sandbox

HARBOR = Path(__file__).resolve().parents[2] / "examples" / "harbor"

SCORE = """
import argparse, json
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int)
parser.add_argument("-l", "--learning-rate", type=float, default=0.1)
parser.add_argument("--fast", action="store_true")
parser.add_argument("--kind", choices=["a", "b c"], default="a")
parser.add_argument("--optimizer", default="sgd")
parser.add_argument("--out", default=None)
parser.add_argument("--cache-dir", default="cache")
parser.add_argument("--table", default="data/table.csv")
print(json.dumps({"loss": 0.5, "mb": 3}))
"""


def run(*arguments: str) -> str:
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def uncommented(text: str) -> str:
    head, _, tail = text.partition("# A lever is")
    return head + "\n".join(line.removeprefix("# ") for line in tail.splitlines()[2:])


def test_the_file_that_init_writes_loads(tmp_path: Path) -> None:
    (tmp_path / "score.py").write_text(SCORE)
    printed = json.loads(run(str(tmp_path), "--json"))
    assert printed["file"] == str(tmp_path / "outlay.toml")
    assert printed["suggested_levers"] == ["learning-rate", "fast", "kind", "optimizer"]
    task = taskfile.load(tmp_path)
    assert task.evaluator.command == ("python3", "score.py", "--seed", "{seed}")
    assert (task.metric.name, task.metric.direction) == ("loss", "minimize")
    assert task.workspace.protected == ("score.py",)
    assert task.budget.attempts == 24
    assert task.levers == ()


def test_its_commented_levers_load_too(tmp_path: Path) -> None:
    (tmp_path / "score.py").write_text(SCORE)
    run(str(tmp_path), "--json")
    text = uncommented((tmp_path / "outlay.toml").read_text())
    task = taskfile.load_text(text, "x", tmp_path)
    assert [[o.name for o in lever.options] for lever in task.levers] == [
        ["0.1", "0.2"],
        ["off", "on"],
        ["a", "b-c"],
        ["sgd", "other"],
    ]
    assert task.levers[2].options[1].args == ("--kind", "b c")


def test_answers_come_from_options(tmp_path: Path) -> None:
    folder = tmp_path / "my näme"
    folder.mkdir()
    (folder / "go").write_text("#!/bin/sh\n")
    arguments = ["--command", "./go {seed}", "--metric", 'a "b"', "--direction", "maximize"]
    run(str(folder), *arguments, "--attempts", "3", "--question", "Why\nnot?")
    task = taskfile.load(folder)
    assert task.name == "my n-me"
    assert task.question == "Why\nnot?"
    assert (task.metric.name, task.metric.direction) == ('a "b"', "maximize")
    assert task.budget.attempts == 3


def test_a_printed_line_shows_the_metric(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text('x = 1\nprint(f"val_bpb:          {x:.6f}")\n')
    run(str(tmp_path))
    task = taskfile.load(tmp_path)
    assert (task.metric.name, task.metric.direction) == ("val_bpb", "minimize")
    assert task.workspace.protected == ()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "outlay.toml").write_text("mine")
    with pytest.raises(InputError, match=r"outlay\.toml: found a task file, allowed: a folder"):
        run(str(tmp_path), "--command", "x", "--metric", "m")
    assert (tmp_path / "outlay.toml").read_text() == "mine"


def test_a_folder_that_shows_nothing_needs_options(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="evaluator command: found nothing, allowed: --command"):
        run(str(tmp_path))
    with pytest.raises(InputError, match="metric: found nothing, allowed: --metric"):
        run(str(tmp_path), "--command", "x")
    assert list(tmp_path.iterdir()) == []


def test_an_evaluator_with_a_syntax_error_is_still_named(tmp_path: Path) -> None:
    (tmp_path / "evaluate.py").write_text("def (")
    run(str(tmp_path), "--metric", "accuracy")
    assert taskfile.load(tmp_path).evaluator.command == ("python3", "evaluate.py")


def test_a_wrong_answer_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"evaluate\.metric: found 'a:b'"):
        run(str(tmp_path), "--command", "x", "--metric", "a:b")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_the_autoresearch_layout_keeps_what_the_layout_says(tmp_path: Path) -> None:
    for name in ("program.md", "train.py", "prepare.py"):
        (tmp_path / name).write_text("print(f'val_bpb: {1}')\n")
    recognised = taskfile.recognise(tmp_path)
    run(str(tmp_path), "--json")
    assert taskfile.load(tmp_path) == recognised
    assert "attempts = 100" in (tmp_path / "outlay.toml").read_text()


def test_options_hold_in_a_layout_too(tmp_path: Path) -> None:
    for name in ("program.md", "train.py", "prepare.py"):
        (tmp_path / name).write_text("x")
    run(str(tmp_path), "--name", "mine", "--attempts", "3", "--command", "python3 train.py")
    task = taskfile.load(tmp_path)
    assert (task.name, task.question, task.budget.attempts) == ("mine", "x", 3)
    assert task.evaluator.command == ("python3", "train.py")
    assert task.workspace.protected == ("prepare.py",)
    assert task.limits.seconds == 600


@pytest.mark.skipif(not sandbox.works("bwrap"), reason="bubblewrap does not start")
def test_a_harbor_task_keeps_what_its_files_say(tmp_path: Path) -> None:
    folder = tmp_path / "harbor"
    shutil.copytree(HARBOR, folder, ignore=shutil.ignore_patterns(".outlay"))
    recognised = taskfile.recognise(folder)
    run(str(folder))
    assert taskfile.load(folder) == recognised
    assert 'name = "round-trip"' in (folder / "outlay.toml").read_text()
