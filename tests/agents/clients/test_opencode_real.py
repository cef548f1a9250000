"""The real OpenCode against the scripted model."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from tests.agents.clients.real import REAL, WRITE, WROTE, Lab, for_long, installed, works
from tests.model_server import ModelServer, Turn, turns

if TYPE_CHECKING:
    from pathlib import Path

    from tests.model_protocols import Asked

pytestmark = REAL


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    installed("opencode", monkeypatch)
    return Lab("opencode", tmp_path)


def test_it_works_and_tells_what_the_server_counted(lab: Lab) -> None:
    kinds = ["session", "tool", "usage", "message", "usage"]
    usage, told, paths = works(lab, kinds)
    assert paths == {"/v1/chat/completions"}
    assert usage == told._replace(source="stream")


def test_a_resumed_session_tells_this_run_only(lab: Lab) -> None:
    with ModelServer(WROTE) as server:
        first = lab.run(server.url)
        second = lab.run(server.url, session=first.ending.session)
    assert (second.ending.usage.input, second.ending.usage.output) == (1300, 12)
    assert second.ending.session == first.ending.session


def test_its_prompt_arrives_as_it_is_with_a_form_in_words(lab: Lab) -> None:
    prompt = "--help  say \"b\" 'c'   1e3 0x10 1.10\n -x é \\n $HOME "
    schema = '{"type": "object", "required": ["n"]}'
    prompts = []

    def answer(asked: Asked) -> Turn:
        prompts.append(asked.prompt)
        return Turn(text='{"n": 3}')

    with ModelServer(answer) as server:
        ran = lab.run(server.url, prompt=prompt, schema=schema)
    assert json.loads(ran.ending.answer) == {"n": 3}
    assert prompt in prompts[0]
    assert schema in prompts[0]


class _EndsEarly(BaseHTTPRequestHandler):
    """A stream that ends in its middle, without an error of the connection."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        piece = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "fake-1"}
        choice = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
        self.wfile.write(f"data: {json.dumps(piece | {'choices': [choice]})}\n\n".encode())


def test_a_cut_stream_goes_round_for_ever_and_is_ended(lab: Lab) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _EndsEarly) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ran = lab.run(f"http://127.0.0.1:{server.server_address[1]}")
        server.shutdown()
    assert ran.ended.stop == "ended"  # by us, since its reader says that it is hopeless
    assert (ran.ending.ok, ran.ending.reason, ran.ended.left) == (False, "provider", 0)
    assert ran.ending.usage.complete is False
    assert [happened.kind for happened in ran.told][:4] == ["session", "error", "error", "error"]


def test_a_server_that_is_gone_must_be_ended(lab: Lab) -> None:
    with ModelServer() as server:
        gone = server.url
    ran = lab.run(gone, seconds=12)
    assert (ran.ended.stop, ran.ended.left, ran.ending.ok) == ("timeout", 0, False)


def test_a_server_that_never_answers_must_be_ended(lab: Lab) -> None:
    with ModelServer(turns(Turn(fault="hang"))) as server:
        ran = lab.run(server.url, until=for_long(lambda: server.seen))
    assert (ran.ended.stop, ran.ended.left, ran.ending.ok) == ("ended", 0, False)


def test_a_denied_tool_is_no_success_though_its_exit_code_says_so(lab: Lab) -> None:
    with ModelServer(WROTE) as server:
        invocation = lab.client.invoke(lab.request(server.url))
        # As a user would have it who wants to be asked.
        settings = json.loads(invocation.environment["OPENCODE_CONFIG_CONTENT"])
        settings["permission"] = {"bash": "ask"}
        environment = invocation.environment | {"OPENCODE_CONFIG_CONTENT": json.dumps(settings)}
        command = tuple(a for a in invocation.command if a != "--auto")
        ran = lab.start(invocation._replace(command=command, environment=environment), 60)
    assert (ran.ended.code, ran.ending.ok, ran.ending.reason) == (0, False, "denied")
    assert WRITE.split("\\")[0] in ran.ending.denied[0]
    assert not (lab.work / "hello.txt").exists()


def test_it_is_refused_without_a_sandbox_of_ours(lab: Lab) -> None:
    with pytest.raises(ValueError, match="none of its own"):
        lab.client.invoke(lab.request("http://127.0.0.1:9", confined=False))
