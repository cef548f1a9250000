from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from outlay import taskfile
from outlay._tasktables import LEVER, OPTION, TABLES
from outlay.designs.statefile import parse_state, read_state
from outlay.errors import InputError
from outlay.task import Budget, Option, check, from_json, task_hash, to_json
from tests.taskfiles import SMALLEST, load

DOCS = Path(__file__).parents[1] / "docs" / "task-file.md"


FULL = """
[task]
name = "full task"
question = "Q?"
workspace = "w"
editable = ["model.py", "variants/**"]
protected = ["score.py"]
hidden = ["answers/**"]
data = ["big"]
[evaluate]
command = ["python3", "score.py", "a b", "{seed}"]
check = "python3 -m pytest 'tests dir'"
metric = "loss"
direction = "minimize"
range = [0, inf]
read = "out/result.json"
metric_line = "last"
secondary = ["mb"]
noise = "machine"
reward = "logistic"
reward_scale = 0.5
[limits]
seconds = "10m"
memory = "2GB"
output = "1MB"
[seeds]
selection = [1, 2]
confirmation = 5000
final = [11, 12, 13]
[budget]
attempts = 20
tokens = "1.5M"
usd = 3
time = "2h"
[levers.zeta.options]
plain = ""
wide = { args = "--width 512", env = { WIDTH = "a b" } }
[levers.alpha.options]
b = "--mode b"
a = { files = { "model.py" = "variants/tree.py" } }
c = { patch = "variants/fast.patch" }
[sandbox]
read = ["~"]
network = true
gpu = true
[coordination]
confirmation = "band"
error_rate = 0.1
dead_ends = false
ranking = false
teams = 3
stagnation = 0
[search]
policy = "fixed:3"
children = 2
prune_below = 0
"""


def test_the_smallest_task_loads_as_it_stands(tmp_path: Path) -> None:
    (tmp_path / "outlay.toml").write_text(SMALLEST)
    task = taskfile.load(tmp_path)
    assert task == taskfile.load(tmp_path / "outlay.toml")
    assert task.workspace.path == str(tmp_path.resolve())
    assert task.evaluator.command == ("python3", "score.py", "--seed", "{seed}")
    assert task.levers[0].options == (Option(name="off"), Option(name="on", args=("--a", "1")))
    assert task.levers[0].options[0].is_plain
    assert task.budget == Budget(attempts=16)


def test_every_key_reaches_the_task(tmp_path: Path) -> None:
    for path in ("score.py", "variants/tree.py", "variants/fast.patch", "answers/a", "big/x"):
        (tmp_path / "w" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "w" / path).write_text("")
    (tmp_path / "outlay.toml").write_text(FULL)
    task = taskfile.load(tmp_path)
    assert task.workspace.path == str(tmp_path.resolve() / "w")
    assert task.workspace.editable == ("model.py", "variants/**")
    assert task.evaluator.command == ("python3", "score.py", "a b", "{seed}")
    assert task.evaluator.check == ("python3", "-m", "pytest", "tests dir")
    assert (task.metric.low, task.metric.high) == (0.0, None)
    assert (task.metric.source, task.metric.line) == ("out/result.json", "last")
    assert (task.limits.seconds, task.limits.memory, task.limits.output) == (600, 2 * 10**9, 10**6)
    assert (task.seeds.selection, task.seeds.confirmation) == ((1, 2), 5000)
    assert task.budget == Budget(attempts=20, tokens=1_500_000, usd=3.0, seconds=7200.0)
    assert [lever.name for lever in task.levers] == ["zeta", "alpha"]
    assert [option.name for option in task.levers[1].options] == ["b", "a", "c"]
    assert task.levers[0].options[1].env == {"WIDTH": "a b"}
    assert task.sandbox.read == (str(Path.home()),)
    assert task.coordination.teams == 3
    assert not task.coordination.ranking
    assert (task.search.policy, task.search.children, task.search.prune_below) == ("fixed:3", 2, 0)
    check(task)
    assert from_json(to_json(task)) == task


def test_limits_of_a_command_replace_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "outlay.toml").write_text(SMALLEST.replace("[budget]\nattempts = 16", ""))
    with pytest.raises(InputError, match="budget: found nothing, allowed: at least one limit"):
        taskfile.load(tmp_path)
    assert taskfile.load(tmp_path, Budget(usd=2.0)).budget == Budget(usd=2.0)
    (tmp_path / "outlay.toml").write_text(SMALLEST)
    given_budget = Budget(attempts=3, seconds=5.0)
    assert taskfile.load(tmp_path, given_budget).budget == given_budget


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"[task]\nname = \xff", "byte 0xff at offset 14, allowed: UTF-8"),
        (b"[task]\nname = \n", "no valid TOML: Invalid value (at line 2"),
        (
            b"[levers.a]\n[levers.a]\n",
            "no valid TOML: Cannot declare ('levers', 'a') twice (at line 2",
        ),
        (b"x = " + b"[" * 100_000, "nested too deep"),
        (b"x = " + b"1" * 10_000, "no valid TOML"),
    ],
)
def test_what_is_no_task_file_at_all(tmp_path: Path, data: bytes, found: str) -> None:
    with pytest.raises(InputError, match=re.escape(found)) as caught:
        load(tmp_path, data)
    assert str(tmp_path / "outlay.toml") in str(caught.value)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "outlay.toml")
    with pytest.raises(InputError, match=r"outlay\.toml: found a pipe, .* a regular file"):
        taskfile.load(tmp_path)


def test_a_missing_file_and_a_folder_without_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found no such file"):
        taskfile.load(tmp_path / "x.toml")
    with pytest.raises(InputError, match=r"found no outlay\.toml, allowed: .*outlay init"):
        taskfile.load(tmp_path)


def test_a_byte_order_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    load(tmp_path, b"\xef\xbb\xbf" + SMALLEST.replace("\n", "\r\n").encode())


def autoresearch(folder: Path) -> None:
    for name in ("program.md", "train.py", "prepare.py"):
        (folder / name).write_text("Lower val_bpb." if name == "program.md" else "")


def test_an_autoresearch_workspace_is_recognised(tmp_path: Path) -> None:
    assert taskfile.recognise(tmp_path) is None
    autoresearch(tmp_path)
    task = taskfile.recognise(tmp_path)
    assert task is not None
    assert task == taskfile.load(tmp_path)
    assert task.question == "Lower val_bpb."
    assert task.evaluator.command == ("uv", "run", "train.py")
    assert not task.evaluator.seeded
    assert (task.metric.name, task.metric.direction) == ("val_bpb", "minimize")
    assert (task.metric.secondary, task.metric.line) == (("peak_vram_mb",), "only")
    assert (task.workspace.editable, task.workspace.protected) == (("train.py",), ("prepare.py",))
    assert task.limits.seconds == 600
    assert taskfile.load(tmp_path, Budget(attempts=2)).budget.attempts == 2


def test_levers_may_be_added_to_an_autoresearch_workspace(tmp_path: Path) -> None:
    autoresearch(tmp_path)
    (tmp_path / "outlay.toml").write_text(
        '[evaluate]\ncommand = "python3 train.py"\n[budget]\ntime = "1h"\n'
        '[levers.a]\noptions = { off = "", on = { env = { A = "1" } } }\n'
    )
    task = taskfile.load(tmp_path)
    assert task.evaluator.command == ("python3", "train.py")
    assert task.metric.name == "val_bpb"
    assert task.budget == Budget(seconds=3600.0)
    assert [lever.name for lever in task.levers] == ["a"]


def keys_of_the_loader() -> set[str]:
    keys = {f"{table}.{key}" for table, readers in TABLES.items() for key in readers}
    keys |= {f"levers.NAME.{key}" for key in LEVER}
    return keys | {f"levers.NAME.options.OPTION.{key}" for key in OPTION}


def test_the_page_lists_every_key_and_no_other() -> None:
    listed = re.findall(r"^\| `([\w.]+)` \|", DOCS.read_text(), re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == keys_of_the_loader()


def test_the_page_says_what_the_layout_supplies(tmp_path: Path) -> None:
    autoresearch(tmp_path)
    page = DOCS.read_text().split("## A folder in the autoresearch layout")[1]
    block = re.search(r"```toml\n(.*?)```", page, re.DOTALL)
    assert block is not None
    assert taskfile.load_text(block[1], "page", tmp_path) == taskfile.recognise(tmp_path)


def test_the_examples_of_the_page_are_right(tmp_path: Path) -> None:
    page = DOCS.read_text()
    blocks = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    taskfile.load_text(blocks[0], "page", tmp_path)
    taskfile.load_text(blocks[0].split("[levers.a]")[0] + blocks[1], "page", tmp_path)
    for python in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(python, {})


KEYS = sorted(key for key in keys_of_the_loader() if "NAME" not in key)
values = st.one_of(
    st.integers(-5, 5),
    st.floats(),
    st.booleans(),
    st.text(max_size=5),
    st.lists(st.text(max_size=3), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


@example("task.hypotheses", "0")
@example("task.hypotheses", "\0")
@given(st.sampled_from(KEYS), values)
def test_any_value_of_any_key_is_accepted_or_an_input_error(key: str, value: object) -> None:
    table, name = key.split(".")
    document = {
        "task": {"name": "n", "question": "q"},
        "evaluate": {"command": "c", "metric": "m", "direction": "maximize"},
        "budget": {"attempts": 1},
    }
    document.setdefault(table, {})[name] = value
    try:
        task = taskfile._build(document, "x", Path("/nowhere"), {}, None)
    except InputError as error:
        assert str(error).startswith("x: ")  # noqa: PT017
        assert "found " in str(error)  # noqa: PT017
    else:
        assert from_json(to_json(task)) == task


STATE = Path(__file__).parents[1] / "examples" / "design" / "state.toml"
ARMS = json.dumps(read_state(STATE).arms)


def with_hypotheses(
    folder: Path, name: str = "state.toml", secondary: str = ARMS, edit: tuple[str, str] = ("", "")
) -> Path:
    """Write a task whose hypotheses are those of the example, with one text replaced."""
    named = f'[task]\nhypotheses = "{name}"'
    read = f"[evaluate]\nsecondary = {secondary}"
    (folder / "score.py").write_text("")
    (folder / "outlay.toml").write_text(
        SMALLEST.replace("[task]", named).replace("[evaluate]", read)
    )
    assert edit[0] in STATE.read_text()
    (folder / "state.toml").write_text(STATE.read_text().replace(*edit))
    return folder


def test_hypotheses_are_part_of_the_task(tmp_path: Path) -> None:
    task = taskfile.load(with_hypotheses(tmp_path))
    (tmp_path / "state.toml").unlink()
    kept = from_json(to_json(task))
    assert kept == task
    assert parse_state(kept.hypotheses) == read_state(STATE)
    assert task_hash(task) != task_hash(replace(task, hypotheses={}))


def test_hypotheses_are_hidden_from_whoever_carries_plans_out(tmp_path: Path) -> None:
    assert taskfile.load(with_hypotheses(tmp_path)).workspace.hidden == ("state.toml",)
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "score.py").write_text("")
    text = (tmp_path / "outlay.toml").read_text().replace("[task]", '[task]\nworkspace="program"')
    (tmp_path / "outlay.toml").write_text(text)
    assert taskfile.load(tmp_path).workspace.hidden == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "none.toml"}, "none.toml: No such file"),
        ({"name": "score.py"}, "score.py: "),
        ({"edit": ("prior = 0.30", "prior = 0.40")}, "state.toml: prior: sums to 1.1"),
        ({"edit": ("prior = 0.30", "")}, "prior: found for 5 of 6 hypotheses"),
        ({"edit": ("{ ema = 1 }", "{ emma = 1 }")}, "state.toml: signature of averaging"),
        ({"edit": ("seeds = [2, 8]", "seeds = [8, 2]")}, "state.toml: seeds: found"),
        ({"edit": ("budget = 48", "budgets = 48")}, "state.toml: "),
        (
            {"secondary": '["warmup"]'},
            "secondary: found ['warmup'], allowed: every arm of task.hypotheses too, of which aug",
        ),
    ],
)
def test_hypotheses_that_are_wrong(tmp_path: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        taskfile.load(with_hypotheses(tmp_path, **options))
