"""From a run in its store to a record: the log, the files that it names, answers, exchanges."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from outlay import events
from outlay.digest import digest
from outlay.errors import InputError
from outlay.execution import objects, snapshot
from outlay.execution.folder import job_folder, read_result
from outlay.execution.metering.record import exchanges
from outlay.jobs import job_id
from outlay.recording.hiding import Hiding
from outlay.recording.lines import (
    FORMAT,
    Answer,
    AnyLine,
    End,
    Exchanged,
    Happened,
    Head,
    Stored,
    manifests,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from outlay.events import Entry


class Kept(NamedTuple):
    """A record that was written.

    Attributes:
        run: Name of the run.
        file: Where the record is.
        bytes: Its size.
        digest: Digest of its log, which is the run's unless something was cut out of that.
        cut: Texts that held a secret and hold it no more.
    """

    run: str
    file: str
    bytes: int
    digest: str
    cut: int


def keep(
    run: str, entries: list[Entry], folder: Path, file: Path, secrets: tuple[str, ...] = ()
) -> Kept:
    """Write the record of a run and return what it came to.

    Args:
        run: Name of the run.
        entries: Its log.
        folder: Its folder, with objects and jobs.
        file: Where to write; replaced if it is there.
        secrets: Texts that must not be in it.

    Raises:
        InputError: The run keeps no files, or a file that is too large for a record.
        objects.Damaged: A stored file of the run is gone or damaged.
    """
    started = entries[0].event if entries else None
    if not isinstance(started, events.RunStarted) or not started.files:
        raise InputError(
            f"run {run!r}: found no files in it, allowed: a run whose evaluator is a command or "
            "a module:function, since nothing else can be carried out again"
        )
    kept = _Keeping(run, entries, folder, Hiding(secrets))
    write(file, kept.lines())
    return Kept(run, str(file), file.stat().st_size, kept.digest, kept.hiding.cut)


class _Keeping:
    """The lines of one record, as they are made."""

    def __init__(self, run: str, entries: list[Entry], folder: Path, hiding: Hiding) -> None:
        self._run = run
        self._entries = entries
        self._folder = folder
        self.hiding = hiding
        self.digest = ""

    def lines(self) -> Iterator[AnyLine]:
        yield Head(format=FORMAT, run=self._run, outlay=version("outlay"))
        yield from self._files()
        entries = [self._clean(entry) for entry in self._entries]
        yield from (Happened(entry=entry) for entry in entries)
        for entry in entries:
            if isinstance(entry.event, events.Launch):
                yield from self._told(job_id(entry.event))
        self.digest = digest(entries)
        yield End(digest=self.digest)

    def _files(self) -> Iterator[Stored]:
        """Yield each content and each manifest once; a changed one gets another name."""
        store, seen = self._folder / "objects", set[str]()
        for old in manifests(self._entries):
            files = snapshot.load(old, store)
            for entry in files.values():
                if entry.blob not in seen:
                    seen.add(entry.blob)
                    content = objects.get(store, entry.blob)
                    clean = self.hiding.content(content)
                    if clean != content:
                        self.hiding.renamed[entry.blob] = objects.name_of(clean)
                    yield _stored(clean)
            text = _manifest(files, self.hiding)
            self.hiding.renamed[old] = objects.name_of(text)
            yield _stored(text)

    def _clean(self, entry: Entry) -> Entry:
        fields: Any = self.hiding.value(json.loads(events.encode(entry.event)))
        event = events.decode(msgspec.json.encode(fields))
        if isinstance(event, events.SittingStarted):
            event = msgspec.structs.replace(event, pid=0, host="")
        if isinstance(event, events.RunStarted):
            # It marks what is data in a question to the model, so nobody else may know it.
            event = msgspec.structs.replace(event, uid="")
        return msgspec.structs.replace(entry, event=event)

    def _told(self, job: str) -> Iterator[Answer | Exchanged]:
        place = job_folder(self._folder, job)
        result = read_result(place)
        if result is not None and result.agent is not None and result.agent.answer:
            yield Answer(job=job, text=self.hiding.text(result.agent.answer))
        file = place / "exchanges.jsonl.gz"
        for exchange in exchanges(file) if file.exists() else ():
            yield Exchanged(job=job, exchange=self.hiding.value(exchange._asdict()))


def _manifest(files: snapshot.Manifest, hiding: Hiding) -> bytes:
    clean = {
        hiding.text(path): entry._replace(blob=hiding.renamed.get(entry.blob, entry.blob))
        for path, entry in files.items()
    }
    return snapshot.encoded(clean)


def _stored(content: bytes) -> Stored:
    try:
        return Stored(text=content.decode())
    except UnicodeDecodeError:
        return Stored(content=content)
