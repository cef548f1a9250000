"""What a client of a model printed, cut into lines, read and logged. Standard library only."""

from __future__ import annotations

import json
import re
import time
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from outlay.agents.clients.contract import Happened

LOG = "agent.jsonl"
"""File in the job's folder with what the client told, one JSON object a line."""

_MOST_LINE, _MOST_LOG = 1 << 20, 5 << 20

_EVENT = re.compile(rb'^[ \t]*\{[^\n]*"type"[^\n]*\n?', re.MULTILINE)
"""A line that may be an event of a client; every client that we know gives its events a type."""


class Lines:
    """Cuts a stream into lines, has each one read, and keeps what it told in a log.

    Once the log is full only lines that may be events are read one by one, since the limits of an
    attempt rest on them; what lies between them is read as one text, however many lines it has.

    Args:
        read: Returns what a line, or a text without events, tells.
        log: Unbuffered; takes one JSON object for each thing told, up to 5 MB.
        hide: Takes secrets out of what is logged.

    `kept` counts bytes of the lines that came until the log was full, 5 MB at most.
    """

    def __init__(
        self, read: Callable[[str], list[Happened]], log: IO[bytes], hide: Callable[[str], str]
    ) -> None:
        self._read = read
        self._log = log
        self._hide = hide
        self._logged = 0
        self._full = False
        self._rest = bytearray()
        self.kept = 0

    def feed(self, data: bytes) -> None:
        """Take the next piece; the part of a line beyond 1 MB is left out."""
        start = 0
        while not self._full and (end := data.find(b"\n", start)) >= 0:
            self._add(data[start:end])
            self.end()
            start = end + 1
        last = data.rfind(b"\n", start)
        if last >= 0:
            first = data.find(b"\n", start)
            self._add(data[start:first])
            self.end()
            self._skim(data[first + 1 : last])
            start = last + 1
        self._add(data[start:])

    def end(self) -> None:
        """Take what is there for a whole line."""
        line, self._rest = bytes(self._rest), bytearray()
        if not line.strip():
            return
        if not self._full:
            self.kept = min(self.kept + len(line) + 1, _MOST_LOG)
        self._take(line)

    def _add(self, part: bytes) -> None:
        self._rest += part[: _MOST_LINE - len(self._rest)]

    def _skim(self, text: bytes) -> None:
        """Take whole lines, of which only events are told apart."""
        start = 0
        for event in _EVENT.finditer(text) if b'"type"' in text else ():
            self._take(text[start : event.start()])
            self._take(event[0])
            start = event.end()
        self._take(text[start:])

    def _take(self, text: bytes) -> None:
        """Have a text read, and log what it tells."""
        if not text:
            return
        for happened in self._read(text.decode("utf-8", "replace")):
            if self._full:
                continue
            entry = {"at": time.time(), "kind": happened.kind, "text": self._hide(happened.text)}
            written = json.dumps(entry).encode() + b"\n"
            self._full = self._logged + len(written) > _MOST_LOG
            if not self._full:
                self._logged += len(written)
                self._log.write(written)
