"""The real Codex against the scripted model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.agents.clients.real import REAL, WRITE, WROTE, Lab, for_long, installed, works
from tests.model_server import ModelServer, Turn, turns

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = REAL


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    installed("codex", monkeypatch)
    return Lab("codex", tmp_path)


def test_it_works_and_tells_what_the_server_counted(lab: Lab) -> None:
    usage, told, paths = works(lab, ["session", "tool", "message", "usage"])
    assert paths == {"/v1/responses"}
    assert usage == told._replace(source="stream", requests=0)
    assert lab.client.recover(str(lab.home)) == told._replace(source="session", complete=False)


def test_a_resumed_session_tells_the_sum_and_we_do_not(lab: Lab) -> None:
    with ModelServer(WROTE) as server:
        first = lab.run(server.url)
        before = lab.client.recover(str(lab.home), first.ending.session)
        whole = lab.run(server.url, session=first.ending.session)
        after = lab.client.recover(str(lab.home), first.ending.session)
        third = lab.run(server.url, session=first.ending.session, before=after)
    assert (before.input, before.output) == (2500, 52)
    assert (whole.ending.usage.input, whole.ending.usage.output) == (3800, 64)
    assert (third.ending.usage.input, third.ending.usage.output) == (1300, 12)
    assert third.ending.session == first.ending.session


def test_an_answer_of_a_given_form(lab: Lab) -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    with ModelServer(turns(Turn(answer={"n": 3}))) as server:
        ran = lab.run(server.url, schema=json.dumps(schema))
    assert json.loads(ran.ending.answer) == {"n": 3}
    assert "schema" in json.loads(server.seen[0].body)["text"]["format"]


def test_a_cut_stream(lab: Lab) -> None:
    with ModelServer(turns(Turn(shell=WRITE), Turn(text="cut", fault="cut"))) as server:
        ran = lab.run(server.url)
        told = server.told("k1")
    assert (ran.ending.ok, ran.ending.reason) == (False, "provider")
    assert (ran.ending.usage.input, ran.ending.usage.complete) == (0, False)
    recovered = lab.client.recover(str(lab.home))
    assert (recovered.input, recovered.output, recovered.requests) == (told.input, told.output, 1)


def test_an_overloaded_provider(lab: Lab) -> None:
    with ModelServer(turns(Turn(fault="429"))) as server:
        ran = lab.run(server.url)
    assert (ran.ending.ok, ran.ending.reason) == (False, "provider")


def test_a_server_that_is_gone_is_no_endless_wait(lab: Lab) -> None:
    with ModelServer() as server:
        gone = server.url
    ran = lab.run(gone, seconds=40)
    assert (ran.ended.stop, ran.ending.reason) == ("", "provider")


def test_a_server_that_never_answers_must_be_ended(lab: Lab) -> None:
    with ModelServer(turns(Turn(fault="hang"))) as server:
        ran = lab.run(server.url, until=for_long(lambda: server.seen))
    assert (ran.ended.stop, ran.ended.left, ran.ending.ok) == ("ended", 0, False)


def test_its_own_sandbox_keeps_it_in_the_workspace(lab: Lab) -> None:
    lab.held = "unshare"
    outside = f"{lab.home}/escaped.txt"
    script = turns(Turn(shell=f"{WRITE}; echo no > {outside}"), Turn(text="I wrote it."))
    with ModelServer(script) as server:
        ran = lab.run(server.url, confined=False)
    assert ran.ended.code == 0
    assert (lab.work / "hello.txt").exists()
    assert not (lab.home / "escaped.txt").exists()
