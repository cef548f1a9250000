"""One stream of output: its head and tail are kept, what lies between is counted and dropped."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

KEEP = 65_536
"""Bytes of head and of tail held for reading the metric, however little is kept on disk."""


class Capture:
    """Takes a stream in pieces, writes at most `share` bytes of it to an unbuffered file.

    `total` counts the bytes that came; `fault` is what kept the file from being written; `tap`, if
    there is one, gets every piece.
    """

    def __init__(self, file: IO[bytes], share: int) -> None:
        self._file = file
        self._half = max(share // 2, 0)
        self._keep = max(self._half, KEEP)
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0
        self.fault: OSError | None = None
        self.tap: Callable[[bytes], None] | None = None

    def feed(self, data: bytes) -> None:
        """Take the next piece."""
        if self.tap is not None:
            self.tap(data)
        if (room := self._half - self.total) > 0:
            self._write(data[:room])
        room = max(self._keep - self.total, 0)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._keep:
            del self._tail[: -self._keep]
        self.total += len(data)

    def close(self) -> None:
        """Write the end of the stream to the file, with a line on what was left out."""
        rest = self.total - self._half
        if rest <= 0:
            return
        end = (self._head + self._tail)[-min(rest, self._half) :] if self._half else bytearray()
        if rest > len(end):
            self._write(f"\n[{rest - len(end)} bytes left out]\n".encode())
        self._write(bytes(end))

    def _write(self, data: bytes) -> None:
        if self.fault is None:
            try:
                self._file.write(data)
            except OSError as fault:  # A full disk must not keep us from reading on.
                self.fault = fault

    def text(self) -> str:
        """Return head and tail as text; lines that the cut went through are left out."""
        if self.total <= len(self._head) + len(self._tail):
            return (self._head + self._tail).decode("utf-8", "replace")
        head = self._head[: self._head.rfind(b"\n") + 1]
        tail = self._tail[self._tail.find(b"\n") + 1 :] if b"\n" in self._tail else b""
        return (bytes(head) + bytes(tail)).decode("utf-8", "replace")

    def last_line(self) -> str:
        """Return the last line that is not empty, for a sentence about what happened."""
        lines = [line.strip() for line in self.text()[-4000:].splitlines() if line.strip()]
        return lines[-1][:300] if lines else ""
