from __future__ import annotations

import gzip
import json

import pytest

from outlay.execution.metering import request as requests
from outlay.execution.metering.patience import Pace
from outlay.execution.metering.provider import Provider, Upstream
from outlay.execution.metering.request import Refused, request, route
from outlay.execution.metering.wire import Head

SECRET = "attempt-secret"


def head(line: str, *headers: tuple[str, str], key: str = SECRET) -> Head:
    return Head(f"{line} HTTP/1.1", (("Authorization", f"Bearer {key}"), *headers))


def refusal(found: Head, body: bytes = b"{}") -> int:
    with pytest.raises(Refused) as caught:
        request(route(found, SECRET), found, body)
    return caught.value.status


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("CONNECT example.org:443", 405),
        ("GET http://example.org/v1/models", 404),
        ("POST http://example.org/v1/messages", 404),
        ("GET //example.org/v1/models", 404),
        ("GET /v1/../admin", 404),
        ("GET /v1/%2e%2e/admin", 404),
        ("GET /admin", 404),
        ("POST /v1/embeddings", 404),
        ("POST /v1/messages/batches", 404),
        ("POST /v1/responses/", 404),
        ("DELETE /v1/responses/r", 405),
        ("PUT /v1/files", 405),
        ("GET /v1/a b", 400),
        ("GET /v1/\x01", 400),
        ("get /v1/models", 400),
    ],
)
def test_what_is_not_passed_on(line: str, status: int) -> None:
    assert refusal(head(line)) == status


def test_only_the_secret_opens() -> None:
    assert refusal(head("POST /v1/messages", key="other")) == 401
    assert refusal(head("POST /v1/messages", key="")) == 401
    assert refusal(Head("POST /v1/messages HTTP/1.1", ())) == 401
    both = head("POST /v1/messages", ("X-Api-Key", "other"))
    assert refusal(both) == 401
    good = head("POST /v1/messages", ("X-Api-Key", SECRET))
    assert route(good, SECRET).doors == ("authorization", "x-api-key")


def test_a_knock_needs_no_key() -> None:
    assert refusal(Head("HEAD / HTTP/1.1", ())) == 200


def test_headers_of_the_connection_stay_behind() -> None:
    found = head(
        "POST /v1/messages?beta=true",
        ("Anthropic-Version", "1"),
        ("Cookie", "c"),
        ("Accept-Encoding", "gzip"),
        ("Host", "h"),
        ("Connection", "close"),
    )
    asked = request(route(found, SECRET), found, b'{"a": 1}')
    assert asked.headers == (("Anthropic-Version", "1"),)
    assert (asked.route.query, asked.route.keep) == ("?beta=true", False)


def test_packed_bodies_are_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    found = head("POST /v1/messages", ("Content-Encoding", "gzip"))
    packed = gzip.compress(b'{"model": "m"}')
    assert request(route(found, SECRET), found, packed).body == b'{"model": "m"}'
    assert refusal(found, b"nonsense") == 400
    assert refusal(found, packed[:-9]) == 400
    monkeypatch.setattr(requests, "MOST_BODY", 1000)
    assert refusal(found, gzip.compress(b" " * 10**6)) == 413
    assert refusal(head("POST /v1/messages", ("Content-Encoding", "br"))) == 415


@pytest.mark.parametrize("body", [b"", b"nonsense", b"[1]", b"{}", b"[" * 10**5])
def test_a_body_must_be_an_object(body: bytes) -> None:
    assert refusal(head("POST /v1/responses"), body) == 400


def test_background_work_is_refused() -> None:
    assert refusal(head("POST /v1/responses"), b'{"background": true}') == 400


@pytest.mark.parametrize("options", [None, {}, {"include_usage": False}, "odd", {"other": 1}])
def test_usage_is_asked_for_in_streamed_chats(options: object) -> None:
    found = head("POST /v1/chat/completions")
    body = json.dumps({"stream": True, "stream_options": options}).encode()
    asked = request(route(found, SECRET), found, body)
    assert asked.asks_usage
    assert json.loads(asked.body)["stream_options"]["include_usage"] is True


def test_other_bodies_go_byte_for_byte() -> None:
    found = head("POST /v1/chat/completions")
    for body in (b'{ "stream":true,"stream_options":{"include_usage":true} }', b'{ "a" :1}'):
        asked = request(route(found, SECRET), found, body)
        assert (asked.body, asked.asks_usage) == (body, False)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://h", "/v1/messages"),
        ("http://h/", "/v1/messages"),
        ("http://h/v1", "/v1/messages"),
        ("http://h/v1/", "/v1/messages"),
        ("http://h/api", "/api/v1/messages"),
        ("http://h/api/v1", "/api/v1/messages"),
        ("http://h/v1beta/openai", "/v1beta/openai/messages"),
    ],
)
def test_address_with_or_without_its_version(url: str, path: str) -> None:
    assert Provider(Upstream(url, "k"), Pace()).path("/v1/messages") == path


@pytest.mark.parametrize("url", ["", "h", "ftp://h", "http://", "http://user:word@h", "/v1"])
def test_address_that_is_none(url: str) -> None:
    with pytest.raises(ValueError, match="address of the provider"):
        Provider(Upstream(url, "k"), Pace())


def test_key_that_no_header_can_carry_is_not_shown() -> None:
    with pytest.raises(ValueError, match="characters") as caught:
        Provider(Upstream("http://h", "sk-1\r\nx: y"), Pace())
    assert "sk-1" not in str(caught.value)
