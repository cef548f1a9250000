"""What a job with an agent does, in real processes."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from outlay.execution import sandbox, snapshot
from outlay.execution.job import AgentWork
from tests.execution.conftest import SCORE, Lab, works

if TYPE_CHECKING:
    from outlay.execution.job import Result
    from outlay.execution.sandbox import Kind


AGENT = """
import os, pathlib
print("listing", sorted(str(p) for p in pathlib.Path(".").rglob("*")))
print("score: 99")
print("plan", open(os.environ["OUTLAY_PLAN"]).read())
pathlib.Path("value").write_text("5")
pathlib.Path("new").mkdir()
pathlib.Path("new/file").write_text("made")
pathlib.Path("gone").unlink()
"""


def agent_files(agent: str) -> dict[str, str | bytes]:
    return {
        "score.py": "import hid.den; print('score:', float(open('value').read()))",
        "value": "1",
        "gone": "x",
        "hid/den.py": "secret = 1",
        "agent.py": agent,
        "fixed/f": "7",
    }


def run_agent(lab: Lab, agent: str, **fields: object) -> tuple[Result, str]:
    job = lab.job(
        subjects=(lab.subject(agent_files(agent)),),
        agent=works(sys.executable, "agent.py"),
        hidden=("hid/**",),
        **fields,
    )
    result = lab.run(job)
    return result, lab.output(job)


@pytest.mark.skipif(not sandbox.works("bwrap"), reason="bubblewrap does not start")
@pytest.mark.parametrize(
    ("client", "fields", "alone"),
    [
        ("command", {}, True),
        ("codex", {}, False),
        ("command", {"network": True}, False),
    ],
)
def test_only_a_client_on_an_account_of_its_own_has_a_network_that_the_task_does_not_open(
    lab: Lab, client: str, fields: dict[str, bool], alone: bool
) -> None:
    look = "import os; print('NET', os.readlink('/proc/self/ns/net'))"
    subject = lab.subject({"agent.py": look, "score.py": SCORE})
    work = AgentWork(client=client, command=(sys.executable, "agent.py"), text="work")
    job = lab.job(subjects=(subject,), agent=work, sandbox="bwrap", **fields)
    lab.run(job)
    (seen,) = [line.split()[1] for line in lab.output(job).splitlines() if line.startswith("NET ")]
    assert (seen != os.readlink("/proc/self/ns/net")) is alone


def test_an_agent_works_without_the_hidden_files(lab: Lab, kind: Kind) -> None:
    result, output = run_agent(lab, AGENT, sandbox=kind)
    assert result.status == "done", result
    assert result.runs[0].value == 5.0
    assert "['agent.py', 'fixed', 'fixed/f', 'gone', 'score.py', 'value']" in output
    assert "plan raise the value" in output
    held = snapshot.load(result.files, lab.objects)
    assert sorted(held) == [
        "agent.py",
        "fixed/f",
        "hid/den.py",
        "new/file",
        "score.py",
        "value",
    ]


def test_a_planted_hidden_file_is_replaced(lab: Lab, kind: Kind) -> None:
    agent = """
import os
open("note", "w").close()
os.makedirs("hid/__pycache__")
open("hid/den.py", "w").write("raise SystemExit(0)")
open("hid/__pycache__/den.cpython-311.pyc", "w").write("x")
"""
    result, _ = run_agent(lab, agent, sandbox=kind)
    assert (result.status, result.runs[0].value) == ("done", 1.0)
    agent = "import os\nos.symlink('/tmp', 'hid')\nopen('note', 'w').close()\n"
    result, _ = run_agent(lab, agent, sandbox=kind)
    assert (result.status, result.runs[0].value) == ("done", 1.0)


def test_an_agent_cannot_answer_for_the_evaluator(lab: Lab, kind: Kind) -> None:
    outside = lab.root / "outside"
    outside.mkdir()
    (outside / "r.json").write_text("{}")
    agent = f"""
import os
open("note", "w").close()
exchange = os.path.dirname(os.environ["OUTLAY_USAGE"])
os.makedirs(exchange + "/result.json/x")
os.symlink({str(outside)!r}, "out")
"""
    result, _ = run_agent(lab, agent, sandbox=kind, source="out/r.json")
    assert (result.status, result.reason) == ("failed", "metric")
    assert (outside / "r.json").exists()
    agent = agent.replace("os.makedirs(exchange", "open(exchange").replace('/x")', "\", 'w')")
    agent = agent.replace("os.symlink", "print")
    result, _ = run_agent(lab, agent, sandbox=kind)
    assert (result.status, result.runs[0].value) == ("done", 1.0)


@pytest.mark.parametrize(
    "change",
    [
        "os.chmod('fixed/f', 0o600); open('fixed/f', 'w').write('2')",
        "os.unlink('fixed/f')",
        "os.rename('value', 'fixed/f')",
        "os.rename('fixed', 'other'); os.symlink('other', 'fixed')",
    ],
)
def test_a_changed_protected_file_means_no_score(lab: Lab, kind: Kind, change: str) -> None:
    change = (
        "import os\nopen('note', 'w').close()\n"
        f"try:\n    {change}\nexcept OSError as error:\n    print('no:', error)\n"
    )
    for agent, score in ((change, SCORE), ("open('value', 'w').write('2')", change + SCORE)):
        files = agent_files(agent) | {"score.py": score}
        job = lab.job(
            subjects=(lab.subject(files),),
            agent=works(sys.executable, "agent.py"),
            protected=("fixed/**",),
            sandbox=kind,
        )
        result = lab.run(job)
        if kind == "bwrap" and "symlink" not in change:
            assert result.status == "done", result
            assert "no:" in lab.output(job)
        else:
            assert (result.status, result.reason) == ("failed", "protected")
            assert "fixed/f" in result.detail
            assert [run.value for run in result.runs] in ([], [None])


def test_changes_outside_the_editable_paths_are_undone(lab: Lab) -> None:
    agent = AGENT + "open('fixed/added', 'w').write('x')\nopen('fixed/f', 'w').write('2')\n"
    result, _ = run_agent(lab, agent, editable=("value",))
    assert result.status == "done", result
    assert result.runs[0].value == 5.0
    assert "undone: fixed/added, fixed/f, gone, new/file" in result.detail
    held = snapshot.load(result.files, lab.objects)
    assert sorted(held) == sorted(agent_files(agent))


def test_what_an_agent_says_it_used(lab: Lab) -> None:
    agent = """
import json, os
json.dump({"tokens_in": 10, "tokens_out": -1, "usd": 0.25, "tokens_cached": True, "x": 1},
          open(os.environ["OUTLAY_USAGE"], "w"))
"""
    result, _ = run_agent(lab, agent)
    assert (result.tokens_in, result.tokens_cached, result.tokens_out) == (10, 0, 0)
    assert result.usd == 0.25
    result, _ = run_agent(lab, agent + "raise SystemExit(1)")
    assert (result.reason, result.usd) == ("agent", 0.25)
