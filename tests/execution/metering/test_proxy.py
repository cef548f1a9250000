"""The proxy before a scripted model: what passes, what is counted, what is refused."""

from __future__ import annotations

import gzip
import http.client
import json
import re
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from outlay.agents.clients.contract import Usage
from outlay.budget import Charge
from outlay.execution.metering.bridge import bridged
from outlay.execution.metering.record import exchanges
from outlay.tokens import Prices
from tests.execution.metering.conftest import KEY, PATHS, QUIET, SECRET, asking, metered, send
from tests.model_server import ModelServer, Turn, in_order, turns

if TYPE_CHECKING:
    from pathlib import Path

PROTOCOLS = tuple(PATHS)
USED = Usage(input=1234, cached=1000, cache_write=17, output=56, reasoning=7)


def same(text: str) -> str:
    """Return a text without what differs between two answers to the same question."""
    return re.sub(r'"(id|created|created_at|item_id)": ("[^"]*"|[0-9]+)', "", text)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("turn", [Turn(text="all is well with it"), Turn(shell="echo 1")])
def test_usage_is_what_the_server_told(protocol: str, stream: bool, turn: Turn) -> None:
    with ModelServer(turns(turn._replace(usage=USED)), keys=(KEY,)) as server:
        with metered(server) as proxy:
            for _ in range(2):
                got = send(proxy.port, PATHS[protocol], asking(protocol, stream=stream))
                assert got.status == 200
            assert proxy.usage == USED.plus(USED)._replace(requests=2, source="proxy")
        assert proxy.usage._replace(source="") == server.told(KEY)
        assert proxy.fault == ""


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("stream", [False, True])
def test_the_client_sees_what_the_provider_said(protocol: str, stream: bool) -> None:
    body = asking(protocol, stream=stream, stream_options={"include_usage": True})
    with ModelServer(turns(Turn(text="a long answer in several pieces"))) as server:
        direct = send(int(server.url.rpartition(":")[2]), PATHS[protocol], body)
        with metered(server) as proxy:
            got = send(proxy.port, PATHS[protocol], body)
        assert same(got.text) == same(direct.text)
        assert got.headers["content-type"] == direct.headers["content-type"]
        assert server.seen[-1].body == body


def test_a_chat_that_did_not_ask_for_usage_sees_none() -> None:
    with ModelServer(turns(Turn(text="an answer", usage=USED))) as server:
        body = asking("chat", stream=True)
        direct = send(int(server.url.rpartition(":")[2]), PATHS["chat"], body)
        with metered(server) as proxy:
            got = send(proxy.port, PATHS["chat"], body)
            assert proxy.usage == USED._replace(requests=1, source="proxy")
    assert same(got.text) == same(direct.text)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_key_takes_the_place_of_the_secret(protocol: str) -> None:
    with ModelServer() as server, metered(server) as proxy:
        send(proxy.port, PATHS[protocol], asking(protocol))
    headers = server.seen[0].headers
    door = "x-api-key" if protocol == "messages" else "authorization"
    assert headers[door].removeprefix("Bearer ") == KEY
    assert SECRET not in str(headers)
    assert headers["accept-encoding"] == "identity"


def test_without_a_provider_key_none_is_sent() -> None:
    from outlay.execution.metering.provider import Upstream
    from outlay.execution.metering.proxy import Proxy

    with (
        ModelServer() as server,
        Proxy(Upstream(server.url, ""), secret=SECRET, told=print, patience=0) as proxy,
    ):
        assert send(proxy.port, PATHS["chat"], asking("chat")).status == 200
    assert "authorization" not in server.seen[0].headers


def test_another_key_is_not_passed_on() -> None:
    with ModelServer() as server, metered(server) as proxy:
        got = send(proxy.port, PATHS["responses"], asking("responses"), key="sk-mine")
        assert got.status == 401
        assert proxy.fault == ""
        assert send(proxy.port, "/", None, method="HEAD", key="none").status == 200
    assert server.seen == []


def test_what_costs_nothing_passes_uncounted() -> None:
    with ModelServer() as server, metered(server, tokens=0.0) as proxy:
        assert "fake-1" in send(proxy.port, "/v1/models", None, method="GET").text
        counted = send(proxy.port, "/v1/messages/count_tokens", asking("messages"))
        assert json.loads(counted.text) == {"input_tokens": 1200}
        assert proxy.usage.requests == 0
        assert send(proxy.port, "/v1/embeddings", b"{}").status == 404
    assert [seen.path for seen in server.seen] == ["/v1/models", "/v1/messages/count_tokens"]


def test_packed_requests_arrive_unpacked() -> None:
    with ModelServer() as server, metered(server) as proxy:
        body = asking("responses")
        got = send(proxy.port, PATHS["responses"], gzip.compress(body), content_encoding="gzip")
        assert got.status == 200
    assert server.seen[0].body == body


def test_a_stream_arrives_as_it_comes() -> None:
    with ModelServer(turns(Turn(text="x" * 60, fault="stall"))) as server:
        with metered(server, pace=QUIET) as proxy:
            client = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=5)
            headers = {"authorization": f"Bearer {SECRET}"}
            body = asking("responses", stream=True)
            client.request("POST", PATHS["responses"], body, headers)
            answer = client.getresponse()
            seen = b""
            while b"delta" not in seen:  # while the server is silent
                seen += answer.read1(100)
            client.close()
        assert proxy.usage.output > 0
        assert not proxy.usage.complete


def test_many_requests_over_one_connection_and_over_many() -> None:
    with ModelServer(turns(Turn(text="x", usage=USED))) as server, metered(server) as proxy:

        def ask(_: int) -> None:
            client = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=20)
            for protocol in PROTOCOLS:
                door = "x-api-key" if protocol == "messages" else "authorization"
                body = asking(protocol, stream=protocol != "chat")
                client.request("POST", PATHS[protocol], body, {door: SECRET})
                assert client.getresponse().read()
            client.close()

        with ThreadPoolExecutor(16) as pool:
            list(pool.map(ask, range(32)))
        assert proxy.usage._replace(source="") == server.told(KEY)
        assert proxy.usage.requests == 96


class TestLimit:
    def test_tokens_count_as_a_charge_does(self) -> None:
        charge = Charge(tokens_in=234, tokens_cached=1000, tokens_out=56)
        script = turns(Turn(text="x", usage=USED))
        for limit, passed in ((charge.tokens, 1), (charge.tokens + 0.1, 2)):
            with ModelServer(script) as server, metered(server, tokens=limit) as proxy:
                statuses = [
                    send(proxy.port, PATHS["messages"], asking("messages")).status
                    for _ in range(3)
                ]
                assert statuses == [200] * passed + [400] * (3 - passed)
                assert proxy.fault == "budget"
                assert server.asked[KEY] == passed

    def test_dollars(self) -> None:
        prices = Prices(input=1.0, cached=0.1, cache_write=2.0, output=10.0)
        dollars = (217 * 1.0 + 1000 * 0.1 + 17 * 2.0 + 56 * 10.0) / 1e6
        with (
            ModelServer(turns(Turn(text="x", usage=USED))) as server,
            metered(server, usd=1.5 * dollars, prices=prices) as proxy,
        ):
            asked = [send(proxy.port, PATHS["chat"], asking("chat")).status for _ in range(3)]
            assert asked == [200, 200, 400]
            assert proxy.usage.usd == pytest.approx(2 * dollars)

    def test_dollars_need_prices(self) -> None:
        with pytest.raises(ValueError, match="needs prices"), metered("http://h", usd=1.0):
            pass

    def test_the_refusal_says_why_and_stays(self) -> None:
        with ModelServer() as server, metered(server, tokens=0) as proxy:
            got = send(proxy.port, PATHS["responses"], asking("responses", stream=True))
            assert json.loads(got.text)["error"]["message"] == (
                "the budget of this attempt is spent"
            )
            assert got.headers["x-should-retry"] == "false"
            send(proxy.port, "/v1/models", None, method="GET")
            assert proxy.fault == "budget"

    def test_each_request_in_flight_may_pass_the_limit_once(self) -> None:
        gate = threading.Barrier(4)
        with ModelServer(turns(Turn(text="x", usage=USED, wait=0.3))) as server:
            with metered(server, tokens=1.0, pace=QUIET) as proxy:

                def ask(_: int) -> int:
                    gate.wait()
                    return send(proxy.port, PATHS["chat"], asking("chat")).status

                with ThreadPoolExecutor(4) as pool:
                    assert list(pool.map(ask, range(4))) == [200] * 4
                assert send(proxy.port, PATHS["chat"], asking("chat")).status == 400
            assert proxy.usage.requests == 4


def test_every_exchange_is_recorded_without_keys(tmp_path: Path) -> None:
    record = tmp_path / "exchanges.jsonl.gz"
    script = in_order(Turn(text=f"the key is {KEY}"), Turn(fault="400"))
    with ModelServer(script) as server, metered(server, record=record) as proxy:
        body = asking("messages", stream=True, prompt=f"my key is {SECRET}")
        send(proxy.port, PATHS["messages"], body, anthropic_version="2023-06-01")
        send(proxy.port, PATHS["messages"], asking("messages"))
        send(proxy.port, PATHS["messages"], asking("messages"), key="other")
        assert proxy.unrecorded == 0
    first, second, third = sorted(exchanges(record))  # by the time of the request
    assert (first.method, first.target) == ("POST", "/v1/messages?beta=true")
    assert first.sent == {"anthropic-version": "2023-06-01"}
    assert json.loads(first.request)["messages"][0]["content"] == "my key is [redacted]"
    assert first.response.count("message_stop") == 2
    assert Usage(**first.usage) == proxy.usage._replace(requests=1)
    assert (first.tries, first.status, first.ending) == ((200,), 200, "whole")
    assert 0 < first.first <= first.seconds
    assert (second.status, second.ending, second.usage) == (400, "whole", {})
    assert (third.status, third.ending, third.tries) == (401, "refused", ())
    text = gzip.decompress(record.read_bytes()).decode()
    assert SECRET not in text
    assert "sk-provider" not in text


def test_a_socket_deep_in_folders(tmp_path: Path) -> None:
    place = tmp_path.joinpath(*["a-rather-long-name"] * 8) / "model.sock"
    place.parent.mkdir(parents=True)
    with ModelServer() as server:
        with metered(server, socket=place) as proxy:
            assert proxy.port == 0
            assert stat.S_IMODE(place.stat().st_mode) == 0o600
        assert not place.exists()
        with metered(server, socket=place):
            place_again = place.stat()
        assert stat.S_ISSOCK(place_again.st_mode)
    assert bridged(("true",), 1, str(place))[-2:] == ("--", "true")


def test_a_file_in_the_place_of_the_socket_stays(tmp_path: Path) -> None:
    place = tmp_path / "model.sock"
    place.write_text("mine")
    with pytest.raises(OSError), metered("http://h", socket=place):  # noqa: PT011
        pass
    assert place.read_text() == "mine"


def test_it_loads_the_standard_library_and_of_that_little() -> None:
    code = "import outlay.execution.metering.proxy, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"msgspec", "numpy", "click", "http", "email", "ssl", "gzip", "asyncio"}
