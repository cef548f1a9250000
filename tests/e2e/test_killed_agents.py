"""The driver, or the process of an attempt, killed while its agent works with a model."""

from __future__ import annotations

import json
import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from outlay import events
from outlay.digest import digest
from outlay.execution import folder as jobs
from outlay.execution import processes
from outlay.recording.again import replay
from outlay.recording.keep import keep
from outlay.replay import verify
from tests.agents.clients.real import REAL, installed
from tests.e2e.conftest import OUTLAY, log_of, until
from tests.e2e.scripted import KEY, researcher, write_agent, write_task
from tests.model_server import ModelServer, Turn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from outlay.execution.processes import Process
    from tests.model_protocols import Asked


NEVER = 600.0
"""Seconds: the server must not have counted an answer that nobody is left to get."""


class Slowly:
    """A script whose first answer after a tool ran comes late, so that work is cut off there."""

    def __init__(self, seconds: float) -> None:
        self.begun = False
        self._seconds = seconds
        self._script = researcher()

    def __call__(self, asked: Asked) -> Turn:
        turn = self._script(asked)
        if not asked.results or self.begun:
            return turn
        self.begun = True
        return turn._replace(wait=self._seconds)


@contextmanager
def searching(
    task: Path, name: str, server: ModelServer
) -> Iterator[tuple[subprocess.Popen[str], Path, Process]]:
    """A search whose first attempt has been charged for one answer and waits for the next.

    Yields the driver, the job's folder, and the job's own process.
    """
    command = [OUTLAY, "search", str(task), "--json", "--agent", name]
    place = task / ".outlay" / "runs" / "switches" / "jobs" / "a1.1"
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as driver:
        try:
            until(lambda: jobs.agent_usage(place) and server.script.begun)
            claim = jobs.read_claim(place)
            assert claim is not None
            assert claim.process is not None
            yield driver, place, claim.process
        finally:
            driver.kill()


def settled(task: Path) -> list[events.AttemptSettled]:
    return [e.event for e in log_of(task) if isinstance(e.event, events.AttemptSettled)]


def check_charged_once(task: Path, server: ModelServer, found: dict[str, Any]) -> None:
    """Every token that the server told of is charged, and no other; nothing is left running.

    The log holds together, and its record too.
    """
    told, total = server.told(KEY), found["charges"]["total"]
    assert total["tokens_in"] + total["tokens_cached"] == told.input > 0
    assert (total["tokens_cached"], total["tokens_out"]) == (told.cached, told.output)
    assert found["attempts"] == 2
    log, run = log_of(task), task / ".outlay" / "runs" / "switches"
    assert verify(log) == []
    keep("switches", log, run, task / "record")
    again = replay(task / "record")
    assert (again.difference, again.digest) == ("", digest(log))
    ends = [(event.attempt, event.trial) for event in settled(task)]
    assert len(set(ends)) == len(ends)
    for place in (run / "jobs").iterdir():
        job = jobs.read_job(place)
        assert processes.with_token(job.token, processes.table()) == []


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    with ModelServer(Slowly(3.0), keys=(KEY,)) as server:
        yield server


@pytest.fixture
def agent(tmp_path: Path, server: ModelServer) -> tuple[Path, str]:
    """A task for two attempts, and the name of its agent."""
    name, more = write_agent(tmp_path)
    return write_task(tmp_path / "task", server.url, attempts=2, more=more), name


def resumed(task: Path, name: str) -> dict[str, Any]:
    command = [OUTLAY, "search", str(task), "--json", "--agent", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("at_work", [True, False], ids=["still at work", "ended meanwhile"])
def test_a_killed_drivers_agent_is_adopted_and_charged_once(
    agent: tuple[Path, str], server: ModelServer, at_work: bool
) -> None:
    task, name = agent
    with searching(task, name, server) as (driver, place, process):
        driver.kill()
        driver.wait()
        assert processes.alive(process)
        until(lambda: at_work or (place / "result.json").exists())
    found = resumed(task, name)
    assert [(e.attempt, e.trial, e.outcome) for e in settled(task)] == [
        (1, 1, "scored"),
        (2, 1, "scored"),
    ]
    check_charged_once(task, server, found)


def test_a_killed_attempts_agent_is_ended_and_its_try_charged_once(
    agent: tuple[Path, str], server: ModelServer
) -> None:
    server.script = Slowly(NEVER)
    task, name = agent
    with searching(task, name, server) as (driver, _, process):
        processes.send(process, signal.SIGKILL)
        out, _ = driver.communicate(timeout=120)
        assert driver.returncode == 0
    tries = settled(task)
    assert [(e.attempt, e.trial, e.outcome) for e in tries] == [
        (1, 1, "interrupted"),
        (1, 2, "scored"),
        (2, 1, "scored"),
    ]
    assert tries[0].charge.tokens_cached == 1000
    check_charged_once(task, server, json.loads(out))


def test_both_killed_the_agent_is_ended_and_its_try_charged_once(
    agent: tuple[Path, str], server: ModelServer
) -> None:
    server.script = Slowly(NEVER)
    task, name = agent
    with searching(task, name, server) as (driver, _, process):
        driver.kill()
        driver.wait()
        processes.send(process, signal.SIGKILL)
    found = resumed(task, name)
    assert [(e.attempt, e.trial, e.outcome) for e in settled(task)] == [
        (1, 1, "interrupted"),
        (1, 2, "scored"),
        (2, 1, "scored"),
    ]
    check_charged_once(task, server, found)


class TestWithARealClient:
    pytestmark = REAL

    def test_a_killed_drivers_client_is_adopted_and_charged_once(
        self, tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        installed("codex", monkeypatch)
        task = write_task(tmp_path / "task", server.url, attempts=2)
        with searching(task, "codex", server) as (driver, _, process):
            driver.kill()
            driver.wait()
            assert processes.alive(process)
        found = resumed(task, "codex")
        assert [(e.attempt, e.trial) for e in settled(task)] == [(1, 1), (2, 1)]
        check_charged_once(task, server, found)

    def test_a_killed_attempts_client_is_ended_and_its_try_charged_once(
        self, tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server.script = Slowly(NEVER)
        installed("codex", monkeypatch)
        task = write_task(tmp_path / "task", server.url, attempts=2)
        with searching(task, "codex", server) as (driver, _, process):
            processes.send(process, signal.SIGKILL)
            out, _ = driver.communicate(timeout=120)
        assert [(e.attempt, e.trial) for e in settled(task)] == [(1, 1), (1, 2), (2, 1)]
        check_charged_once(task, server, json.loads(out))
