"""HTTP/1.1 over one connection, as far as clients of models and their providers speak it.

Written out here because `http.client` alone takes a quarter of the start of an attempt's process,
and because a wait for the provider must end when the client hangs up.
"""

from __future__ import annotations

import re
import select
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_HEAD = 1 << 16
"""Bytes of a request's or response's head."""

Frame = int | Literal["chunked", "close"]
"""How a body ends: after so many bytes, by its last chunk, or with the connection."""

_PIECE = 1 << 16
_SEND = 60.0
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_CHUNK = re.compile(rb"([0-9a-fA-F]{1,8})[ \t]*(;[^\x00-\x08\x0a-\x1f]*)?")


class Malformed(Exception):  # noqa: N818 - these are ends that we expect, not errors
    """No HTTP that we understand, or more of it than we take."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Cut(Exception):  # noqa: N818
    """The connection ended in the middle of something."""


class Silent(Exception):  # noqa: N818
    """Nothing came for too long."""


class Gone(Exception):  # noqa: N818
    """The client hung up."""


class Head(NamedTuple):
    """The first line and the headers, names as they came."""

    first: str
    headers: tuple[tuple[str, str], ...]

    def get(self, name: str) -> str:
        """Return the values under a lower-case name, joined by commas; empty if there are none."""
        return ", ".join(value for found, value in self.headers if found.lower() == name)


class Wire:
    """One connection, and what came over it that nobody has taken yet.

    Args:
        connection: A connected socket.
        client: Whose hanging up ends any wait here, with `Gone`.
    """

    def __init__(self, connection: socket.socket, client: Wire | None = None) -> None:
        connection.settimeout(_SEND)
        self.socket = connection
        self.client = client
        self._buffer = bytearray()

    def send(self, data: bytes) -> None:
        """Send everything; raises `OSError` if the other side is gone or takes nothing."""
        self.socket.sendall(data)

    def close(self) -> None:
        """End the connection in both directions."""
        self.shut()
        self.socket.close()

    def shut(self) -> None:
        """End the connection from another thread: whoever waits on it wakes up."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def let_finish(self, seconds: float) -> None:
        """Say that nothing more comes and hear the other side out, or it may not hear us.

        Raises `Silent` when the seconds are over.
        """
        self.socket.shutdown(socket.SHUT_WR)
        until = time.monotonic() + seconds
        while self._more(until):
            self._buffer.clear()

    def is_stale(self) -> bool:
        """Return whether a connection that nobody uses was closed or has unasked data."""
        return bool(self._buffer) or bool(_poll((self.socket, select.POLLIN), seconds=0))

    def hangs_up(self, seconds: float) -> bool:
        """Wait and return whether the other side hung up meanwhile."""
        return bool(_poll((self.socket, select.POLLRDHUP), seconds=seconds))

    def head(self, first: float, rest: float) -> Head | None:
        """Return the next head, `None` if the connection ended in place of one.

        Args:
            first: Seconds to wait for its first byte.
            rest: Seconds for all the others.

        Raises:
            Malformed, Cut, Silent, Gone: As they say.
        """
        if not self._buffer and not self._more(time.monotonic() + first):
            return None
        until = time.monotonic() + rest
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > MOST_HEAD:
                raise Malformed(431, f"more than {MOST_HEAD} bytes of headers")
            if not self._more(until):
                raise Cut
        if end > MOST_HEAD:
            raise Malformed(431, f"more than {MOST_HEAD} bytes of headers")
        line, *lines = self._take(end).decode("latin-1").split("\r\n")
        self._take(4)
        return Head(line, tuple(_header(line) for line in lines))

    def body(self, frame: Frame, idle: float, *, total: float = float("inf")) -> Iterator[bytes]:
        """Yield the pieces of a body as they come.

        Args:
            frame: How it ends.
            idle: Seconds to wait for each piece.
            total: Seconds for all.

        Raises:
            Malformed, Cut, Silent, Gone: As they say.
        """
        end = time.monotonic() + total
        if frame == "chunked":
            yield from self._chunks(idle, end)
        elif frame == "close":
            while self._buffer or self._more(_until(idle, end)):
                yield self._take(_PIECE)
        else:
            yield from self._exactly(frame, idle, end)

    def _exactly(self, size: int, idle: float, end: float) -> Iterator[bytes]:
        while size:
            if not self._buffer and not self._more(_until(idle, end)):
                raise Cut
            piece = self._take(min(size, _PIECE))
            size -= len(piece)
            yield piece

    def _chunks(self, idle: float, end: float) -> Iterator[bytes]:
        while True:
            match = _CHUNK.fullmatch(self._line(idle, end))
            if match is None:
                raise Malformed(400, "a chunk without a size")
            if (size := int(match[1], 16)) == 0:
                break
            yield from self._exactly(size, idle, end)
            if self._line(idle, end):
                raise Malformed(400, "a chunk that is longer than its size")
        while self._line(idle, end):
            pass  # trailers tell us nothing

    def _line(self, idle: float, end: float) -> bytes:
        while (at := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > MOST_HEAD:
                raise Malformed(400, "a line without an end")
            if not self._more(_until(idle, end)):
                raise Cut
        line = self._take(at)
        self._take(2)
        return line

    def _take(self, size: int) -> bytes:
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def _more(self, until: float) -> bool:
        """Wait for bytes; return `False` at the end of the connection."""
        pending = getattr(self.socket, "pending", None)  # bytes that TLS has taken in already
        if pending is None or not pending():
            self._wait(until)
        try:
            data = self.socket.recv(_PIECE)
        except TimeoutError:
            raise Silent from None
        except OSError:
            return False
        self._buffer += data
        return bool(data)

    def _wait(self, until: float) -> None:
        watched = [(self.socket, select.POLLIN)]
        if self.client is not None:
            watched.append((self.client.socket, select.POLLRDHUP))
        ready = _poll(*watched, seconds=until - time.monotonic())
        if not ready:
            raise Silent
        if self.client is not None and self.client.socket.fileno() in ready:
            raise Gone


def frame(head: Head, *, default: Frame) -> Frame:
    """Return how the body after a head ends; raises `Malformed` where that is in doubt."""
    coding, length = head.get("transfer-encoding").lower(), head.get("content-length")
    if coding and (coding != "chunked" or length):
        raise Malformed(400, "a body of doubtful length")
    if coding:
        return "chunked"
    if not length:
        return default
    # The same length twice is one length; anything else could hide a second request.
    found = {part.strip() for part in length.split(",")}
    if len(found) != 1 or not re.fullmatch(r"[0-9]{1,15}", size := found.pop()):
        raise Malformed(400, "a body of doubtful length")
    return int(size)


def written(first: str, headers: list[tuple[str, str]], body: bytes = b"") -> bytes:
    """Return a head as bytes, and the body after it."""
    lines = [first, *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def chunk(data: bytes) -> bytes:
    """Return data as one chunk, which must not be empty: an empty one is the last."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not _TOKEN.fullmatch(name) or _CONTROL.search(value):
        raise Malformed(400, "a header that is none")
    return name, value.strip(" \t")


def _until(idle: float, end: float) -> float:
    return min(time.monotonic() + idle, end)


def _poll(*watched: tuple[socket.socket, int], seconds: float) -> list[int]:
    """Return the handles of which something happened within so many seconds."""
    poll = select.poll()
    for connection, events in watched:
        if connection.fileno() < 0:
            return [connection.fileno()]  # closed by us meanwhile
        poll.register(connection, events)
    return [handle for handle, _ in poll.poll(max(1000 * min(seconds, 86400), 0))]
