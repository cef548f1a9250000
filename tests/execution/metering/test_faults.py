"""What goes wrong on either side: the provider, the client, the limits of patience."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from outlay.execution.metering import proxy as proxies
from outlay.execution.metering import serving
from outlay.execution.metering.patience import Pace
from outlay.execution.metering.record import exchanges
from outlay.execution.metering.wire import MOST_HEAD
from tests.execution.metering.conftest import (
    KEY,
    PATHS,
    QUIET,
    SECRET,
    asking,
    metered,
    raw,
    send,
)
from tests.model_server import ModelServer, Turn, in_order, turns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from outlay.execution.metering.proxy import Proxy
    from tests.execution.metering.conftest import Got

PROTOCOLS = tuple(PATHS)
OK = Turn(text="all is well")


def ask(proxy: Proxy, protocol: str = "responses", *, stream: bool = True) -> Got:
    return send(proxy.port, PATHS[protocol], asking(protocol, stream=stream))


@contextmanager
def provider(*answers: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Answer each connection with bytes as they are; the last waits for the client's end."""
    heard: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        for number, answer in enumerate(answers, 1):
            connection, _ = listener.accept()
            with connection:
                heard.append(connection.recv(1 << 16))
                connection.sendall(answer)
                while number == len(answers) and connection.recv(1 << 16):
                    pass
        heard.append(b"the end")

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}", heard
    thread.join(5)
    listener.close()


class TestProvider:
    @pytest.mark.parametrize("fault", ["429", "500", "503", "529", "drop"])
    def test_a_short_failure_is_waited_out(self, fault: Any, tmp_path: Path) -> None:
        record = tmp_path / "exchanges.jsonl.gz"
        script = in_order(Turn(fault=fault), Turn(fault=fault, retry_after="0"), OK)
        with ModelServer(script) as server:
            with metered(server, patience=5.0, record=record) as proxy:
                got = ask(proxy)
                assert (got.status, got.whole) == (200, True)
                assert 0.02 < proxy.waited < 1
                assert (proxy.fault, proxy.usage.complete) == ("", True)
            assert proxy.usage._replace(source="") == server.told(KEY)
        (exchange,) = exchanges(record)
        code = 0 if fault == "drop" else int(fault)
        assert exchange.tries == (code, code, 200)

    @pytest.mark.parametrize("fault", ["429", "500", "503", "529"])
    def test_after_patience_the_last_answer_is_passed_on(self, fault: Any) -> None:
        even = Pace(first=0.02, most=0.02)  # so that the next request has no shorter pause
        with ModelServer(turns(Turn(fault=fault))) as server:
            with metered(server, patience=0.1, pace=even) as proxy:
                got = ask(proxy)
                tried = server.asked[KEY]
                assert tried > 2
                assert (got.status, got.headers["x-should-retry"]) == (int(fault), "false")
                assert proxy.fault == "provider"
                assert ask(proxy).status == int(fault)
                assert server.asked[KEY] == tried + 1  # one patience for the whole spell
            assert (proxy.usage.requests, proxy.usage.complete) == (0, True)

    def test_a_provider_that_is_gone(self) -> None:
        with ModelServer() as server:
            pass
        with metered(server, patience=0.05) as proxy:
            assert ask(proxy).status == 502
            assert (proxy.fault, proxy.usage.requests) == ("provider", 0)
            assert proxy.waited > 0

    def test_a_pause_longer_than_patience_is_not_begun(self) -> None:
        with (
            ModelServer(turns(Turn(fault="429", retry_after="30"))) as server,
            metered(server, patience=20.0, pace=QUIET) as proxy,
        ):
            assert ask(proxy).status == 429
            assert server.asked[KEY] == 1

    @pytest.mark.parametrize("fault", ["401", "403"])
    def test_a_refused_key_is_passed_on_at_once(self, fault: Any) -> None:
        with (
            ModelServer(turns(Turn(fault=fault))) as server,
            metered(server, patience=5.0) as proxy,
        ):
            got = ask(proxy)
            assert (got.status, proxy.fault) == (int(fault), "key")
            assert server.asked[KEY] == 1
            server.script = turns(OK)
            ask(proxy)
            assert proxy.fault == ""

    def test_a_spent_account_is_not_waited_for(self) -> None:
        body = b'{"error": {"code": "insufficient_quota"}}'
        head = b"HTTP/1.1 429 Too Many\r\ncontent-length: %d\r\n\r\n" % len(body)
        with provider(head + body) as (url, heard), metered(url, patience=5.0) as proxy:
            assert (ask(proxy).status, proxy.fault) == (429, "key")
            assert len(heard) == 1

    def test_a_fault_of_the_request_is_the_agents_own(self) -> None:
        with ModelServer(turns(Turn(fault="400"))) as server, metered(server) as proxy:
            got = ask(proxy, "messages")
            assert (got.status, proxy.fault, proxy.usage.requests) == (400, "", 0)
            assert "too long" in got.text

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    @pytest.mark.parametrize("fault", ["cut", "stall", "garbage"])
    @pytest.mark.parametrize("stream", [True, False])
    def test_an_answer_that_breaks_off(self, protocol: str, fault: Any, stream: bool) -> None:
        broken = Turn(text="a long answer that breaks off " * 4, fault=fault)
        with ModelServer(turns(broken)) as server, metered(server, patience=5.0) as proxy:
            got = ask(proxy, protocol, stream=stream)
            assert (got.status, got.whole) == ((200, False) if stream else (502, True))
            assert (proxy.fault, proxy.usage.complete) == ("cut", False)
            assert (proxy.usage.requests, server.asked[KEY]) == (1, 1)
            assert proxy.usage.input > 0
            assert proxy.usage.output > 0 or not stream
            server.script = turns(OK)
            assert ask(proxy, protocol, stream=stream).whole
            assert (proxy.fault, proxy.usage.complete) == ("", False)

    @pytest.mark.parametrize("stream", [True, False])
    def test_six_broken_answers_in_a_row_leave_no_hope(self, stream: bool) -> None:
        broken = Turn(text="a long answer that breaks off " * 4, fault="cut")
        script = in_order(broken, OK, *[broken] * 6, OK)
        hoped = []
        with ModelServer(script) as server, metered(server) as proxy:
            for number in range(9):
                ask(proxy, stream=stream)
                looks = 500 if number == 7 else 5  # the proxy ends a request after its answer
                hoped.append(not any(proxy.hopeless or time.sleep(0.01) for _ in range(looks)))
        assert hoped == [True] * 7 + [False, True]

    def test_silence_in_place_of_an_answer(self) -> None:
        with ModelServer(turns(Turn(fault="hang"))) as server, metered(server) as proxy:
            assert ask(proxy).status == 504
            assert (proxy.fault, proxy.usage.complete) == ("cut", False)
            assert proxy.usage.output == 0

    def test_a_connection_closed_while_nobody_used_it(self) -> None:
        answer = (
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
        )
        with provider(answer, answer, answer) as (url, heard), metered(url) as proxy:
            for _ in range(3):
                assert ask(proxy).status == 200
            assert len(heard) == 3

    @pytest.mark.parametrize(
        "answer",
        [
            b"nonsense\r\n\r\n",
            b"HTTP/1.1 2OO OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nno header\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: 5, 6\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nx: " + b"x" * (MOST_HEAD + 10),
        ],
    )
    def test_a_provider_that_speaks_no_http(self, answer: bytes) -> None:
        with provider(answer) as (url, _), metered(url) as proxy:
            assert (ask(proxy).status, proxy.fault) == (502, "provider")

    def test_the_key_in_an_answer_is_redacted(self, tmp_path: Path) -> None:
        record = tmp_path / "exchanges.jsonl.gz"
        body = f"wrong key {KEY}".encode()
        head = f"HTTP/1.1 401 No\r\nx-key: {KEY}\r\ncontent-length: {len(body)}\r\n\r\n".encode()
        with provider(head + body) as (url, _), metered(url, record=record) as proxy:
            got = ask(proxy)
        assert got.text == "wrong key [redacted]"
        assert got.headers["x-key"] == "[redacted]"
        assert [found.response for found in exchanges(record)] == [got.text]

    @pytest.mark.parametrize("stream", [True, False])
    def test_gzip_that_nobody_asked_for(self, stream: bool) -> None:
        import gzip

        plain = b'{"usage": {"input_tokens": 7, "output_tokens": 3}}'
        kind = b"application/json"
        if stream:
            plain = b'data: {"type": "response.completed", "response": %b}\n\n' % plain
            kind = b"text/event-stream"
        packed = gzip.compress(plain)
        head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-type: %b\r\n" % kind
        sized = head + b"content-length: %d\r\n\r\n" % len(packed) + packed
        with provider(sized) as (url, _), metered(url) as proxy:
            assert ask(proxy, stream=stream).text.encode() == plain
            assert proxy.usage[:5] == (7, 0, 0, 3, 0)


HALF = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    b'data: {"type": "response.output_text.delta", "delta": "forty bytes of text, more"}\n\n'
)


class TestClient:
    def test_hanging_up_in_the_middle_closes_the_provider(self) -> None:
        with provider(HALF) as (url, heard), metered(url, pace=QUIET) as proxy:
            with socket.create_connection(("127.0.0.1", proxy.port)) as client:
                client.sendall(request(asking("responses", stream=True)))
                seen = b""
                while b"forty" not in seen:
                    seen += client.recv(4096)
            until(lambda: heard[-1] == b"the end")
            until(lambda: proxy.usage.requests == 1)
            assert (proxy.usage.output, proxy.usage.complete) == (7, False)

    def test_hanging_up_before_the_answer_is_charged_for_the_question(self) -> None:
        with (
            ModelServer(turns(Turn(fault="hang"))) as server,
            metered(server, pace=QUIET) as proxy,
        ):
            body = asking("responses")
            with socket.create_connection(("127.0.0.1", proxy.port)) as client:
                client.sendall(request(body))
                until(lambda: server.asked[KEY] == 1)
            until(lambda: proxy.usage.requests == 1)
            assert proxy.usage.input == -(-len(body) // 4)
            assert not proxy.usage.complete

    def test_hanging_up_ends_the_waiting(self) -> None:
        with ModelServer(turns(Turn(fault="429"))) as server:
            with metered(server, patience=500.0, pace=Pace(first=100.0, most=100.0)) as proxy:
                with socket.create_connection(("127.0.0.1", proxy.port)) as client:
                    client.sendall(request(asking("responses")))
                    until(lambda: proxy.waited > 0.01)
                before = time.monotonic()
            assert time.monotonic() - before < 2
            assert proxy.waited < 10
            assert server.asked[KEY] == 1
            assert (proxy.usage.requests, proxy.usage.complete) == (0, True)

    def test_leaving_counts_what_is_in_flight(self) -> None:
        with provider(HALF) as (url, _):
            with metered(url, pace=QUIET) as proxy:
                client = socket.create_connection(("127.0.0.1", proxy.port))
                client.sendall(request(asking("responses", stream=True)))
                seen = b""
                while b"forty" not in seen:
                    seen += client.recv(4096)
            client.close()
        assert (proxy.usage.requests, proxy.usage.complete) == (1, False)

    @pytest.mark.parametrize(
        ("data", "status"),
        [
            (b"nonsense\r\n\r\n", b"400"),
            (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", b"400"),
            (b"CONNECT example.org:443 HTTP/1.1\r\n\r\n", b"405"),
            (b"GET http://example.org/ HTTP/1.1\r\n\r\n", b"401"),
            (b"GET / HTTP/1.1\r\nno header\r\n\r\n", b"400"),
            (b"GET / HTTP/1.1\r\nx : y\r\n\r\n", b"400"),
            (b"GET / HTTP/1.1\r\nx: \x00\r\n\r\n", b"400"),
            (b"GET / HTTP/1.1\r\nx: " + b"x" * (MOST_HEAD + 10) + b"\r\n\r\n", b"431"),
            (b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n", b"400"),
            (b"POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", b"400"),
            (b"POST / HTTP/1.1\r\ntransfer-encoding: gzip, chunked\r\n\r\n", b"400"),
            (
                b"POST / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
                b"400",
            ),
            (b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n", b"400"),
            (b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n", b"400"),
            (b"POST / HTTP/1.1\r\ncontent-length: 999999999\r\n\r\nx", b"413"),
        ],
    )
    def test_what_is_no_request(self, data: bytes, status: bytes) -> None:
        with ModelServer() as server, metered(server) as proxy:
            assert raw(proxy.port, data).split(b" ")[1] == status
            assert ask(proxy).status == 200

    def test_a_body_without_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(serving, "MOST_BODY", 1000)
        head = b"POST /v1/responses HTTP/1.1\r\nauthorization: " + SECRET.encode()
        data = head + b"\r\ntransfer-encoding: chunked\r\n\r\n" + b"64\r\n" + b"x" * 100
        with ModelServer() as server, metered(server) as proxy:
            assert b" 413 " in raw(proxy.port, data + (b"\r\n64\r\n" + b"x" * 100) * 20)

    def test_chunks_and_a_promise_to_go_on(self) -> None:
        body = asking("responses")
        head = f"POST /v1/responses HTTP/1.1\r\nauthorization: Bearer {SECRET}\r\n".encode()
        head += b"expect: 100-continue\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
        pieces = b"".join(b"5;x=y\r\n%b\r\n" % body[at : at + 5] for at in range(0, 100, 5))
        rest = body[100:]
        pieces += b"%x\r\n%b\r\n0\r\ntrailer: x\r\n\r\n" % (len(rest), rest)
        with ModelServer() as server, metered(server) as proxy:
            got = raw(proxy.port, head + pieces)
        assert got.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 ")
        assert server.seen[0].body == body

    def test_an_old_client_gets_no_chunks(self) -> None:
        data = request(asking("responses", stream=True)).replace(b"HTTP/1.1", b"HTTP/1.0")
        with ModelServer() as server, metered(server) as proxy:
            head, _, body = raw(proxy.port, data).partition(b"\r\n\r\n")
        assert b"chunked" not in head
        assert body.startswith(b"event: response.created\n")

    def test_one_that_never_finishes_its_head(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(serving, "_HEAD", 0.1)
        with ModelServer() as server, metered(server) as proxy:
            begun = time.monotonic()
            assert raw(proxy.port, b"GET / HTTP/1.1\r\nx: ") == b""
            assert time.monotonic() - begun < 3
            assert ask(proxy).status == 200

    def test_too_many_connections(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(proxies, "MOST_CONNECTIONS", 2)
        with ModelServer() as server, metered(server) as proxy:
            held = [socket.create_connection(("127.0.0.1", proxy.port)) for _ in range(2)]
            assert b" 503 " in raw(proxy.port, b"")
            for client in held:
                client.close()
            until(lambda: served(proxy))

    def test_it_listens_on_the_loopback_only(self) -> None:
        with ModelServer() as server, metered(server) as proxy:
            address = socket.gethostbyname(socket.gethostname())
            if address.startswith("127."):
                pytest.skip("this machine has no other address")
            with pytest.raises(OSError, match="refused"):
                socket.create_connection((address, proxy.port), timeout=2)


def request(body: bytes) -> bytes:
    head = f"POST /v1/responses HTTP/1.1\r\nauthorization: Bearer {SECRET}\r\n"
    return (head + f"content-length: {len(body)}\r\n\r\n").encode() + body


def served(proxy: Proxy) -> bool:
    try:
        return ask(proxy).status == 200
    except OSError:  # turned away before it had said all
        return False


def until(holds: Any) -> None:
    deadline = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
