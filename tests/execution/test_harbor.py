"""A Harbor task's verifier in the sandbox, at the folders that it expects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from outlay.execution import harbor, metric, sandbox
from outlay.execution.job import AgentWork

if TYPE_CHECKING:
    from pathlib import Path

    from outlay.execution.job import Job, Result
    from tests.execution.conftest import Lab

needs_bwrap = pytest.mark.skipif(not sandbox.works("bwrap"), reason="bubblewrap does not start")

HIDDEN = ("tests", "solution", "task.toml")


def works(*command: str) -> AgentWork:
    return AgentWork(client="command", command=command, text="x")


def job(lab: Lab, verifier: str, container: str = "/app", **fields: Any) -> Job:
    files = {
        "task.toml": "",
        "tests/test.sh": verifier,
        "tests/answer.txt": "7",
        "solution/solve.sh": "",
        "environment/value.txt": "3",
    } | fields.pop("files", {})
    return lab.job(
        subjects=(lab.subject(files),),
        command=("bash", "/tests/test.sh"),
        container=container,
        metric="reward",
        hidden=HIDDEN,
        runs=((0, None),),
        **fields,
    )


def done(lab: Lab, task: Job) -> Result:
    result = lab.run(task)
    log = (lab.folder(task) / "err.txt").read_text() + (lab.folder(task) / "out.txt").read_text()
    assert result.status == "done", (result, log)
    return result


@needs_bwrap
def test_the_verifier_finds_its_folders_and_nothing_of_the_solution(lab: Lab) -> None:
    verifier = (
        'set -e; test "$PWD" = /app; test "$(cat /app/value.txt /tests/answer.txt)" = 37\n'
        f"ls / | tr '\\n' ' '; echo; ls {lab.run_folder}/jobs/*/\n"
        "! touch /planted 2>/dev/null; ! touch /tests/x 2>/dev/null; ls -A /logs/verifier\n"
        "touch /app/built; echo .5 > /logs/verifier/reward.txt\n"
    )
    task = job(lab, verifier)
    result = done(lab, task)
    assert (result.runs[0].value, result.sandbox) == (0.5, "bwrap")
    _, root, job_folder = lab.output(task).splitlines()
    assert {"app", "logs", "tests", "usr"} <= set(root.split())
    assert job_folder == "exchange"


@needs_bwrap
def test_the_agent_sees_the_environment_at_its_place_and_no_tests(lab: Lab) -> None:
    agent = (
        'set -e; test "$PWD" = /app; test ! -e /tests; test ! -e /app/Dockerfile\n'
        "mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt\n"
        'test -f "$OUTLAY_PLAN"; echo 5 > /app/value.txt\n'
    )
    verifier = (
        "test -e /logs/verifier/reward.txt && exit 9\n"
        'echo "{\\"reward\\": 0.$(cat /app/value.txt), \\"metric\\": 5, \\"ok\\": true}"'
        " > /logs/verifier/reward.json; echo 0 > /logs/verifier/reward.txt\n"
    )
    files = {"environment/Dockerfile": "FROM scratch"}
    hidden = (*HIDDEN, "environment/Dockerfile")
    task = job(lab, verifier, agent=works("bash", "-c", agent), files=files, secondary=("metric",))
    result = done(lab, task._replace(hidden=hidden))
    assert result.runs[0].value == 0.5
    assert result.runs[0].metrics == {"metric": 5.0}


@needs_bwrap
@pytest.mark.parametrize("reward", ["0.0", None])
def test_an_exit_code_counts_only_where_there_is_no_reward(lab: Lab, reward: str | None) -> None:
    left = f"echo {reward} > /logs/verifier/reward.txt; " if reward else ""
    task = job(lab, f"{left}exit 3\n")
    result = lab.run(task)
    if reward:
        assert (result.status, result.runs[0].value) == ("done", 0.0)
    else:
        assert (result.status, result.reason) == ("failed", "crash")
        assert result.runs[0].value is None


@needs_bwrap
def test_without_a_reward_there_is_no_score_whatever_else_was_written(lab: Lab) -> None:
    verifier = 'echo \'{"reward": 1}\' | tee "$OUTLAY_RESULT"\n'
    result = lab.run(job(lab, verifier))
    assert (result.status, result.reason) == ("failed", "metric")
    assert "/logs/verifier" in result.detail


@needs_bwrap
def test_the_place_may_lie_deeper(lab: Lab) -> None:
    verifier = "cat value.txt > /logs/verifier/reward.txt; ls -A / /workspace\n"
    task = job(lab, verifier, "/workspace/repo.git/src")
    assert done(lab, task).runs[0].value == 3.0
    assert lab.output(task).splitlines()[-1] == "repo.git"


@needs_bwrap
def test_a_protected_file_of_the_environment_cannot_be_written(lab: Lab) -> None:
    agent = works("bash", "-c", "touch /app/tried; ! echo 9 > /app/value.txt")
    verifier = "cat /app/value.txt > /logs/verifier/reward.txt\n"
    task = job(lab, verifier, agent=agent, protected=("environment/value.txt",))
    assert done(lab, task).runs[0].value == 3.0


@needs_bwrap
def test_an_environment_without_files_is_an_empty_folder(lab: Lab) -> None:
    files = {"environment/value.txt": "x"}
    verifier = "ls -A /app | wc -l > /logs/verifier/reward.txt\n"
    task = job(lab, verifier, agent=works("touch", "/app/new"), files=files)
    task = task._replace(hidden=(*HIDDEN, "environment/value.txt"))
    assert done(lab, task).runs[0].value == 2.0


def test_a_weaker_sandbox_is_refused(lab: Lab) -> None:
    result = lab.run(job(lab, "echo 1 > /logs/verifier/reward.txt", sandbox="subreaper"))
    assert (result.status, result.reason) == ("failed", "crash")
    assert "bubblewrap" in result.detail


def test_a_reward_behind_a_link_is_not_read(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "reward.json").write_text('{"reward": 1}')
    harbor.make_folders(tmp_path, tmp_path / "exchange")
    folder = tmp_path / "exchange" / "logs" / "verifier"
    folder.rmdir()
    folder.symlink_to(elsewhere)
    assert harbor.reading(metric.Rule("reward"), tmp_path / "exchange") is None


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("reward.txt", "1\n", 1.0),
        ("reward.txt", "+0.25", 0.25),
        ("reward.txt", "nan", None),
        ("reward.txt", "", None),
        ("reward.txt", "good", None),
        ("reward.json", '{"reward": 0.25, "x": null}', 0.25),
        ("reward.json", '{"reward": true}', None),
        ("reward.json", '{"speed": 2}', None),
        ("reward.json", "0.25", 0.25),
    ],
)
def test_what_a_reward_file_may_hold(
    tmp_path: Path, name: str, text: str, value: float | None
) -> None:
    harbor.make_folders(tmp_path, tmp_path)
    (tmp_path / "logs" / "verifier" / name).write_text(text)
    found = harbor.reading(metric.Rule("reward"), tmp_path)
    assert found is not None
    assert found.value == value
    assert bool(found.fault) is (value is None)


def test_a_plain_reward_is_no_other_metric(tmp_path: Path) -> None:
    harbor.make_folders(tmp_path, tmp_path)
    (tmp_path / "logs" / "verifier" / "reward.txt").write_text("0.5")
    found = harbor.reading(metric.Rule("speedup"), tmp_path)
    assert found is not None
    assert found.value is None
