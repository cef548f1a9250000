"""The driver of the Agent Client Protocol, with a small agent and with a real one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from outlay.agents.clients.contract import Usage
from tests.agents.clients.real import WRITE, Lab, Ran, installed
from tests.model_server import ModelServer, Turn, turns

if TYPE_CHECKING:
    from collections.abc import Callable

AGENT = Path(__file__).with_name("acp_agent.py")


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Ran]:
    lab = Lab("acp", tmp_path)
    (lab.home / "agent.py").write_text(AGENT.read_text())
    lab.command = (sys.executable, str(lab.home / "agent.py"))
    return lambda **plan: lab.run("", prompt=json.dumps({"say": "All done.", **plan}))


def test_a_turn_is_told_as_it_happens(run: Callable[..., Ran], tmp_path: Path) -> None:
    path = tmp_path / "work" / "f.txt"
    ran = run(kind="edit", path=str(path))
    assert path.read_text() == "written\n"
    assert (ran.ending.ok, ran.ending.answer, ran.ending.session) == (True, "All done.", "s1")
    assert [happened.kind for happened in ran.told] == ["session", "tool", "message", "usage"]
    assert ran.ending.usage == Usage(
        input=1200,
        cached=1000,
        output=40,
        reasoning=16,
        requests=1,
        source="stream",
        complete=False,
    )


def test_a_change_outside_the_workspace_is_denied(run: Callable[..., Ran], tmp_path: Path) -> None:
    link = tmp_path / "work" / "link"
    link.symlink_to(tmp_path / "home")
    ran = run(kind="edit", path=str(link / "f.txt"))
    assert not (tmp_path / "home" / "f.txt").exists()
    assert (ran.ending.ok, ran.ending.reason, ran.ended.code) == (False, "denied", 0)
    assert ran.ending.denied == (f"Write {link / 'f.txt'}",)


def test_a_web_page_is_denied(run: Callable[..., Ran], tmp_path: Path) -> None:
    ran = run(kind="fetch", path=str(tmp_path / "work" / "page"))
    assert ran.ending.reason == "denied"


@pytest.mark.parametrize("stop", ["refusal", "max_tokens", "cancelled"])
def test_another_end_is_no_success(run: Callable[..., Ran], stop: str) -> None:
    ran = run(stop=stop)
    assert (ran.ending.ok, ran.ending.reason) == (False, "agent")
    assert stop in ran.ending.detail


def test_an_error_of_the_agent(run: Callable[..., Ran]) -> None:
    ran = run(fail=True)
    assert (ran.ending.ok, ran.ended.code, ran.ended.left) == (False, 1, 0)
    assert "Internal error 401" in ran.ending.detail


def test_an_agent_that_goes_away(tmp_path: Path) -> None:
    lab = Lab("acp", tmp_path)
    lab.command = ("true",)
    ran = lab.run("")
    assert (ran.ending.ok, ran.ended.code) == (False, 1)
    assert "initialize" in ran.ending.detail or "went away" in ran.ending.detail


@pytest.mark.real_client
@pytest.mark.xdist_group("clients")
def test_opencode_over_the_protocol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = installed("opencode", monkeypatch)
    lab = Lab("acp", tmp_path)
    settings = {
        "model": "o/fake-1",
        "permission": {"bash": "ask"},
        "provider": {
            "o": {
                "npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": "{url}/v1", "apiKey": "{key}"},
                "models": {"fake-1": {"name": "fake-1"}},
            }
        },
    }
    lab.command = ("env", f"OPENCODE_CONFIG_CONTENT={json.dumps(settings)}", program, "acp")
    with ModelServer(turns(Turn(shell=WRITE), Turn(text="I wrote it."))) as server:
        ran = lab.run(server.url)
    assert (ran.ending.ok, ran.ending.answer) == (True, "I wrote it."), ran.ended.out.text()
    assert (lab.work / "hello.txt").read_text() == "hello from the script\n"
    assert (ran.ending.usage.complete, ran.ended.left) == (False, 0)
