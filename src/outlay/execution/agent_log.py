"""What a client of a model printed, cut into lines, read and logged. Standard library only."""

from __future__ import annotations

import json
import time
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from outlay.agents.clients.contract import Happened

LOG = "agent.jsonl"
"""File in the job's folder with what the client told, one JSON object a line."""

_MOST_LINE, _MOST_LOG = 1 << 20, 5 << 20


class Lines:
    """Cuts a stream into lines, has each one read, and keeps what it told in a log.

    Args:
        read: Returns what a line tells.
        log: Unbuffered; takes one JSON object for each thing told, up to 5 MB.
        hide: Takes secrets out of what is logged.
    """

    def __init__(
        self, read: Callable[[str], list[Happened]], log: IO[bytes], hide: Callable[[str], str]
    ) -> None:
        self._read = read
        self._log = log
        self._hide = hide
        self._logged = 0
        self._rest = bytearray()
        self.total = 0

    def feed(self, data: bytes) -> None:
        """Take the next piece; the part of a line beyond 1 MB is left out."""
        self.total += len(data)
        *whole, rest = data.split(b"\n")
        for line in whole:
            self._rest += line[: _MOST_LINE - len(self._rest)]
            self.end()
        self._rest += rest[: max(_MOST_LINE - len(self._rest), 0)]

    def end(self) -> None:
        """Take what is there for a whole line."""
        line, self._rest = bytes(self._rest), bytearray()
        if not line.strip():
            return
        for happened in self._read(line.decode("utf-8", "replace")):
            entry = {"at": time.time(), "kind": happened.kind, "text": self._hide(happened.text)}
            text = json.dumps(entry).encode() + b"\n"
            if self._logged + len(text) <= _MOST_LOG:
                self._logged += len(text)
                self._log.write(text)
