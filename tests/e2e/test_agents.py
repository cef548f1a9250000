"""Command agents: a small script in place of a coding agent, through whole searches."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from outlay import events
from outlay.api import search
from outlay.execution import folder as jobs
from outlay.execution import processes
from outlay.state import State
from outlay.task import Agent, Budget
from outlay.tokens import CACHED_TOKEN_RATE
from tests.e2e.conftest import OUTLAY, Command, digest_of, edit, log_of, until
from tests.model_server import ModelServer
from tests.taskfiles import SCORED

if TYPE_CHECKING:
    from pathlib import Path

    from outlay.events import AttemptSettled

SCORE = """\
import json, random, sys
from pathlib import Path
seed = int(sys.argv[sys.argv.index("--seed") + 1])
random.seed(seed)
level = float(Path("level.txt").read_text())
weight = float(Path("weight.txt").read_text())
print(json.dumps({"score": weight * min(level, 0.6) + random.gauss(0, 0.005)}))
"""

IMPROVES = """\
import json, os
from pathlib import Path
plan = Path(os.environ["OUTLAY_PLAN"]).read_text()
assert "level" in plan and "baseline: score" in plan, plan
assert not Path("weight.txt").exists() and not Path("outlay.toml").exists()
level = Path("level.txt")
level.write_text(str(float(level.read_text()) + 0.2))
usage = {"tokens_in": 1000, "tokens_cached": 500, "tokens_out": 100, "usd": 0.25}
Path(os.environ["OUTLAY_USAGE"]).write_text(json.dumps(usage))
"""

TASK = f"""\
[task]
name = "switches"
question = "Which level is best?"
editable = ["level.txt"]
protected = ["score.py"]
hidden = ["weight.txt"]
{SCORED}[budget]
attempts = 3
"""


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return level_task(tmp_path)


def level_task(tmp_path: Path) -> Path:
    """Return a folder whose program an agent can raise from 0.2 to 0.6."""
    folder = tmp_path / "task"
    folder.mkdir()
    (folder / "score.py").write_text(SCORE)
    (folder / "level.txt").write_text("0.2")
    (folder / "weight.txt").write_text("1")
    (folder / "outlay.toml").write_text(f'{TASK}[sandbox]\nread = ["{tmp_path / "agent.py"}"]\n')
    return folder


def agent(task: Path, script: str) -> str:
    """Write the agent's script and return the option that names it."""
    path = task.parent / "agent.py"
    path.write_text(script)
    return f"command:{sys.executable} -I -S {path}"


def settled(task: Path) -> list[AttemptSettled]:
    return [e.event for e in log_of(task) if isinstance(e.event, events.AttemptSettled)]


def test_a_linear_search_improves_the_program_in_steps(task: Path, outlay: Command) -> None:
    done = outlay("search", task, "--json", "--agent", agent(task, IMPROVES))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["status"], found["attempts"], found["policy"]) == ("budget", 3, "linear")
    scores = [event.evaluations[0].value for event in settled(task)]
    assert scores == pytest.approx([0.4, 0.6, 0.6], abs=0.03)
    assert found["difference"]["mean"] == pytest.approx(0.4)
    assert found["difference"]["low"] > 0.39
    assert (task / "level.txt").read_text() == "0.2"
    _check_charges(task, found["charges"]["total"])
    _check_agents(task, found["agents"], outlay)
    _check_patch(task, outlay)
    _check_report(task)


def _check_report(task: Path) -> None:
    (report,) = (task / ".outlay").rglob("report.html")
    text = report.read_text()
    champion = text.split("<h2>Champion</h2>")[1].split("</section>")[0]
    assert "Node 1: goes on from node 0" in champion
    assert "-0.2\n" in champion
    assert "diff --git a/level.txt b/level.txt" in champion
    for title in ("Which levers helped", "Dead ends", "Interrupted tries"):
        assert title not in text


def _check_charges(task: Path, total: dict[str, float]) -> None:
    assert (total["tokens_in"], total["tokens_cached"], total["tokens_out"]) == (3000, 1500, 300)
    assert total["usd"] == pytest.approx(0.75)
    assert total["tokens"] == pytest.approx(3300 + CACHED_TOKEN_RATE * 1500)
    assert State.of(log_of(task)).ledger.by_kind["execution"].usd == pytest.approx(0.75)


def _check_agents(task: Path, agents: list[dict[str, object]], outlay: Command) -> None:
    (used,) = agents
    assert (used["role"], used["client"], used["tries"]) == ("executor", "command", 3)
    assert (used["input"], used["cached"], used["output"]) == (4500, 1500, 300)
    assert (used["sources"], used["usd"]) == (["told"], pytest.approx(0.75))
    store = ("--store", task / ".outlay" / "store.db")
    shown = json.loads(outlay("show", *store, "--json").stdout)
    assert shown["summary"]["agents"] == agents
    node = json.loads(outlay("show", *store, "--attempt", "2", "--json").stdout)
    assert [(u["input"], u["output"], u["tries"]) for u in node["used"]] == [(1500, 100, 1)]
    said = outlay("show", *store).stdout
    assert "executor  command: 4,500 tokens in (1,500 cached), 300 out" in said


def _check_patch(task: Path, outlay: Command) -> None:
    patch = task.parent / "best.patch"
    done = outlay("export", "--store", task / ".outlay" / "store.db", "--patch", patch, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["changed"] == ["level.txt"]
    for words in (("init", "-q"), ("apply", "--check", patch), ("apply", patch)):
        subprocess.run(["git", *words], cwd=task, check=True)
    assert float((task / "level.txt").read_text()) == pytest.approx(0.6)


def test_doctor_looks_at_who_drafts_as_well(task: Path, outlay: Command) -> None:
    with ModelServer(keys=("",)) as server, (task / "outlay.toml").open("a") as file:
        file.write(f'[reflector]\nclient = "model"\nmodel = "m1"\nurl = "{server.url}"\n')
        file.flush()
        done = outlay("doctor", task, "--json", "--agent", agent(task, IMPROVES))
        assert [seen.path for seen in server.seen] == ["/v1/chat/completions"]
    assert done.returncode == 0, done.stdout
    checks = json.loads(done.stdout)["checks"]
    assert [check["name"] for check in checks[:4]] == ["agent", "agent", "key", "call"]


def test_single_makes_one_attempt(task: Path, outlay: Command) -> None:
    options = ("--agent", agent(task, IMPROVES), "--policy", "single")
    done = outlay("search", task, "--json", *options)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["attempts"], found["policy"]) == (1, "single")
    assert found["difference"]["mean"] == pytest.approx(0.2)


def test_an_agent_and_a_limit_are_given_in_python(task: Path) -> None:
    who = Agent(client=agent(task, IMPROVES))
    run = search(task, agent=who, budget=Budget(attempts=1))
    assert run.state.attempts == 1
    assert run.difference is not None
    assert run.difference.mean == pytest.approx(0.2)


def test_python_goes_on_with_a_run_of_the_shell(task: Path, outlay: Command) -> None:
    who = agent(task, IMPROVES)
    done = outlay("search", task, "--json", "--agent", who, "--attempts", "1")
    assert json.loads(done.stdout)["attempts"] == 1
    run = search(task, agent=who, budget=Budget(attempts=2))
    assert run.state.attempts == 2
    assert len(settled(task)) == 2


def test_best_of_n_begins_again_each_time(task: Path, outlay: Command) -> None:
    options = ("--agent", agent(task, IMPROVES), "--policy", "best-of-n")
    done = outlay("search", task, "--json", *options)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["attempts"], found["policy"]) == (3, "best-of-n")
    scores = [event.evaluations[0].value for event in settled(task)]
    assert scores == pytest.approx([0.4, 0.4, 0.4], abs=0.03)
    _check_charges(task, found["charges"]["total"])


@pytest.mark.parametrize(
    "limit", [("--tokens", "2300"), ("--usd", "0.5"), ("--tokens", "2000"), ("--usd", "0.4")]
)
def test_no_attempt_starts_once_tokens_or_money_are_spent(
    task: Path, outlay: Command, limit: tuple[str, str]
) -> None:
    edit(task, "attempts = 3", "attempts = 9")
    done = outlay("search", task, "--json", "--agent", agent(task, IMPROVES), *limit)
    found = json.loads(done.stdout)
    assert (found["status"], found["attempts"]) == ("budget", 2)
    assert limit[0].strip("-") in found["reason"]
    # What the last attempt used over its limit does not keep it from being compared.
    assert found["difference"]["mean"] == pytest.approx(0.4)


def test_work_in_flight_holds_tokens(task: Path, outlay: Command) -> None:
    edit(task, "attempts = 3", "attempts = 9")
    options = ("--agent", agent(task, IMPROVES), "--tokens", "4000", "--workers", "3")
    found = json.loads(outlay("search", task, "--json", *options).stdout)
    # The first three could not know what they would use; after them, one more fits.
    assert found["charges"]["total"]["tokens"] <= 4000 + 1150
    assert found["status"] == "budget"


@pytest.mark.parametrize(
    ("script", "reason", "words"),
    [
        ("raise SystemExit('no idea')", "agent", "no idea"),
        ("import os; os.remove('score.py'); open('score.py', 'w').write('x')", "", "score.py"),
        ("import time; time.sleep(100)", "timeout", "time limit"),
    ],
    ids=["fails", "edits a protected file", "never ends"],
)
def test_an_agent_that_goes_wrong_has_no_score(
    task: Path, outlay: Command, script: str, reason: str, words: str
) -> None:
    edit(task, "attempts = 3", "attempts = 1\n[limits]\nseconds = 2")
    done = outlay("search", task, "--json", "--agent", agent(task, script))
    assert done.returncode == 4, done.stderr
    (event,) = settled(task)
    assert event.outcome == "failed"
    assert event.reason in ((reason,) if reason else ("protected", "agent"))
    assert words in event.detail
    assert all(evaluation.value is None for evaluation in event.evaluations)
    assert json.loads(done.stdout)["champion"]["node"] == "baseline"


def test_what_an_agent_leaves_outside_the_editable_files_is_undone(
    task: Path, outlay: Command
) -> None:
    script = (
        "from pathlib import Path\n"
        "Path('weight.txt').write_text('9')\n"
        "Path('json.py').write_text('dumps = lambda found: 1')\n"
        "Path('level.txt').write_text('0.3')\n"
    )
    edit(task, "attempts = 3", "attempts = 1")
    done = outlay("search", task, "--json", "--agent", agent(task, script))
    assert done.returncode == 0, done.stderr
    (event,) = settled(task)
    assert event.evaluations[0].value == pytest.approx(0.3, abs=0.03)
    shown = outlay("diff", "baseline", "champion", "--store", task / ".outlay" / "store.db")
    assert "json.py" not in shown.stdout
    assert "level.txt" in shown.stdout


def test_an_agent_that_does_nothing_gains_nothing(task: Path, outlay: Command) -> None:
    done = outlay("search", task, "--json", "--agent", agent(task, "pass"))
    assert done.returncode == 4, done.stderr
    found = json.loads(done.stdout)
    assert found["champion"]["node"] == "baseline"
    assert found["difference"]["mean"] == 0
    assert {(e.outcome, e.reason, e.evaluations) for e in settled(task)} == {
        ("failed", "unchanged", ())
    }
    used = [e.agent for e in settled(task)]
    assert {(use.source, use.complete) for use in used if use} == {("estimate", False)}
    assert found["charges"]["total"]["tokens"] > 0


def test_a_daemon_of_an_agent_is_gone_afterwards(task: Path, outlay: Command) -> None:
    marker = "outlay-test-daemon"
    script = (
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        f"        os.execv(sys.executable, [sys.executable, '-c', {TICKS!r}, {marker!r}])\n"
        "    os._exit(0)\n"
        "time.sleep(0.2)\n"
        "open('level.txt', 'w').write('0.5')\n"
    )
    edit(task, "attempts = 3", "attempts = 1")
    done = outlay("search", task, "--json", "--agent", agent(task, script))
    assert done.returncode == 0, done.stderr
    assert settled(task)[0].evaluations[0].value == pytest.approx(0.5, abs=0.03)
    assert not [p for p in processes.table() if marker in _command_line(p.process.pid)]


TICKS = """\
import time
time.sleep(0.6)
while True:
    open("level.txt", "w").write("9")
    time.sleep(0.01)
"""


def _command_line(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def test_a_killed_agent_is_charged_what_it_had_told_and_tried_again(
    task: Path, outlay: Command
) -> None:
    slow = IMPROVES + (
        "import time\nflag = Path(os.environ['OUTLAY_PLAN']).with_name('told')\ntime.sleep(1)\n"
    )
    edit(task, "attempts = 3", "attempts = 1")
    command = [OUTLAY, "search", str(task), "--json", "--agent", agent(task, slow)]
    place = task / ".outlay" / "runs" / "switches" / "jobs" / "a1.1"
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        until((place / "exchange" / "usage.json").exists)
        claim = jobs.read_claim(place)
        assert claim is not None
        assert claim.process is not None
        until(lambda: jobs.agent_usage(place))
        processes.send(claim.process, 9)
        out, _ = child.communicate(timeout=60)
    tries = settled(task)
    assert [e.outcome for e in tries] == ["interrupted", "scored"]
    assert [e.charge.tokens_in for e in tries] == [1000, 1000]
    assert json.loads(out)["charges"]["total"]["usd"] == pytest.approx(0.5)


def test_a_killed_driver_and_its_agent_go_on_to_the_same_digest(
    task: Path, outlay: Command
) -> None:
    option = ("--agent", agent(task, IMPROVES))
    store = task.parent / "other" / "store.db"
    assert outlay("search", task, "--store", store, *option).returncode == 0
    with subprocess.Popen([OUTLAY, "search", str(task), *option]) as child:
        until((task / ".outlay" / "runs" / "switches" / "jobs" / "a2.1" / "claim").exists)
        child.kill()
    assert outlay("search", task, *option).returncode == 0
    (task.parent / "both" / ".outlay").parent.mkdir()
    (task.parent / "other").rename(task.parent / "both" / ".outlay")
    assert digest_of(task) == digest_of(task.parent / "both")
