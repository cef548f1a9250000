"""Server-sent events, taken apart however their bytes are cut into pieces."""

from __future__ import annotations

from typing import NamedTuple

MOST_EVENT = 16 << 20
"""Bytes of one event; a longer one is given out in parts that are no events."""


class Event(NamedTuple):
    """One event: the bytes it came in, its blank line included, and its joined data."""

    raw: bytes
    data: bytes


class Events:
    """Collects bytes, and gives out events as soon as they are whole.

    Lines end in LF, CR LF or CR, as the standard has it.
    """

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._from = 0  # where the line begins that is not whole yet
        self._sought = 0  # up to where no end of that line was found
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[Event]:
        """Take in bytes and return the events that they complete."""
        self._bytes += piece
        events = []
        while (end := self._line_end()) >= 0:
            line = bytes(self._bytes[self._from : end]).rstrip(b"\r\n")
            self._from = self._sought = end
            if line.startswith(b"data"):
                self._data.append(line[4:].removeprefix(b":").removeprefix(b" "))
            elif not line:
                events.append(self._cut(end))
        if len(self._bytes) > MOST_EVENT:
            whole = self._cut(len(self._bytes))
            events.append(Event(whole.raw, whole.raw))
        return events

    def rest(self) -> bytes:
        """Return the bytes that belong to no whole event."""
        return bytes(self._bytes)

    def _cut(self, end: int) -> Event:
        event = Event(bytes(self._bytes[:end]), b"\n".join(self._data))
        del self._bytes[:end]
        self._from = self._sought = 0
        self._data = []
        return event

    def _line_end(self) -> int:
        """Return where the next line begins, -1 while that is unknown."""
        found = (self._bytes.find(mark, self._sought) for mark in (b"\n", b"\r"))
        ends = [at for at in found if at >= 0]
        if not ends:
            self._sought = len(self._bytes)
            return -1
        end = min(ends)
        if self._bytes[end] == ord(b"\n"):
            return end + 1
        if end + 1 == len(self._bytes):  # an LF that belongs to this CR may still come
            self._sought = end
            return -1
        return end + 1 + (self._bytes[end + 1] == ord(b"\n"))
