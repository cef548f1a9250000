"""What a client is answered: the provider's answer, or ours where it gave none."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple

from outlay.execution.metering.provider import Unreachable
from outlay.execution.metering.record import redacted
from outlay.execution.metering.request import error
from outlay.execution.metering.wire import Cut, Malformed, Silent, written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from outlay.execution.metering.account import Fault
    from outlay.execution.metering.provider import Provider, Reply
    from outlay.execution.metering.request import Request
    from outlay.execution.metering.wire import Wire

MOST_ANSWER = 32 << 20
"""Bytes of an answer that is no stream, unpacked."""

Headers = tuple[tuple[str, str], ...]
JSON = ("content-type", "application/json")
NO_RETRY = ("x-should-retry", "false")
"""Asks the clients that know it not to try again: we did, or it is of no use."""

_NOT_PASSED = {
    *("content-length", "transfer-encoding", "connection", "keep-alive", "trailer", "upgrade"),
    *("set-cookie", "alt-svc", "content-encoding", "proxy-authenticate", "x-should-retry"),
}
_KEY_STATUSES = (401, 402, 403)


class Answer(NamedTuple):
    """One answer.

    Attributes:
        status: HTTP status for the client.
        headers: Headers for the client, those of its connection left out.
        body: The whole body; empty where it is streamed.
        stream: The provider's answer, still to be read; `None` where `body` is all.
        tried: The provider's status; 0 if it gave none.
        temporary: Whether sending the request again may help.
        fault: Why it failed.
        lost: Whether the provider began to answer, or may have, and the rest never came.
    """

    status: int
    headers: Headers
    body: bytes = b""
    stream: Reply | None = None
    tried: int = 0
    temporary: bool = False
    fault: Fault = ""
    lost: bool = False


def ask(provider: Provider, request: Request, client: Wire, idle: float) -> Answer:
    """Send a request once and return the answer; raises `Gone` if the client hangs up."""
    try:
        reply = provider.ask(request, client)
    except Unreachable as fault:
        return _failed(502, str(fault))._replace(temporary=True)
    except Silent:
        return _lost(504, f"no answer within {idle:.0f} seconds")
    good = reply.status < 300
    if good and reply.get("content-type").lower().startswith("text/event-stream"):
        return Answer(reply.status, _passed(reply), stream=reply, tried=reply.status)
    try:
        body = b"".join(unpacked(reply, _bounded(reply.pieces(idle))))
    except (Cut, Silent, Malformed):
        reply.wire.close()
        if good:
            return _lost(502, "the provider's answer broke off")._replace(tried=reply.status)
        body = error("api_error", "the provider's answer broke off")
    except BaseException:
        reply.wire.close()
        raise
    else:
        provider.give_back(reply)
    return _judged(Answer(reply.status, _passed(reply), body, tried=reply.status))


def unpacked(reply: Reply, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the pieces of a body, unpacked where it came packed although we did not ask for it.

    Packings other than gzip pass as they are; raises `Malformed` for one that is damaged.
    """
    if reply.get("content-encoding").lower() != "gzip":
        yield from pieces
        return
    unpack = zlib.decompressobj(31)
    size = 0
    for piece in pieces:
        try:
            plain = unpack.decompress(piece, MOST_ANSWER)
        except zlib.error as fault:
            raise Malformed(502, "the provider's answer is no gzip") from fault
        size += len(plain)
        if size > MOST_ANSWER or unpack.unconsumed_tail:
            raise Malformed(502, "the provider's answer is too long")
        yield plain


def head(answer: Answer, forms: tuple[str, ...], *, chunks: bool, keep: bool) -> bytes:
    """Return the head of a streamed answer, in chunks or up to the end of the connection."""
    ends = (("transfer-encoding", "chunked"),) if chunks else ()
    return _head(answer, forms, ends, keep=keep)


def whole(answer: Answer, forms: tuple[str, ...], *, keep: bool) -> bytes:
    """Return the head of an answer that goes out as a whole."""
    sizes: Headers = ()
    if answer.status not in (204, 304):
        sizes = (("content-length", str(len(answer.body))),)
    return _head(answer, forms, sizes, keep=keep)


def _head(answer: Answer, forms: tuple[str, ...], sizes: Headers, *, keep: bool) -> bytes:
    cleaned = [(name, redacted(value, forms)) for name, value in answer.headers]
    end = () if keep else (("connection", "close"),)
    return written(f"HTTP/1.1 {answer.status} ", [*cleaned, *sizes, *end])


def ours(status: int, kind: str, text: str) -> Answer:
    """Return an answer that no provider gave."""
    return Answer(status, (JSON, NO_RETRY), error(kind, text) if kind else b"")


def _failed(status: int, text: str) -> Answer:
    return ours(status, "api_error", text)._replace(fault="provider")


def _lost(status: int, text: str) -> Answer:
    return ours(status, "api_error", text)._replace(fault="cut", lost=True)


def _bounded(pieces: Iterator[bytes]) -> Iterator[bytes]:
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > MOST_ANSWER:
            raise Malformed(502, "the provider's answer is too long")
        yield piece


def _judged(answer: Answer) -> Answer:
    """Say what a status means: try again, the key is of no use, or the agent's own doing."""
    status, headers = answer.status, (*answer.headers, NO_RETRY)
    if status in _KEY_STATUSES or (status >= 400 and b"insufficient_quota" in answer.body):
        return answer._replace(fault="key", headers=headers)
    if status == 429 or status >= 500:
        return answer._replace(fault="provider", temporary=True, headers=headers)
    return answer


def _passed(reply: Reply) -> Headers:
    """Return the headers for the client; gzip is unpacked here, other packings are not."""
    packed = reply.get("content-encoding").lower() not in ("", "gzip")
    return tuple(
        (name, value)
        for name, value in reply.headers
        if name.lower() not in _NOT_PASSED or (packed and name.lower() == "content-encoding")
    )
