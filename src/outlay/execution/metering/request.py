"""What an agent may send to its provider, and in which form it goes there. Pure.

Only requests whose usage can be counted pass: the three ways to ask a model, counting tokens, and
reading below `/v1/`. Work that a provider does in the background would be told to nobody.
"""

from __future__ import annotations

import hmac
import json
import re
import zlib
from typing import TYPE_CHECKING, Literal, NamedTuple

from outlay.execution.metering.counting import parsed

if TYPE_CHECKING:
    from outlay.execution.metering.counting import Protocol
    from outlay.execution.metering.wire import Head

MOST_BODY = 64 << 20
"""Bytes of a request's body, unpacked."""

Door = Literal["authorization", "x-api-key"]

_ASKING: dict[str, Protocol] = {
    "/v1/responses": "responses",
    "/v1/messages": "messages",
    "/v1/chat/completions": "chat",
}
_FREE = ("/v1/messages/count_tokens",)
_LINE = re.compile(r"([A-Z]{3,10}) ([!-~]{1,8192}) HTTP/1\.([01])")
_PATH = re.compile(r"(/[A-Za-z0-9_~:@+.-]+)+")
_OURS = {
    *("authorization", "x-api-key", "host", "content-length", "content-encoding", "expect"),
    *("accept-encoding", "cookie", "connection", "keep-alive", "te", "trailer", "upgrade"),
    *("transfer-encoding", "proxy-authorization", "proxy-authenticate", "proxy-connection"),
}


class Refused(Exception):  # noqa: N818 - an answer
    """A request that does not go to the provider."""

    def __init__(self, status: int, kind: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.kind = kind
        self.text = text


class Route(NamedTuple):
    """A request line.

    Attributes:
        method: `GET`, `HEAD` or `POST`.
        path: Without the query.
        query: With its question mark; empty if there is none.
        keep: Whether the connection may serve another request.
        chunks: Whether the client understands chunks (HTTP/1.1).
        protocol: Empty for what needs no counting.
        doors: Headers in which the client sent its key.
    """

    method: str
    path: str
    query: str
    keep: bool
    chunks: bool
    protocol: Protocol | Literal[""]
    doors: tuple[Door, ...]


class Request(NamedTuple):
    """What goes to the provider.

    Attributes:
        route: Where.
        headers: The client's own, without those that concern its connection or its key.
        body: Unpacked.
        asks_usage: Whether usage was put into the request, so that the client expects none.
    """

    route: Route
    headers: tuple[tuple[str, str], ...]
    body: bytes
    asks_usage: bool = False


def route(head: Head, secret: str) -> Route:
    """Return where a request goes; raises `Refused`."""
    match = _LINE.fullmatch(head.first)
    if match is None:
        raise Refused(400, "invalid_request_error", "no request that this proxy understands")
    method, (path, mark, query) = match[1], match[2].partition("?")
    if method not in ("GET", "HEAD", "POST"):
        raise Refused(405, "invalid_request_error", f"{method} is not passed on")
    if path == "/" and method != "POST":
        raise Refused(200, "", "")  # clients knock before they work, without a key
    doors = _doors(head, secret)
    if not _PATH.fullmatch(path) or ".." in path or not path.startswith("/v1/"):
        raise Refused(404, "not_found_error", "only paths below /v1/ are passed on")
    if method == "POST" and path not in _ASKING and path not in _FREE:
        raise Refused(404, "not_found_error", f"usage of {path} cannot be counted")
    return Route(
        method=method,
        path=path,
        query=mark + query,
        keep=match[3] == "1" and head.get("connection").lower() != "close",
        chunks=match[3] == "1",
        protocol=_ASKING[path] if method == "POST" and path in _ASKING else "",
        doors=doors,
    )


def request(where: Route, head: Head, body: bytes) -> Request:
    """Return what goes to the provider; raises `Refused`."""
    body = _unpacked(body, head.get("content-encoding").lower())
    headers = tuple((name, value) for name, value in head.headers if name.lower() not in _OURS)
    if not where.protocol:
        return Request(where, headers, body)
    asked = parsed(body)
    if not asked:
        raise Refused(400, "invalid_request_error", "the body is no JSON object")
    if asked.get("background"):
        raise Refused(400, "invalid_request_error", "background work cannot be counted")
    if where.protocol == "chat" and asked.get("stream"):
        options = asked.get("stream_options")
        options = options if isinstance(options, dict) else {}
        if not options.get("include_usage"):
            asked["stream_options"] = {**options, "include_usage": True}
            return Request(where, headers, json.dumps(asked).encode(), asks_usage=True)
    return Request(where, headers, body)


def error(kind: str, text: str) -> bytes:
    """Return an error as clients of either provider read it."""
    inner = {"type": kind, "code": kind, "message": text}
    return json.dumps({"type": "error", "error": inner}).encode()


def _doors(head: Head, secret: str) -> tuple[Door, ...]:
    """Return the headers with the client's key, every one of which must be the secret."""
    found: list[Door] = []
    for door in ("authorization", "x-api-key"):
        if value := head.get(door):
            given = value[7:] if value[:7].lower() == "bearer " else value
            if not hmac.compare_digest(given.strip().encode(), secret.encode()):
                raise Refused(401, "authentication_error", "the key is not that of this attempt")
            found.append("authorization" if door == "authorization" else "x-api-key")
    if not found:
        raise Refused(401, "authentication_error", "no key was sent")
    return tuple(found)


def _unpacked(body: bytes, coding: str) -> bytes:
    if coding in ("", "identity"):
        return body
    if coding != "gzip":
        raise Refused(415, "invalid_request_error", f"a body in {coding} is not understood")
    unpack = zlib.decompressobj(31)
    try:
        plain = unpack.decompress(body, MOST_BODY)
    except zlib.error as fault:
        raise Refused(400, "invalid_request_error", "the body is no gzip") from fault
    if unpack.unconsumed_tail:
        raise Refused(413, "request_too_large", f"more than {MOST_BODY} bytes")
    if not unpack.eof:
        raise Refused(400, "invalid_request_error", "the body is cut off")
    return plain
