"""`outlay search` from the shell, on real processes and a real store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from outlay.doctor import examine
from outlay.execution import sandbox
from outlay.runs import Settings
from outlay.taskfile import load
from tests.e2e.conftest import OUTLAY, Command, edit, until

THREE_LEVERS = """\
[levers.b]
options = { off = "", on = "--b" }
[levers.c]
options = { off = "", on = "--c" }
"""


def test_the_smallest_task_ends_as_exhausted_after_its_two_configurations(
    task: Path, outlay: Command
) -> None:
    before = sorted(p.name for p in task.iterdir())
    done = outlay("search", task, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["run"], found["status"], found["attempts"]) == ("switches", "exhausted", 1)
    assert found["champion"]["node"] == 1
    assert found["champion"]["configuration"] == {"a": "on"}
    assert set(found["champion"]["fresh"]) == {"mean", "low", "high", "n"}
    assert set(found["baseline"]) == set(found["champion"])
    assert found["difference"]["low"] > 0
    assert found["difference"]["n"] == 3
    assert found["charges"]["total"]["attempts"] == 1
    assert Path(found["report"]).is_file()
    assert sorted(p.name for p in task.iterdir()) == sorted([*before, ".outlay"])
    assert (task / ".outlay" / ".gitignore").read_text() == "*\n"


def test_the_same_command_again_says_the_same_and_spends_nothing(
    task: Path, outlay: Command
) -> None:
    first = json.loads(outlay("search", task, "--json").stdout)
    again = outlay("search", task, "--json")
    assert again.returncode == 0
    assert json.loads(again.stdout) == first


def test_a_raised_limit_goes_on_and_is_charged_once(task: Path, outlay: Command) -> None:
    with (task / "outlay.toml").open("a") as file:
        file.write(THREE_LEVERS)
    edit(task, "attempts = 16", "attempts = 2")
    first = json.loads(outlay("search", task, "--json").stdout)
    assert (first["status"], first["attempts"]) == ("budget", 2)
    second = json.loads(outlay("search", task, "--json", "--attempts", "4").stdout)
    assert (second["status"], second["attempts"]) == ("budget", 4)
    assert second["charges"]["total"]["attempts"] == 4
    resumed = json.loads(
        outlay("resume", "--store", task / ".outlay/store.db", "--attempts", "5", "--json").stdout
    )
    assert resumed["attempts"] == 5


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('direction = "maximize"', 'direction = "minimize"', "metric.direction"),
        ('"--a"', '"--a --b"', "levers"),
        ("attempts = 16", "attempts = 16\n[limits]\nseconds = 60", "limits.seconds"),
    ],
)
def test_a_task_changed_under_a_run_is_named(
    task: Path, outlay: Command, old: str, new: str, named: str
) -> None:
    outlay("search", task)
    edit(task, old, new)
    done = outlay("search", task, "--json")
    assert done.returncode == 2
    assert done.stdout == ""
    assert named in done.stderr
    assert "--run" in done.stderr


def test_a_changed_program_or_seed_is_named_and_a_new_run_goes(
    task: Path, outlay: Command
) -> None:
    outlay("search", task)
    assert "seed (0 then, 1 now)" in outlay("search", task, "--seed", "1").stderr
    with (task / "score.py").open("a") as file:
        file.write("# a comment\n")
    done = outlay("search", task)
    assert done.returncode == 2
    assert "files" in done.stderr
    assert outlay("search", task, "--run", "second").returncode == 0


def test_a_second_writer_is_refused_with_the_name_of_the_first(
    task: Path, outlay: Command
) -> None:
    edit(task, "--seed {seed}", "--seed {seed} --slow 0.5")
    with subprocess.Popen([OUTLAY, "search", str(task)], stdout=subprocess.DEVNULL) as first:
        until((task / ".outlay" / "store.db").exists)
        time.sleep(0.05)
        done = outlay("search", task)
        first.terminate()
        first.wait()
    assert done.returncode == 5
    assert f"process {first.pid} on" in done.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_sitting_and_the_same_command_goes_on(
    task: Path, outlay: Command, number: int, code: int
) -> None:
    edit(task, "--seed {seed}", "--seed {seed} --slow 0.3")
    with subprocess.Popen(
        [OUTLAY, "search", str(task), "--json"], stdout=subprocess.PIPE, text=True
    ) as first:
        until((task / ".outlay" / "runs" / "switches" / "jobs" / "m1.1" / "claim").exists)
        os.kill(first.pid, number)
        out, _ = first.communicate(timeout=30)
    assert first.returncode == code
    assert json.loads(out)["status"] == "interrupted"
    done = outlay("search", task, "--json")
    assert json.loads(done.stdout)["status"] == "exhausted"


def test_a_stop_request_finishes_with_an_estimate(task: Path, outlay: Command) -> None:
    edit(task, "--seed {seed}", "--seed {seed} --slow 0.2")
    with subprocess.Popen(
        [OUTLAY, "search", str(task), "--json"], stdout=subprocess.PIPE, text=True
    ) as first:
        until((task / ".outlay" / "runs" / "switches" / "jobs" / "a1.1" / "claim").exists)
        stopped = outlay("stop", "--store", task / ".outlay/store.db")
        out, _ = first.communicate(timeout=60)
    assert stopped.returncode == 0, stopped.stderr
    found = json.loads(out)
    assert found["status"] == "stopped"
    assert found["champion"]["fresh"]["n"] == 3


def test_failed_attempts_have_a_reason_and_no_score(task: Path, outlay: Command) -> None:
    edit(task, '"--a"', '"--broken"')
    done = outlay("search", task, "--json")
    assert done.returncode == 4
    found = json.loads(done.stdout)
    assert found["champion"]["node"] == found["baseline"]["node"] == 0
    assert found["difference"]["mean"] == 0
    assert found["charges"]["total"]["attempts"] == 1


def test_no_gain_keeps_the_baseline_and_says_so(task: Path, outlay: Command) -> None:
    edit(task, '"--a"', '"--nothing"')
    done = outlay("search", task)
    assert done.returncode == 0
    assert "no gain was confirmed" in done.stdout


def test_a_dry_run_estimates_and_leaves_nothing_behind(task: Path, outlay: Command) -> None:
    done = outlay("search", task, "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["noise"] == "seed"
    assert found["cost"]["evaluations"] > 0
    assert not (task / ".outlay").exists()


def test_a_wall_clock_below_one_attempt_exits_3(task: Path, outlay: Command) -> None:
    edit(task, "attempts = 16", 'time = "1ms"')
    done = outlay("search", task)
    assert done.returncode == 3
    assert "budget" in done.stderr


@pytest.mark.parametrize(
    ("score", "code", "words"),
    [
        ("print('hi')", 2, "never printed"),
        ("print('score: 1'); print('score: 2')", 2, "metric_line"),
        ("print('score: nan')", 2, "NaN"),
        ("print('{\"score\": Infinity}')", 2, "infinite"),
        ("raise SystemExit(3)", 1, "ended with 3"),
    ],
)
def test_a_baseline_without_a_score_ends_before_anything_else_is_spent(
    task: Path, outlay: Command, score: str, code: int, words: str
) -> None:
    (task / "score.py").write_text(score)
    done = outlay("search", task, "--json")
    assert done.returncode == code
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    (task / "score.py").write_text("print('score: 1')")
    assert outlay("search", task).returncode == 0


def test_a_default_that_changes_the_program_is_refused(task: Path, outlay: Command) -> None:
    edit(task, '{ off = "", on = "--a" }', '{ on = "--a", off = "" }')
    for command in ("doctor", "search"):
        done = outlay(command, task)
        assert done.returncode == 2
        assert "defaults change the program" in done.stderr


@pytest.mark.skipif(not sandbox.works("bwrap"), reason="bubblewrap does not start")
def test_doctor_says_what_the_sandbox_leaves_open(task: Path, outlay: Command) -> None:
    def said(*options: str) -> str:
        done = outlay("doctor", task, "--json", *options)
        return next(
            c["found"] for c in json.loads(done.stdout)["checks"] if c["name"] == "sandbox"
        )

    assert said() == "bubblewrap: own processes, own network, the run's store out of sight"
    with (task / "outlay.toml").open("a") as file:
        file.write(f'[sandbox]\nread = ["{task}"]\n')
    assert said().endswith(f"; open: {task} to read (sandbox.read)")
    edit(task, "[sandbox]", "[sandbox]\nnetwork = true")
    assert "own network" not in said()
    assert "open: the network for every attempt (sandbox.network); " in said()


@pytest.mark.skipif(not sandbox.works("bwrap"), reason="bubblewrap does not start")
def test_doctor_says_that_a_client_on_its_own_account_has_the_network(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    program = tmp_path / "codex"
    program.write_text("#!/bin/sh\necho codex-cli 0.171.0\n")
    program.chmod(0o755)
    found = examine(load(task), Settings(agent=f"codex:{program}"), "task")
    (held,) = [check.found for check in found.checks if check.name == "sandbox"]
    assert held.endswith("; open: the network for codex, on an account of its own")


def test_more_workers_reach_the_same_configurations(task: Path, outlay: Command) -> None:
    with (task / "outlay.toml").open("a") as file:
        file.write(THREE_LEVERS)
    done = outlay("search", task, "--json", "--workers", "4")
    found = json.loads(done.stdout)
    assert found["status"] == "exhausted"
    assert found["champion"]["configuration"]["a"] == "on"
