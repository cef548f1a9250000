"""The file of a record: one JSON object a line, packed with xz, so `xzcat FILE` shows it.

It holds no paths of this or another machine to write to: stored files are named by their content,
and answers and exchanges by the job that they belong to.
"""

from __future__ import annotations

import lzma
import re
from typing import IO, TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec

from outlay._taskcheck import is_name
from outlay.agents.clients.contract import Usage
from outlay.digest import digest
from outlay.errors import InputError
from outlay.events import AttemptSettled, Entry, RunStarted
from outlay.execution import objects, snapshot
from outlay.execution.objects import Damaged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

FORMAT = 1

MOST_LINE = 64 << 20
"""Bytes of one line, so about the largest file that a record can hold."""

MOST_BYTES = 2 << 30
"""Bytes of a whole record when it is unpacked."""

_MALFORMED = (
    *(ValueError, TypeError, KeyError, AttributeError),
    *(EOFError, RecursionError, lzma.LZMAError),
)
_MOST_MEMORY = 100 << 20
_PIECE = 1 << 20
_NAME = re.compile(r"[0-9a-f]{64}")

JobId = Annotated[str, msgspec.Meta(pattern=r"^[amr][0-9]{1,12}\.[0-9]{1,12}$")]


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="line"):
    """Base of what a line holds."""


class Head(Line, frozen=True, tag="record"):
    """The first line: what follows.

    Attributes:
        format: Of the lines.
        run: Name of the run.
        outlay: Version that wrote it.
    """

    format: int
    run: str
    outlay: str


class Stored(Line, frozen=True, tag="file"):
    """A stored file, as text where it is UTF-8; a manifest is one, too."""

    text: str | None = None
    content: bytes = b""

    @property
    def data(self) -> bytes:
        """Its content."""
        return self.content if self.text is None else self.text.encode()


class Happened(Line, frozen=True, tag="event"):
    """An entry of the log."""

    entry: Entry


class Answer(Line, frozen=True, tag="answer"):
    """The last words of the client of a job, whole: for a reflection, the plans."""

    job: JobId
    text: str


class Exchanged(Line, frozen=True, tag="exchange"):
    """One exchange of a job with its provider, as `outlay.execution.metering.record.Exchange`."""

    job: JobId
    exchange: dict[str, Any]


class End(Line, frozen=True, tag="end"):
    """The last line: the digest of the log."""

    digest: str


AnyLine = Head | Stored | Happened | Answer | Exchanged | End


class Record(NamedTuple):
    """What a record tells, beside its stored files.

    Attributes:
        run: Name of the run.
        entries: Its log.
        answers: Job to the last words of its client.
        counted: Job to the sum of what its exchanges used.
        digest: Digest of the log.
    """

    run: str
    entries: list[Entry]
    answers: dict[str, str]
    counted: dict[str, Usage]
    digest: str


def write(path: Path, lines: Iterable[AnyLine]) -> None:
    """Write the file, whole or not at all; raises `InputError` for a line that is too long."""
    beside = path.with_name(f".{path.name}.part")
    try:
        with lzma.open(beside, "wb") as file:
            _write_all(file, lines)
        beside.rename(path)
    finally:
        beside.unlink(missing_ok=True)


def _write_all(file: IO[bytes], lines: Iterable[AnyLine]) -> None:
    total = 0
    for line in lines:
        text = msgspec.json.encode(line) + b"\n"
        total += len(text)
        if len(text) > MOST_LINE or total > MOST_BYTES:
            raise InputError(
                f"record: found {len(text)} bytes in one part and {total} in all, allowed: "
                f"{MOST_LINE} and {MOST_BYTES}; name large files in `data`, outside the workspace"
            )
        file.write(text)


def read(path: Path, store: Path) -> Record:
    """Return what a record tells, and put its files into an object store.

    The file may come from anywhere: it cannot make this function write outside the store, unpack
    more than `MOST_BYTES`, or run anything.

    Raises:
        InputError: It is no record, a damaged one, or one of another version.
    """
    try:
        record = _gathered(_lines(path), store)
        _check_files(record, store)
    except _MALFORMED as error:
        raise InputError(
            f"{path}: found no whole record ({_one_line(error)}), allowed: a file that "
            "`outlay record` wrote"
        ) from None
    return record


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _gathered(lines: Iterator[bytes], store: Path) -> Record:
    head = _head(next(lines, b""))
    record = Record(head.run, [], {}, {}, "")
    decoder = msgspec.json.Decoder(AnyLine)
    for text in lines:
        match decoder.decode(text):
            case Stored() as stored:
                objects.put(store, stored.data)
            case Happened(entry=entry):
                record.entries.append(entry)
            case Answer(job=job, text=words):
                record.answers[job] = words
            case Exchanged(job=job, exchange=exchange):
                record.counted[job] = record.counted.get(job, Usage()).plus(_usage(exchange))
            case End(digest=told):
                record = record._replace(digest=told)
            case Head():
                raise ValueError("a second beginning")
    if [entry.sequence for entry in record.entries] != list(range(1, len(record.entries) + 1)):
        raise ValueError("its events are not in order")
    if record.digest != digest(record.entries):
        raise ValueError("its events are not those that were recorded")
    return record


def _usage(exchange: dict[str, Any]) -> Usage:
    """Return what an exchange used; raises `ValueError` or `TypeError` for what is none."""
    fields = Usage()._asdict() | exchange.get("usage", {})
    return msgspec.convert(list(fields.values()), Usage)


def _head(text: bytes) -> Head:
    head = msgspec.json.decode(text, type=Head)
    if head.format != FORMAT:
        raise ValueError(f"format {head.format}, this Outlay reads {FORMAT}")
    if not is_name(head.run):
        raise ValueError(f"a run named {head.run[:60]!r}")
    return head


def _lines(path: Path) -> Iterator[bytes]:
    rest = bytearray()
    for piece in _unpacked(path):
        rest += piece
        *whole, last = rest.split(b"\n") if b"\n" in piece else [rest]
        yield from map(bytes, whole)
        rest = last
        if len(rest) > MOST_LINE:
            raise ValueError(f"a line of more than {MOST_LINE} bytes")
    if rest:
        raise ValueError("its last line has no end")


def _unpacked(path: Path) -> Iterator[bytes]:
    unpack, total = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST_MEMORY), 0
    with open(path, "rb") as file:
        while not unpack.eof:
            packed = file.read(_PIECE) if unpack.needs_input else b""
            if unpack.needs_input and not packed:
                raise ValueError("it ends too early")
            piece = unpack.decompress(packed, _PIECE)
            total += len(piece)
            if total > MOST_BYTES:
                raise ValueError(f"more than {MOST_BYTES} bytes")
            yield piece


def manifests(entries: Iterable[Entry]) -> list[str]:
    """Return the hashes of the workspaces that a log names, each once."""
    found = (e.event.files for e in entries if isinstance(e.event, RunStarted | AttemptSettled))
    return list(dict.fromkeys(filter(None, found)))


def _check_files(record: Record, store: Path) -> None:
    for manifest in manifests(record.entries):
        if not _NAME.fullmatch(manifest):
            raise ValueError(f"files named {manifest!r}")
        for path, entry in snapshot.load(manifest, store).items():
            if any(part in ("", ".", "..") for part in path.split("/")):
                raise ValueError(f"a file named {path!r}")
            if not _NAME.fullmatch(entry.blob) or not objects.holds(store, entry.blob):
                raise Damaged(f"no content for {path!r}")
