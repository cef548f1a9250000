"""Every exchange of an attempt with its provider, kept without secrets and read again.

`exchanges.jsonl.gz` is a row of gzip members, one JSON line each, so any reader of gzip reads it,
and a kill loses no more than the exchanges in flight.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import threading
import time
import urllib.parse
import zlib
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from outlay.agents.clients.contract import Usage

MOST_KEPT = 4 << 20
"""Bytes of a body that are kept."""

REDACTED = "[redacted]"

OWN_SECRET = re.compile("outlay-[0-9a-f]{32}")
"""What the secret of an attempt looks like, so that it is known wherever it turns up."""

Ending = Literal["whole", "cut", "gone", "refused"]
"""The answer came to its end; broke off or never came; the client hung up; it was ours."""

_NONE: dict[str, Any] = {}  # shared by all records, which are never changed in place
_KEPT_HEADERS = (
    *("content-type", "user-agent", "retry-after", "request-id", "x-request-id"),
    *("anthropic-version", "anthropic-beta", "openai-beta", "openai-model", "openai-version"),
)


class Exchange(NamedTuple):
    """One request of the client and what it was answered.

    Attributes:
        at: Unix time of the request.
        method, target: Of the request line.
        sent: Headers of the request that say what was asked.
        request: Its body as it went to the provider, as text, up to `MOST_KEPT` bytes.
        tries: Status of each try; 0 where there was no answer.
        status: What the client got; 0 for nothing.
        headers: Headers of the answer that say what it is.
        response: Its body as the client got it, likewise.
        first: Seconds until the first byte for the client.
        seconds: Until the end.
        ending: How it ended.
        usage: Fields of `contract.Usage`; empty where nothing was counted.
    """

    at: float
    method: str = ""
    target: str = ""
    sent: dict[str, str] = _NONE
    request: str = ""
    tries: tuple[int, ...] = ()
    status: int = 0
    headers: dict[str, str] = _NONE
    response: str = ""
    first: float = 0.0
    seconds: float = 0.0
    ending: Ending = "whole"
    usage: dict[str, Any] = _NONE


class Draft:
    """An exchange while it happens.

    Attributes:
        asked: Body of the request as it goes to the provider.
        tries, ending: As in `Exchange`.
        usage: What was counted; `None` until it is.
    """

    def __init__(self, first: str, headers: tuple[tuple[str, str], ...]) -> None:
        self.asked = b""
        self.tries: list[int] = []
        self.ending: Ending = "refused"
        self.usage: Usage | None = None
        self._line = first
        self._sent = headers
        self._at = time.time()
        self._begun = time.monotonic()
        self._first = 0.0
        self._status = 0
        self._headers: tuple[tuple[str, str], ...] = ()
        self._response = bytearray()

    def answered(self, status: int, headers: tuple[tuple[str, str], ...]) -> None:
        """Note that the client is about to get its first byte."""
        self._first = time.monotonic() - self._begun
        self._status, self._headers = status, headers

    def said(self, data: bytes) -> None:
        """Note bytes of the body for the client."""
        self._response += data[: MOST_KEPT - len(self._response)]

    def exchange(self) -> Exchange:
        """Return what happened."""
        method, _, rest = self._line.partition(" ")
        return Exchange(
            at=self._at,
            method=method,
            target=rest.partition(" ")[0],
            sent=_telling(self._sent),
            request=_text(self.asked),
            tries=tuple(self.tries),
            status=self._status,
            headers=_telling(self._headers),
            response=_text(bytes(self._response)),
            first=self._first,
            seconds=time.monotonic() - self._begun,
            ending=self.ending,
            usage={} if self.usage is None else self.usage._asdict(),
        )


class Recorder:
    """Appends exchanges to a file that only the user can read; from any thread.

    Args:
        path: The file; `None` keeps nothing.
        secrets: Texts that never get into it.

    Attributes:
        lost: Exchanges that could not be written.
    """

    def __init__(self, path: Path | None, secrets: tuple[str, ...]) -> None:
        self.lost = 0
        self._path = path
        self._forms = forms(secrets)
        self._lock = threading.Lock()

    def add(self, exchange: Exchange) -> None:
        """Append one exchange; a disk that takes it not is no reason to fail."""
        if self._path is None:
            return
        fields = {name: self._clean(value) for name, value in exchange._asdict().items()}
        pack = zlib.compressobj(6, zlib.DEFLATED, 31)
        member = pack.compress(json.dumps(fields).encode() + b"\n") + pack.flush()
        with self._lock:
            try:
                handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                with open(handle, "ab", 0) as file:
                    file.write(member)
            except OSError:
                self.lost += 1

    def _clean(self, value: Any) -> Any:
        if isinstance(value, str):
            return redacted(value, self._forms)
        if isinstance(value, dict):
            return {name: self._clean(part) for name, part in value.items()}
        return value


def exchanges(path: Path) -> Iterator[Exchange]:
    """Yield the exchanges of a record in the order in which they ended.

    A last one that was not written to its end is left out; raises `OSError` without a file.
    """
    rest = path.read_bytes()
    while rest:
        unpack = zlib.decompressobj(31)
        try:
            line = unpack.decompress(rest)
        except zlib.error:
            return
        if not unpack.eof:
            return
        rest = unpack.unused_data
        fields = json.loads(line)
        yield Exchange(**{**fields, "tries": tuple(fields["tries"])})


def new_secret() -> str:
    """Return the secret by which the agent of one attempt is let in."""
    return f"outlay-{secrets.token_hex(16)}"


def forms(hidden: tuple[str, ...]) -> tuple[str, ...]:
    """Return each secret as it may stand in text, in JSON and in an address, the longest first."""
    found = {
        form
        for secret in filter(None, hidden)
        for form in (secret, json.dumps(secret)[1:-1], urllib.parse.quote(secret, safe=""))
    }
    return tuple(sorted(found, key=len, reverse=True))


def redacted(text: str, found: tuple[str, ...]) -> str:
    """Return the text without any of the forms of a secret."""
    for form in found:
        text = text.replace(form, REDACTED)
    return text


def _telling(headers: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return {n.lower(): value for n, value in headers if n.lower() in _KEPT_HEADERS}


def _text(body: bytes) -> str:
    return body[:MOST_KEPT].decode("utf-8", "replace")
