"""The shipped examples through whole searches, made smaller so that they are quick."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from outlay import events
from outlay.sqlite_store import SqliteStore
from outlay.state import State

if TYPE_CHECKING:
    from tests.e2e.conftest import Command

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

needs_uv = pytest.mark.skipif(shutil.which("uv") is None, reason="needs uv")

FASTER = (
    "import pathlib, re; "
    "t = pathlib.Path('train.py'); s = t.read_text(); "
    "t.write_text(re.sub('RATE = [0-9.]+', 'RATE = 2.0', s, count=1))"
)

FEWER = {
    "STEPS = 400": "STEPS = 30",
    "TRAINING_SENTENCES = 1000": "TRAINING_SENTENCES = 60",
    "VALIDATION_SENTENCES = 200": "VALIDATION_SENTENCES = 20",
}

FEW_SEEDS = "[seeds]\nfinal = [2, 3]\n"

SCORE_ALONE = '[coordination]\nconfirmation = "none"\n'

LEVERS = """\
[levers.rate.options]
slow = ""
fast = { patch = "fast.patch" }
[levers.width.options]
narrow = ""
broken = { files = { "train.py" = "broken.py" } }
"""

PATCH = """\
--- a/train.py
+++ b/train.py
@@ -{line},1 +{line},1 @@
-RATE = 1.0
+RATE = 2.0
"""


def copy(name: str, folder: Path, changes: dict[str, dict[str, str]]) -> Path:
    """Copy an example, with texts of its files replaced."""
    target = folder / name
    left_out = shutil.ignore_patterns(".outlay", ".venv", "__pycache__")
    shutil.copytree(EXAMPLES / name, target, ignore=left_out)
    for path, texts in changes.items():
        text = (target / path).read_text()
        for old, new in texts.items():
            assert old in text
            text = text.replace(old, new)
        (target / path).write_text(text)
    return target


@pytest.fixture
def autoresearch(tmp_path: Path) -> Path:
    return copy("autoresearch", tmp_path, {"prepare.py": FEWER})


@needs_uv
def test_autoresearch_alone_measures_the_baseline_and_says_what_is_needed(
    autoresearch: Path, outlay: Command
) -> None:
    done = outlay("search", autoresearch, "--json")
    assert done.returncode == 3, done.stderr
    values = json.loads(done.stdout)["values"]
    assert len(values) == 3
    assert all(0 < value < 10 for value in values)
    assert "[levers.NAME]" in done.stderr
    assert "--agent codex" in done.stderr


@needs_uv
def test_autoresearch_goes_on_with_a_command_agent(
    autoresearch: Path, outlay: Command, tmp_path: Path
) -> None:
    (autoresearch / "outlay.toml").write_text(FEW_SEEDS)
    agent = f'command:python3 -c "{FASTER}"'
    done = outlay("search", autoresearch, "--json", "--agent", agent, "--attempts", "1")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["champion"]["node"] == 0
    assert found["difference"]["low"] > 0
    assert found["self_reported"]
    results = autoresearch / ".outlay" / "runs" / "autoresearch" / "results.tsv"
    rows = [line.split("\t") for line in results.read_text().splitlines()]
    assert rows[0] == ["commit", "val_bpb", "memory_gb", "status", "description"]
    assert [row[3] for row in rows[1:]] == ["keep", "keep"]
    assert rows[1][4] == "baseline"
    for commit, score, memory, _, description in rows[1:]:
        assert re.fullmatch(r"[0-9a-f]{7}", commit)
        assert re.fullmatch(r"\d\.\d{6}", score)
        assert re.fullmatch(r"\d+\.\d", memory)
        assert description
    assert float(rows[2][1]) == pytest.approx(found["champion"]["selected"], abs=1e-6)
    store = autoresearch / ".outlay" / "store.db"
    out = tmp_path / "out"
    exported = outlay("export", "--store", store, "--folder", out)
    assert exported.returncode == 0, exported.stderr
    assert (out / "results.tsv").read_text() == results.read_text()
    assert "RATE = 2.0" in (out / "train.py").read_text()
    audited = outlay("audit", results, "--json")
    assert audited.returncode == 0, audited.stderr


@needs_uv
def test_autoresearch_with_levers_from_an_added_file(autoresearch: Path, outlay: Command) -> None:
    lines = (autoresearch / "train.py").read_text().splitlines()
    line = lines.index("RATE = 1.0") + 1
    (autoresearch / "fast.patch").write_text(PATCH.format(line=line))
    (autoresearch / "broken.py").write_text("print('val_bpb: nan')\n")
    (autoresearch / "outlay.toml").write_text(FEW_SEEDS + LEVERS)
    done = outlay("search", autoresearch, "--json", "--attempts", "3")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["champion"]["configuration"] == {"rate": "fast", "width": "narrow"}
    results = autoresearch / ".outlay" / "runs" / "autoresearch" / "results.tsv"
    rows = [line.split("\t") for line in results.read_text().splitlines()]
    crashed = [row for row in rows if row[3] == "crash"]
    assert crashed
    assert all(row[1:3] == ["0.000000", "0.0"] for row in crashed)
    assert len(rows) == 2 + found["attempts"]


def test_kernel_never_scores_what_fails_its_check(tmp_path: Path, outlay: Command) -> None:
    kernel = copy(
        "kernel",
        tmp_path,
        {
            "score.py": {"size=(600, 16)": "size=(200, 16)", "CALLS = 5": "CALLS = 1"},
            "check.py": {"(2, 97, 256)": "(2, 65)"},
            "outlay.toml": {"[limits]": f"{FEW_SEEDS}{SCORE_ALONE}[limits]"},
        },
    )
    done = outlay("search", kernel, "--json", "--attempts", "3")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["status"], found["attempts"]) == ("budget", 3)
    assert found["champion"]["configuration"]["distances"] != "single"
    with SqliteStore(kernel / ".outlay" / "store.db") as store:
        log = list(store.read("kernel"))
    state = State.of(log)
    tried = {state.configuration(node)["distances"]: node for node in state.tree.nodes[1:]}
    assert tried["single"].status == "failed"
    reasons = [e.event.reason for e in log if isinstance(e.event, events.AttemptSettled)]
    assert set(reasons) <= {"", "check"}
    assert "check" in reasons
