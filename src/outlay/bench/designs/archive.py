"""Every request and reply of a collection, one JSON line each, with checksums."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from outlay.budget import Charge
from outlay.errors import InputError, StoreError

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO, Self


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """One answered request.

    Attributes:
        id: Setting, interface, state, repetition and turn, such as `low/L3/s04/r1/t0`.
        request: The JSON body that was sent.
        request_sha256: Of the body's canonical JSON.
        reply: The body that came back, undecodable bytes as surrogates.
        reply_sha256: Of the bytes that came back.
        retries: What went wrong before the answer: transport, rate limit or server failure.
        charge: Tokens, money and seconds of the answered request.
    """

    id: str
    request: dict[str, Any]
    request_sha256: str
    reply: str
    reply_sha256: str
    retries: tuple[str, ...] = ()
    charge: Charge = Charge()


class Prices(NamedTuple):
    """US dollars for a million tokens."""

    tokens_in: float = 0.0
    tokens_cached: float = 0.0
    tokens_out: float = 0.0


def canonical(request: dict[str, Any]) -> bytes:
    """Return the JSON whose checksum stands for a request: sorted keys, no spaces."""
    return json.dumps(request, sort_keys=True, separators=(",", ":")).encode()


def exchange(
    identity: str,
    request: dict[str, Any],
    body: bytes,
    *,
    retries: tuple[str, ...] = (),
    seconds: float = 0.0,
    prices: Prices | None = None,
) -> Exchange:
    """Return the record of an answered request, with its checksums and its charge."""
    return Exchange(
        id=identity,
        request=request,
        request_sha256=hashlib.sha256(canonical(request)).hexdigest(),
        reply=body.decode("utf-8", "surrogateescape"),
        reply_sha256=hashlib.sha256(body).hexdigest(),
        retries=retries,
        charge=_charge(body, seconds, prices or Prices()),
    )


def _charge(body: bytes, seconds: float, prices: Prices) -> Charge:
    """Return the charge from the reply's `usage`; no usage, no tokens."""
    usage = _object(_object(_decoded(body)).get("usage"))
    details = _object(usage.get("prompt_tokens_details"))
    cached = _count(details.get("cached_tokens") or usage.get("prompt_cache_hit_tokens"))
    fresh = max(_count(usage.get("prompt_tokens")) - cached, 0)
    out = _count(usage.get("completion_tokens"))
    usd = fresh * prices.tokens_in + cached * prices.tokens_cached + out * prices.tokens_out
    return Charge(
        tokens_in=fresh, tokens_cached=cached, tokens_out=out, usd=usd / 1e6, seconds=seconds
    )


def answer_text(reply: str) -> str:
    """Return the final answer in a chat completion: its content, never its reasoning.

    A body of any other form gives an empty answer.
    """
    choices = _object(_decoded(reply)).get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    content = _object(_object(first).get("message")).get("content")
    return content if isinstance(content, str) else ""


def _decoded(body: bytes | str) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < 2**53 else 0


def read_archive(path: Path) -> dict[str, Exchange]:
    """Return the exchanges of an archive by id; a torn last line is left out.

    Raises:
        InputError: A line is damaged, an id stands twice, or a checksum does not fit.
    """
    if not path.exists():
        return {}
    lines = path.read_bytes().split(b"\n")[:-1]
    found: dict[str, Exchange] = {}
    for number, line in enumerate(lines, start=1):
        try:
            record = msgspec.convert(json.loads(line), Exchange)
        except (ValueError, msgspec.ValidationError, RecursionError) as error:
            raise InputError(f"{path}: line {number}: {error}") from error
        if record.id in found:
            raise InputError(f"{path}: line {number}: {record.id} stands twice")
        if not is_intact(record):
            raise InputError(f"{path}: line {number}: {record.id}: a checksum does not fit")
        found[record.id] = record
    return found


def is_intact(record: Exchange) -> bool:
    """Return whether both checksums of a record fit what it holds."""
    reply = record.reply.encode("utf-8", "surrogateescape")
    return (
        hashlib.sha256(canonical(record.request)).hexdigest() == record.request_sha256
        and hashlib.sha256(reply).hexdigest() == record.reply_sha256
    )


class ArchiveWriter:
    """Appends exchanges durably; one writer at a time, one thread at a time.

    Opening cuts off a torn last line, which a crash in the middle of a write leaves behind.

    Raises:
        StoreError: Another process writes to this archive.
        InputError: The archive is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.known: dict[str, Exchange] = {}

    def __enter__(self) -> Self:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO = self._path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise StoreError(f"{self._path}: another process is collecting into it") from error
        self._file.seek(0)
        whole = self._file.read().rfind(b"\n") + 1
        self._file.truncate(whole)
        self.known = read_archive(self._path)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, record: Exchange) -> None:
        """Append one exchange; it is on disk when this returns."""
        line = json.dumps(msgspec.to_builtins(record), separators=(",", ":"))
        self._file.write(line.encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.known[record.id] = record
