"""A scripted model on loopback that speaks the protocols of OpenAI and Anthropic.

In a test:

    with ModelServer(turns(Turn(shell="echo 1 > f"), Turn(text="done"))) as server:
        ...  # a client of `server.url` with any key
        assert proxy.usage._replace(source="") == server.told("any key")

As a program, for clients that live elsewhere (its first line is the address; a GET of `/told`
answers with the usage told to each key, as JSON):

    python -m tests.model_server --port 8971 --script tests.agents.scripts:improve

A script is a function from what was asked (`Asked`) to a `Turn`, so that an answer can depend on
the prompt, on the tools that ran already, and on how often this key has asked. It is called under
a lock and may keep a state of its own.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import itertools
import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

from outlay.agents.clients.contract import Usage
from tests.model_protocols import WRITERS, Asked, Event, Said, Turn, fit, read, told

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST_WAIT = 600.0


class Seen(NamedTuple):
    """One HTTP request as it arrived; header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


def turns(*script: Turn) -> Callable[[Asked], Turn]:
    """Answer with the turn of as many tool results as the conversation holds; the last repeats.

    Knows nothing of other conversations, so it serves many clients; a fault stays for ever.
    """
    return lambda asked: script[min(len(asked.results), len(script) - 1)]


def in_order(*script: Turn) -> Callable[[Asked], Turn]:
    """Answer the requests of each key with one turn after the other; the last repeats."""
    return lambda asked: script[min(asked.number, len(script) - 1)]


class ModelServer:
    """The server, in a thread of its own while it is entered.

    Args:
        script: Answers; by default one text.
        keys: Keys that are let in; others get 401. `None` lets all in.
        port: Port on loopback; 0 picks a free one.
        chunk: Characters of text in each piece of a stream.

    Attributes:
        url: Its address, without `/v1`.
        seen: Every request in order of arrival.
    """

    def __init__(
        self,
        script: Callable[[Asked], Turn] = turns(Turn(text="done")),  # noqa: B008
        *,
        keys: tuple[str, ...] | None = None,
        port: int = 0,
        chunk: int = 12,
    ) -> None:
        self.script = script
        self.keys = keys
        self.chunk = chunk
        self.seen: list[Seen] = []
        self.lock = threading.Lock()
        self.stopped = threading.Event()
        self.numbers = itertools.count(1)
        self.asked: Counter[str] = Counter()
        self._told: dict[str, Usage] = {}
        self._http = _Listener(("127.0.0.1", port), _Handler)
        self._http.model = self
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> ModelServer:
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self._http.shutdown()
        self._http.server_close()

    def told(self, key: str) -> Usage:
        """Return the sum of the usage that was sent to a key; no source."""
        with self.lock:
            return self._told.get(key, Usage())

    def told_all(self) -> dict[str, dict[str, Any]]:
        """Return the sum for every key, as fields."""
        with self.lock:
            return {key: usage._asdict() for key, usage in self._told.items()}

    def note(self, key: str, usage: Usage) -> None:
        """Count usage that is about to be sent."""
        with self.lock:
            self._told[key] = self._told.get(key, Usage()).plus(usage._replace(requests=1))


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    model: ModelServer

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients hang up when they like."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listener

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._see(b"")
        self._json(200, {})

    def do_GET(self) -> None:
        self._see(b"")
        if self.path == "/told":
            self._json(200, self.server.model.told_all())
        elif self.server.model.keys is not None and self._key() not in self.server.model.keys:
            self._fail("401")
        elif self.path.split("?")[0].endswith("/models"):
            self._json(200, {"object": "list", "data": [{"id": "fake-1", "object": "model"}]})
        else:
            self._fail("400")

    def do_POST(self) -> None:
        model = self.server.model
        raw = self._read_body()
        self._see(raw)
        path, key = self.path.split("?")[0], self._key()
        protocols = {"/responses": "responses", "/messages": "messages"}
        protocols["/chat/completions"] = "chat"
        protocol: Any = next((p for end, p in protocols.items() if path.endswith(end)), None)
        if model.keys is not None and key not in model.keys:
            return self._fail("401")
        if path.endswith("/count_tokens"):
            return self._json(200, {"input_tokens": 1200})
        try:
            body = json.loads(gzip.decompress(raw) if self._is_gzip() else raw)
            with model.lock:
                asked = read(protocol, key, model.asked[key], body)
                model.asked[key] += 1
                turn = model.script(asked)
        except (ValueError, KeyError, AttributeError, OSError):
            return self._fail("400")
        return self._answer(asked, turn)

    def _answer(self, asked: Asked, turn: Turn) -> None:
        model = self.server.model
        model.stopped.wait(turn.wait)
        if turn.fault.isdigit():
            return self._fail(turn.fault, turn.retry_after)
        if turn.fault in ("drop", "hang"):
            model.stopped.wait(_LONGEST_WAIT if turn.fault == "hang" else 0)
            self.close_connection = True
            return None
        said = fit(turn, asked)
        pieces = WRITERS[asked.protocol](asked, said, next(model.numbers), model.chunk)
        if not asked.body.get("stream"):
            return self._whole(asked, turn, said, pieces.whole)
        return self._stream(asked, turn, said, pieces.events)

    def _whole(self, asked: Asked, turn: Turn, said: Said, whole: dict[str, Any]) -> None:
        if not turn.fault:
            self.server.model.note(asked.key, told(asked, said))
            return self._json(200, whole)
        text = json.dumps(whole).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text[: len(text) // 2])
        self._break(turn.fault)
        return None

    def _stream(self, asked: Asked, turn: Turn, said: Said, events: list[Event]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        half = len(events) // 2 if turn.fault else len(events)
        for event in events[:half]:
            if event.tells:
                self.server.model.note(asked.key, told(asked, said))
            self._chunk(event.encoded())
        if turn.fault == "garbage":
            self._chunk(b'event: odd\ndata: {"type": "resp\n\n:\n\ndata\nnonsense\n\n')
        if turn.fault:
            return self._break(turn.fault)
        self.wfile.write(b"0\r\n\r\n")
        return None

    def _break(self, fault: str) -> None:
        self.server.model.stopped.wait(_LONGEST_WAIT if fault == "stall" else 0)
        self.close_connection = True

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _read_body(self) -> bytes:
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _is_gzip(self) -> bool:
        return self.headers.get("content-encoding", "") == "gzip"

    def _key(self) -> str:
        bearer = self.headers.get("authorization", "").removeprefix("Bearer ")
        return bearer or self.headers.get("x-api-key", "")

    def _see(self, body: bytes) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        with self.server.model.lock:
            self.server.model.seen.append(Seen(self.command, self.path, headers, body))

    def _fail(self, status: str, retry_after: str = "") -> None:
        kind, message = _ERRORS[status]
        error = {"type": "error", "error": {"type": kind, "message": message, "code": kind}}
        self._json(int(status), error, {"retry-after": retry_after} if retry_after else {})

    def _json(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)


_ERRORS = {
    "400": ("invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum"),
    "401": ("authentication_error", "Incorrect API key provided"),
    "403": ("permission_error", "This key may not use this model"),
    "429": ("rate_limit_error", "Rate limit reached"),
    "500": ("api_error", "The server had an error"),
    "503": ("api_error", "Service unavailable"),
    "529": ("overloaded_error", "Overloaded"),
}


def main() -> None:
    """Serve until it is ended."""
    parser = argparse.ArgumentParser(description="A scripted model on loopback.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", help="module:name of a function from Asked to Turn")
    parser.add_argument("--fault", default="", help="the same fault for every request")
    parser.add_argument("--key", action="append", help="let only these keys in")
    given = parser.parse_args()
    script: Callable[[Asked], Turn] = turns(Turn(text="done", fault=given.fault))
    if given.script:
        module, _, name = given.script.partition(":")
        script = getattr(importlib.import_module(module), name)
    keys = tuple(given.key) if given.key else None
    with ModelServer(script, keys=keys, port=given.port) as server:
        print(server.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
