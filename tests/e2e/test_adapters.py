"""The examples of claims and of a grader's report, with a script in place of a coding agent."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.bench.scripted_server import Script, serving
from tests.e2e.test_examples import copy
from tests.e2e.test_layouts import settled

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.conftest import Command

CLAIMS = """\
import json, os, subprocess, sys
assert not os.path.exists("reference.json")
def mean(*options):
    done = subprocess.run([sys.executable, "queue_model.py", *options], capture_output=True)
    return float(done.stdout.split()[1])
claims = ["The order of service does not matter."]
if mean("--counters", "2") < mean():
    claims.append("A second counter shortens the mean wait.")
if mean("--order", "shortest") < mean():
    claims.append("The mean wait is shortened by serving the shortest job first.")
json.dump({"claims": claims}, open("claims.json", "w"))
"""

SOLVE = """\
import csv
rows = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(open("train.csv"))]
def near(a, b):
    order = sorted(rows, key=lambda row: (row["a"] - a) ** 2 + (row["b"] - b) ** 2)[:3]
    return sum(row["y"] for row in order) / 3
with open("submission.csv", "w") as out:
    out.write("id,y\\n")
    for row in csv.DictReader(open("test.csv")):
        out.write(f"{row['id']},{near(float(row['a']), float(row['b']))}\\n")
"""

CHEAT = """\
import os
assert not os.path.exists("answers.csv") and not os.path.exists("grade.py")
open("submission.csv", "w").write("id")
"""


def search(
    folder: Path, script: str, outlay: Command, more: str = ""
) -> tuple[int, dict[str, object], str]:
    """Search the folder with the script as the agent, one attempt."""
    path = folder.parent / "agent.py"
    path.write_text(script)
    with (folder / "outlay.toml").open("a") as file:
        file.write(f'\n[sandbox]\nread = ["{path}"]\n{more}')
    agent = f"command:{sys.executable} -I -S {path}"
    done = outlay("search", folder, "--json", "--agent", agent, "--attempts", "1")
    return done.returncode, json.loads(done.stdout), done.stderr


def test_claims_are_judged_one_by_one(tmp_path: Path, outlay: Command) -> None:
    folder = copy("claims", tmp_path, {})
    code, found, talk = search(folder, CLAIMS, outlay)
    assert code == 0, talk
    (only,) = settled(folder, "claims")
    precision, recall = 2 / 3, 2 / 4
    assert only.evaluations[0].value == pytest.approx(2 / (1 / precision + 1 / recall))
    assert only.evaluations[0].metrics == {
        "precision": pytest.approx(precision),
        "recall": pytest.approx(recall),
    }
    assert not found["self_reported"]


def test_a_model_behind_a_url_judges(tmp_path: Path, outlay: Command) -> None:
    def answer(request: dict[str, Any]) -> str:
        pair = json.loads(request["messages"][1]["content"])
        return (
            "match"
            if "counter" in pair["claim"] and "counter" in pair["reference"]
            else "no match"
        )

    with serving(Script(answer)) as url:
        changes = {
            "import same_words": "import Endpoint, by_endpoint",
            "same_words)": f"by_endpoint(Endpoint(url={url!r}), 'm'))",
        }
        folder = copy("claims", tmp_path, {"score.py": changes})
        code, _, talk = search(folder, CLAIMS, outlay, "network = true\n")
    assert code == 0, talk
    (only,) = settled(folder, "claims")
    assert only.evaluations[0].metrics == {
        "precision": pytest.approx(1 / 3),
        "recall": pytest.approx(1 / 4),
    }


def test_a_better_submission_is_graded(tmp_path: Path, outlay: Command) -> None:
    folder = copy("grade", tmp_path, {})
    code, found, talk = search(folder, SOLVE, outlay)
    assert code == 0, talk
    (only,) = settled(folder, "grade")
    value = only.evaluations[0].value
    assert value is not None
    assert value < 2
    assert only.evaluations[0].metrics["medal"] >= 1
    assert found["champion"] != found["baseline"]


def test_a_submission_that_is_not_valid_has_no_score(tmp_path: Path, outlay: Command) -> None:
    folder = copy("grade", tmp_path, {})
    code, _, talk = search(folder, CHEAT, outlay)
    assert code == 4, talk
    (only,) = settled(folder, "grade")
    assert (only.outcome, only.reason) == ("failed", "crash")
    assert "found no valid submission" in only.detail
    assert only.evaluations[0].value is None
