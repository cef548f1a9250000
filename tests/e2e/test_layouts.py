"""Folders that need no task file: a Harbor task and an autoresearch workspace, with agents."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from outlay import events
from outlay.execution import sandbox
from outlay.sqlite_store import SqliteStore
from tests.e2e.conftest import OUTLAY, Command
from tests.e2e.test_examples import FEW_SEEDS, FEWER, copy, needs_uv

needs_bwrap = pytest.mark.skipif(not sandbox.works("bwrap"), reason="bubblewrap does not start")

SHORTER = """\
import os, runpy, sys
plan = open(os.environ["OUTLAY_PLAN"]).read()
assert "/app/trip.txt" in plan and "the verifier's reward file" in plan, plan
assert os.getcwd() == "/app" and sorted(os.listdir()) == ["stops.csv", "trip.txt"]
assert not os.path.exists("/tests") and not os.path.exists("/solution")
os.makedirs("/logs/verifier", exist_ok=True)
open("/logs/verifier/reward.json", "w").write('{"reward": 1}')
"""


@pytest.fixture
def harbor(tmp_path: Path) -> Path:
    """A copy of the example, and the solution's program where an agent script can find it."""
    folder = copy("harbor", tmp_path, {})
    shutil.copy(folder / "solution" / "shorten.py", tmp_path / "shorten.py")
    return folder


def agent(harbor: Path, script: str) -> str:
    """Write an agent's script and return the option that names it; it lies outside the task."""
    path = harbor.parent / "agent.py"
    path.write_text(script)
    text = f'[sandbox]\nread = ["{path}", "{path.with_name("shorten.py")}"]\n'
    text += "[seeds]\nfinal = [1, 2]\nselection = [3]\n[budget]\nattempts = 1\n"
    (harbor / "outlay.toml").write_text(text)
    return f"command:{sys.executable} -I {path}"


def settled(folder: Path, run: str) -> list[events.AttemptSettled]:
    with SqliteStore(folder / ".outlay" / "store.db") as store:
        log = list(store.read(run))
    return [e.event for e in log if isinstance(e.event, events.AttemptSettled)]


@needs_bwrap
def test_a_harbor_task_is_searched_by_an_agent(harbor: Path, outlay: Command) -> None:
    script = SHORTER + (
        f"sys.argv = ['', 'stops.csv', 'trip.txt']\nrunpy.run_path({str(harbor.parent)!r}"
        " + '/shorten.py')\n"
    )
    done = outlay("search", harbor, "--json", "--agent", agent(harbor, script))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["run"], found["attempts"], found["metric"]) == ("round-trip", 1, "reward")
    assert found["baseline"]["selected"] == 0.0
    assert found["champion"]["selected"] == 1.0
    assert not found["self_reported"]
    (first,) = settled(harbor, "round-trip")
    assert first.evaluations[0].metrics["metric"] < 4.5
    assert "environment/Dockerfile: not built" in done.stderr
    assert "environment.cpus" in done.stderr
    patch = harbor.parent / "best.patch"
    store = harbor / ".outlay" / "store.db"
    exported = outlay("export", "--store", store, "--patch", patch, "--json")
    assert json.loads(exported.stdout)["changed"] == ["environment/trip.txt"], exported.stderr


@needs_bwrap
def test_a_planted_reward_and_a_wrong_answer_earn_nothing(harbor: Path, outlay: Command) -> None:
    script = SHORTER + "open('trip.txt', 'w').write('0\\n0\\n')\n"
    done = outlay("search", harbor, "--json", "--agent", agent(harbor, script))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["champion"]["node"] == "baseline"
    assert [e.evaluations[0].value for e in settled(harbor, "round-trip")] == [0.0]


@needs_bwrap
def test_doctor_says_what_of_a_harbor_task_is_not_honoured(harbor: Path, outlay: Command) -> None:
    done = outlay("doctor", harbor)
    shown = [line for line in done.stdout.splitlines() if " harbor " in line]
    assert any("environment.cpus" in line for line in shown), done.stdout + done.stderr
    assert any("environment/Dockerfile" in line for line in shown)
    assert any("timeout_sec" in line for line in shown)


def test_a_harbor_task_without_bubblewrap_says_why_it_cannot_run(
    harbor: Path, tmp_path: Path
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "git", "unshare"):
        (programs / name).symlink_to(shutil.which(name) or "/nowhere")
    done = subprocess.run(
        [OUTLAY, "search", harbor, "--agent", "command:true"],
        capture_output=True,
        text=True,
        env=os.environ | {"PATH": str(programs)},
        check=False,
    )
    assert done.returncode == 1
    assert "bubblewrap" in done.stderr
    assert "Traceback" not in done.stderr


FASTER = """\
import os, pathlib, re
plan = pathlib.Path(os.environ["OUTLAY_PLAN"]).read_text()
programme = pathlib.Path("program.md").read_text().strip()
assert programme in plan and "Make one change and end" in plan, plan
train = pathlib.Path("train.py")
train.write_text(re.sub("RATE = [0-9.]+", "RATE = 2.0", train.read_text(), count=1))
pathlib.Path("program.md").write_text("Anything goes.")
"""


@needs_uv
def test_an_agent_is_given_the_text_of_program_md(tmp_path: Path, outlay: Command) -> None:
    folder = copy("autoresearch", tmp_path, {"prepare.py": FEWER})
    (tmp_path / "agent.py").write_text(FASTER)
    readable = f'[sandbox]\nread = ["{tmp_path / "agent.py"}"]\n'
    (folder / "outlay.toml").write_text(FEW_SEEDS + readable)
    agent = f"command:{sys.executable} -I {tmp_path / 'agent.py'}"
    done = outlay("search", folder, "--json", "--agent", agent, "--attempts", "1")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["champion"]["node"], found["self_reported"]) == (0, True)
    assert found["difference"]["low"] > 0
    (only,) = settled(folder, "autoresearch")
    assert only.outcome == "scored"
    store = folder / ".outlay" / "store.db"
    exported = outlay("export", "--store", store, "--patch", tmp_path / "p", "--json")
    assert json.loads(exported.stdout)["changed"] == ["train.py"]
    assert "<h1>Lower the bits per byte</h1>" in Path(found["report"]).read_text()
