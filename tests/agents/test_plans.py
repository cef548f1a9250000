from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlay.agents.effects import Effects
from outlay.agents.levers import defaults, propose
from outlay.agents.plans import (
    ROOT_HYPOTHESIS,
    Edit,
    apply_edits,
    changes_text,
    edits_between,
    modification,
    plan,
    prior_json,
)
from outlay.agents.subject import subject
from outlay.errors import InputError
from outlay.task import Budget, Evaluator, Lever, Metric, Option, Task, Workspace

if TYPE_CHECKING:
    from pathlib import Path

TASK = Task(
    name="switches",
    question="Which switches raise the score?\n- a = off: the program as it stands",
    workspace=Workspace(path="/somewhere"),
    evaluator=Evaluator(command=("python3", "score.py", "--seed", "{seed}"), check=("make", "t")),
    metric=Metric(name="score", direction="maximize", low=0.0),
    budget=Budget(attempts=16),
    levers=(
        Lever(
            name="a",
            options=(Option(name="off"), Option(name="on", args=("--a", "x y"), env={"A": "1"})),
        ),
        Lever(
            name="b",
            options=(
                Option(name="off", args=("--b", "0")),
                Option(name="swap", files={"m.py": "v/m.py"}),
                Option(name="fix", patch="v/fix.patch"),
            ),
        ),
        Lever(name="c", options=(Option(name="off"), Option(name="é", patch="v/c.patch"))),
    ),
)
ROOT = defaults(TASK.levers)


def test_a_plan_says_everything_about_one_configuration() -> None:
    text = plan(TASK, {"a": "on", "b": "swap", "c": "off"}, "It helps.")
    assert text == (
        "# Plan: switches\n\n"
        "## Question\n\nWhich switches raise the score?\n- a = off: the program as it stands\n\n"
        "## Hypothesis\n\nIt helps.\n\n"
        "## Settings\n\n"
        "- a = on: `--a 'x y'`, `A=1`\n"
        "- b = swap: `m.py` from `v/m.py`\n"
        "- c = off: the program as it stands\n\n"
        "## How it is measured\n\n"
        "- `score`, maximized, read from standard output\n"
        "- mean over 1 seed; a gain is confirmed on seeds never used before\n"
        "- plausible from 0 to inf\n\n"
        "## Commands\n\n"
        "    make t\n"
        "    python3 score.py --seed {seed} --a 'x y'\n"
    )


def test_the_subject_of_a_configuration_is_in_lever_order() -> None:
    made = subject(TASK.levers, {"c": "é", "b": "fix", "a": "on"}, "n3", "abc")
    assert made.patches == ("v/fix.patch", "v/c.patch")
    assert (made.args, made.env, made.swaps) == (("--a", "x y"), {"A": "1"}, {})
    assert made.config == {"a": "on", "b": "fix", "c": "é"}
    assert (made.label, made.files) == ("n3", "abc")
    assert subject(TASK.levers, ROOT, "root", "abc").args == ("--b", "0")


@pytest.mark.parametrize("stdin", [True, False])
def test_diff_py_really_writes_the_plan_of_every_child(tmp_path: Path, stdin: bool) -> None:
    effects = Effects(TASK.levers, 1.0)
    effects.record(ROOT, 0.0)
    parent = plan(TASK, ROOT, ROOT_HYPOTHESIS)
    for proposal in propose(effects, ROOT, 9, known=set()):
        child = plan(TASK, proposal.config, proposal.hypothesis)
        (tmp_path / "diff.py").write_text(
            modification(edits_between(parent, child)), encoding="utf-8"
        )
        (tmp_path / "plan.md").write_text(parent, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-I", "diff.py", *([] if stdin else ["plan.md"])],
            cwd=tmp_path,
            input=parent.encode() if stdin else b"",
            capture_output=True,
            check=True,
        )
        assert done.stdout.decode() == child
        assert len(edits_between(parent, child)) > 1


def test_diff_py_refuses_another_parent(tmp_path: Path) -> None:
    program = modification(edits_between("one\ntwo\n", "one\n2\n"))
    (tmp_path / "diff.py").write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "diff.py"], cwd=tmp_path, input=b"three\n", capture_output=True
    )
    assert done.returncode == 1
    assert done.stdout == b""
    assert done.stderr.strip() == b"edit 1 of 1 does not match exactly once"


def test_changes_and_prior_tell_what_was_expected() -> None:
    effects = Effects(TASK.levers, 1.0)
    effects.record(ROOT, 0.0)
    first = propose(effects, ROOT, 1, known=set())[0]
    assert changes_text(TASK, ROOT, first) == "- a: off to on (`--a 'x y'`, `A=1`)\n"
    record = json.loads(prior_json(first))
    assert list(record) == ["estimate", "hypothesis", "rationale", "changes", "risks"]
    assert record["estimate"] == first.prior
    assert record["changes"] == {"a": "on"}


def test_repeats_take_the_place_of_seeds_in_the_plan() -> None:
    task = replace(TASK, evaluator=Evaluator(command=("./run",)), levers=())
    text = plan(task, {}, "H")
    assert "confirmed on repeats" in text
    assert "No levers." in text
    assert text.endswith("    ./run\n")


lines = st.lists(
    st.sampled_from(["a\n", "b\n", "aa\n", "\n", "c", "é\r\n", "'\"\\\n"]), max_size=8
)
texts = lines.map("".join)


@settings(max_examples=150)
@given(texts.filter(bool), texts)
def test_edits_lead_from_any_parent_to_any_child(parent: str, child: str) -> None:
    edits = edits_between(parent, child)
    assert apply_edits(parent, edits) == child
    assert bool(edits) == (parent != child)


@given(st.text(min_size=1, max_size=30), st.text(max_size=30))
def test_edits_hold_for_any_text(parent: str, child: str) -> None:
    assert apply_edits(parent, edits_between(parent, child)) == child


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ([Edit("b", "c"), Edit("x", "y")], "edit 2 of 2: found no match of 'x', allowed: exactly"),
        ([Edit("a", "c")], "edit 1 of 1: found several matches of 'a'"),
        ([Edit("", "c")], "edit 1 of 1: found no match of ''"),
        ([Edit("aa", "c")], "edit 1 of 1: found several matches of 'aa'"),
    ],
)
def test_an_edit_matches_once_or_is_refused(edits: list[Edit], message: str) -> None:
    with pytest.raises(InputError) as caught:
        apply_edits("aaab", edits)
    assert str(caught.value).startswith(message)
