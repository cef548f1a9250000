from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay.agents.ask import KEY as VARIABLE
from outlay.agents.ask import MISSING
from outlay.agents.clients.contract import Request, Usage
from outlay.agents.clients.model import Model, named
from outlay.agents.reflections.answers import parse
from outlay.agents.reflections.asking import Ask
from outlay.agents.reflections.shape import schema
from tests.agents.models import SECRET, ask_model
from tests.agents.reflections.samples import ROOT
from tests.agents.reflections.test_answers import answer, told
from tests.execution.metering.conftest import KEY, metered
from tests.model_protocols import Asked, Turn
from tests.model_server import ModelServer, in_order, turns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ASK = Ask(plan=ROOT, asked=3, first=1)
GOOD = answer(told())


@pytest.mark.parametrize("model", ["fake-1", "anthropic:claude-sonnet-4-5"])
def test_an_answer_in_the_asked_form_with_its_usage(tmp_path: Path, model: str) -> None:
    with ModelServer(turns(Turn(text=GOOD))) as server:
        ended = ask_model(tmp_path, server.url, model=model, form=schema(ASK))
        assert (ended.ok, ended.reason, ended.detail) == (True, "", "")
        assert len(parse(ended.answer, ASK).children) == 1
        assert ended.usage == server.told(SECRET)._replace(source="stream")
        body = json.loads(server.seen[-1].body)
    if model == "fake-1":
        assert body["response_format"]["json_schema"]["schema"] == json.loads(schema(ASK))
        assert body["response_format"]["json_schema"]["strict"] is True
    else:
        assert body["output_config"]["format"]["type"] == "json_schema"


def test_a_server_without_schemas_is_told_the_form_in_words(tmp_path: Path) -> None:
    def script(asked: Asked) -> Turn:
        form = asked.body.get("response_format", {}).get("type")
        return Turn(fault="400") if form == "json_schema" else Turn(text=f"```json\n{GOOD}\n```")

    with ModelServer(script) as server:
        ended = ask_model(tmp_path, server.url, form=schema(ASK))
        assert ended.ok
        assert len(parse(ended.answer, ASK).children) == 1
        assert "maxLength" in server.seen[-1].body.decode()
        assert len(server.seen) == 2
        assert ended.usage.requests == 1


def test_through_the_proxy_it_is_counted_exactly_and_stops_at_the_limit(tmp_path: Path) -> None:
    with (
        ModelServer(turns(Turn(text=GOOD)), keys=(KEY,)) as server,
        metered(server, secret=SECRET, tokens=100) as proxy,
    ):
        url = f"http://127.0.0.1:{proxy.port}"
        first = ask_model(tmp_path, url, form=schema(ASK))
        assert first.ok
        assert proxy.usage._replace(source="stream") == first.usage
        second = ask_model(tmp_path, url, form=schema(ASK))
        assert (second.ok, second.reason) == (False, "budget")
        assert "the budget of this attempt is spent" in second.detail
        assert len(server.seen) == 1


def test_free_text_needs_no_schema(tmp_path: Path) -> None:
    with ModelServer(turns(Turn(text="Hello."))) as server:
        assert ask_model(tmp_path, server.url).answer == "Hello."
        assert "response_format" not in json.loads(server.seen[-1].body)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("401", "key"), ("403", "key"), ("400", "agent"), ("529", "provider"), ("cut", "provider")],
)
def test_failures_are_told_apart(tmp_path: Path, fault: str, reason: str) -> None:
    with ModelServer(in_order(Turn(fault=fault))) as server:
        ended = ask_model(tmp_path, server.url, form=schema(ASK))
    assert (ended.ok, ended.reason, ended.answer) == (False, reason, "")
    assert ended.detail
    assert not ended.usage.complete


def test_a_server_that_is_gone_is_the_providers_fault(tmp_path: Path) -> None:
    with ModelServer() as server:
        url = server.url
    ended = ask_model(tmp_path, url, form=schema(ASK))
    assert (ended.ok, ended.reason) == (False, "provider")


def test_without_the_library_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "request.json").write_text("{}")
    program = (
        "import sys; sys.modules['pydantic_ai'] = None; sys.argv = ['ask', sys.argv[1]]\n"
        "from outlay.agents.ask import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program, str(tmp_path / "request.json")],
        capture_output=True,
        text=True,
    )
    reader = Model().reader()
    assert reader.line(done.stdout.strip())[0].kind == "error"
    ended = reader.ending(done.returncode, "")
    assert (ended.ok, ended.reason, ended.detail) == (False, "agent", MISSING)
    assert "outlay[models]" in MISSING


def whole(content: object, **more: object) -> bytes:
    """Return a completion of OpenAI's chat protocol."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant"}}
    choice["message"]["content"] = content  # type: ignore[index]
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    told = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
    return json.dumps({**told, "choices": [choice], **more}).encode()


@pytest.mark.parametrize(
    ("model", "body", "words"),
    [
        ("m", b"<html>", "Failed to decode response as JSON"),
        ("m", whole("x", choices=[]), "what the server sent is no answer of a model: "),
        ("m", whole("x", usage={"prompt_tokens": "a"}), "usage"),
        ("m", whole("x" * 10_000_000), "the answer has 10,000,002 bytes, allowed: 1,000,000"),
        ("anthropic:m", b"null", "what the server sent is no answer of a model: "),
        (
            "anthropic:m",
            b'{"content": [{"type": "text", "text": 5}]}',
            "what the server sent is no",
        ),
    ],
)
def test_whatever_a_server_sends_is_told_apart_from_an_answer(
    tmp_path: Path, model: str, body: bytes, words: str
) -> None:
    with sending(body) as url:
        ended = ask_model(tmp_path, url, model=model, form=schema(ASK))
    assert (ended.ok, ended.answer) == (False, "")
    assert words in ended.detail


@contextmanager
def sending(body: bytes) -> Iterator[str]:
    """Yield the address of a server that sends this to whoever asks."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_a_cut_answer_is_no_answer() -> None:
    reader = Model().reader()
    reader.line(json.dumps({"type": "usage", "input": 3, "output": 2, "reasoning": "x"}))
    reader.line(json.dumps({"type": "answer", "text": '{"ch', "finish": "length"}))
    ended = reader.ending(0, "")
    assert (ended.ok, ended.reason) == (False, "agent")
    assert ended.detail == "the answer did not end by itself: length"
    assert ended.usage == Usage(input=3, output=2, requests=1, source="stream")


def test_a_child_that_died_says_so() -> None:
    ended = Model().reader().ending(-9, "")
    assert (ended.ok, ended.reason) == (False, "agent")
    assert ended.detail == "it ended with -9 before it answered"
    assert ended.usage == Usage(source="stream", complete=False)


@given(
    st.lists(
        st.text(max_size=60)
        | st.sampled_from(
            [
                '{"type": "usage", "input": -1}',
                '{"type": "answer", "text": "\\ud800"}',
                "[" * 99_999,
                '{"type": "failure", "reason": 3, "text": 4}',
                '{"type": []}',
                "1" * 9_999,
            ]
        )
    ),
    st.integers(),
)
def test_no_output_makes_the_reader_raise(lines: list[str], code: int) -> None:
    reader = Model().reader()
    for line in lines:
        reader.line(line)
    ended = reader.ending(code, "errors")
    assert ended.answer.encode() is not None
    assert ended.ok == (not ended.reason)


@pytest.mark.parametrize(
    ("text", "api", "model"),
    [
        ("gpt-5", "openai", "gpt-5"),
        ("openai:gpt-5", "openai", "gpt-5"),
        ("anthropic:claude-x", "anthropic", "claude-x"),
        ("anthropic/claude-x", "openai", "anthropic/claude-x"),
        ("qwen2.5:0.5b", "openai", "qwen2.5:0.5b"),
    ],
)
def test_the_name_of_a_model_says_its_protocol(text: str, api: str, model: str) -> None:
    assert named(text) == (api, model)


def test_what_it_cannot_do_is_said_before_it_starts(tmp_path: Path) -> None:
    request = Request(prompt="p", folder=str(tmp_path), home=str(tmp_path))
    with pytest.raises(ValueError, match="model: found no name"):
        Model().invoke(request)
    with pytest.raises(ValueError, match="found a session"):
        Model().invoke(request._replace(model="m", session="s"))
    made = Model().invoke(request._replace(model="m", command=("own",)))
    assert made.command == ("own", f"{tmp_path}/request.json")
    assert VARIABLE not in made.environment


def test_the_adapter_loads_the_standard_library_only() -> None:
    program = (
        "import sys; import outlay.agents.clients.model; "
        "print([m for m in sys.modules if m.split('.')[0] in "
        "('msgspec', 'numpy', 'pydantic', 'pydantic_ai', 'click', 'httpx2', 'openai')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n"
