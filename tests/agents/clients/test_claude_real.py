"""The real Claude Code against the scripted model."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.agents.clients.real import REAL, WRITE, WROTE, Lab, for_long, installed, works
from tests.model_server import ModelServer, Turn, in_order, turns

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = REAL


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    installed("claude", monkeypatch)
    return Lab("claude", tmp_path)


def test_it_works_and_tells_what_the_server_counted(lab: Lab) -> None:
    usage, told, paths = works(lab, ["session", "tool", "message", "usage"])
    assert "/v1/messages" in paths <= {"/", "/v1/messages"}
    assert usage == told._replace(source="stream", usd=usage.usd)
    recovered = lab.client.recover(str(lab.home))
    assert recovered == told._replace(source="session", complete=False)


def test_a_resumed_session_tells_this_run_only(lab: Lab) -> None:
    with ModelServer(WROTE) as server:
        first = lab.run(server.url)
        before = lab.client.recover(str(lab.home), first.ending.session)
        second = lab.run(server.url, session=first.ending.session, before=before)
        after = lab.client.recover(str(lab.home), first.ending.session)
    assert (first.ending.usage.input, first.ending.usage.output) == (2500, 52)
    assert (second.ending.usage.input, second.ending.usage.output) == (1300, 12)
    assert after.minus(before).input == 1300
    assert second.ending.session == first.ending.session


def test_an_answer_of_a_given_form(lab: Lab) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    with ModelServer(turns(Turn(answer={"n": 3}))) as server:
        ran = lab.run(server.url, schema=json.dumps(schema))
    assert ran.ending.ok
    assert json.loads(ran.ending.answer) == {"n": 3}


def test_a_cut_stream_is_asked_for_again(lab: Lab) -> None:
    script = in_order(Turn(shell=WRITE), Turn(text="x" * 200, fault="cut"), Turn(text="whole"))
    with ModelServer(script) as server:
        ran = lab.run(server.url)
        told = server.told("k1")
    assert (ran.ending.ok, ran.ending.answer) == (True, "whole")
    # Of the answer that broke off it may have taken in the beginning, which tells the input.
    assert ran.ending.usage.input - told.input in (0, 1300)


def test_an_overloaded_provider(lab: Lab) -> None:
    with ModelServer(turns(Turn(fault="529"))) as server:
        ran = lab.run(server.url)
    assert (ran.ending.ok, ran.ending.reason) == (False, "provider")
    assert any("tried again" in happened.text for happened in ran.told)


def test_a_server_that_is_gone(lab: Lab) -> None:
    with ModelServer() as server:
        gone = server.url
    ran = lab.run(gone, seconds=40)
    assert (ran.ended.stop, ran.ending.ok, ran.ending.reason) == ("", False, "provider")


def test_a_stream_that_stalls_must_be_ended(lab: Lab) -> None:
    with ModelServer(turns(Turn(shell=WRITE), Turn(text="x" * 200, fault="stall"))) as server:
        ran = lab.run(server.url, until=for_long(lambda: server.told("k1").requests))
    assert (ran.ended.stop, ran.ended.left, ran.ending.ok) == ("ended", 0, False)
    assert ran.ending.usage.complete is False
    recovered = lab.client.recover(str(lab.home))
    assert (recovered.input, recovered.output) == (1200, 40)


def test_a_denied_tool_is_no_success_though_its_exit_code_says_so(lab: Lab) -> None:
    python = "python3 -c \"open('hello.txt', 'w')\""
    with ModelServer(turns(Turn(shell=python), Turn(text="I wrote it."))) as server:
        invocation = lab.client.invoke(lab.request(server.url))
        # As a user would have it who lets edits pass and nothing else.
        command = [a for a in invocation.command if a != "--dangerously-skip-permissions"]
        command[2:2] = ["--permission-mode", "acceptEdits"]
        ran = lab.start(invocation._replace(command=tuple(command)), 60)
    assert (ran.ended.code, ran.ending.ok, ran.ending.reason) == (0, False, "denied")
    assert python in ran.ending.denied[0]
    assert not (lab.work / "hello.txt").exists()


def test_its_own_sandbox_keeps_it_in_the_workspace(lab: Lab) -> None:
    lab.held = "unshare"
    if not all(map(shutil.which, ("bwrap", "socat"))):
        with pytest.raises(ValueError, match="claude: found no"):
            lab.client.invoke(lab.request("http://127.0.0.1:9", confined=False))
        return
    outside = f"{lab.home}/escaped.txt"
    script = turns(Turn(shell=f"{WRITE}; echo no > {outside}"), Turn(text="I wrote it."))
    with ModelServer(script) as server:
        ran = lab.run(server.url, confined=False)
    assert ran.ended.code == 0
    assert not (lab.home / "escaped.txt").exists()
