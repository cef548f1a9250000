"""Connections to the one provider that an attempt may reach, with the key that only we hold."""

from __future__ import annotations

import re
import socket
import threading
import urllib.parse
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from outlay.execution.metering.wire import Cut, Frame, Malformed, Wire, frame, written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from outlay.execution.metering.patience import Pace
    from outlay.execution.metering.request import Request

_MOST_SPARE = 8
_VERSION = re.compile(r"v[0-9]+[a-z0-9]*")
_STATUS = re.compile(r"HTTP/1\.([01]) ([0-9]{3})( .*)?")


class Upstream(NamedTuple):
    """A provider: its address, with its version part (`/v1`) or without, and its key, if any."""

    url: str
    key: str


class Unreachable(Exception):  # noqa: N818 - its failure, not ours
    """The provider could not be reached, or ended the connection before it answered."""


class Reply(NamedTuple):
    """The head of an answer, and where its body comes from."""

    status: int
    headers: tuple[tuple[str, str], ...]
    wire: Wire
    frame: Frame
    keep: bool

    def get(self, name: str) -> str:
        """Return the first header under a lower-case name; empty if there is none."""
        return next((value for found, value in self.headers if found.lower() == name), "")

    def pieces(self, idle: float) -> Iterator[bytes]:
        """Yield the body as it comes; raises as `Wire.body`."""
        return self.wire.body(self.frame, idle)


class Provider:
    """Sends requests; may be used from any thread.

    Raises `ValueError` for an address that is none or a key that no header can carry.
    """

    def __init__(self, upstream: Upstream, pace: Pace) -> None:
        parts = urllib.parse.urlsplit(upstream.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise ValueError(f"address of the provider: {upstream.url!r} is no http(s) address")
        if not re.fullmatch(r"[!-~]*", upstream.key):
            raise ValueError("the provider's key has characters that no key has")
        self._key = upstream.key
        self._pace = pace
        self._secure = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port or (443 if self._secure else 80)
        self._named = parts.netloc
        self._base = parts.path.rstrip("/")
        self._lock = threading.Lock()
        self._spare: list[Wire] = []
        self._context: Any = None

    def ask(self, request: Request, client: Wire) -> Reply:
        """Send a request and return the head of its answer.

        Raises:
            Unreachable: There was none.
            Silent, Gone: The provider said nothing for too long; the client hung up.
        """
        data = self._written(request)
        if wire := self._take():
            try:
                return self._asked(wire, data, request, client)
            except Unreachable:
                pass  # it was closed while nobody used it
        return self._asked(self._connect(), data, request, client)

    def path(self, path: str) -> str:
        """Return where a path below `/v1/` lies; a version in the address takes its place."""
        own = any(_VERSION.fullmatch(part) for part in self._base.split("/"))
        return self._base + (path.removeprefix("/v1") if own else path)

    def give_back(self, reply: Reply) -> None:
        """Keep the connection of an answer that was read to its end for the next request."""
        reply.wire.client = None
        with self._lock:
            if reply.keep and len(self._spare) < _MOST_SPARE:
                self._spare.append(reply.wire)
                return
        reply.wire.close()

    def close(self) -> None:
        """Close the connections that nobody uses."""
        with self._lock:
            for wire in self._spare:
                wire.close()
            self._spare.clear()

    def _take(self) -> Wire | None:
        while True:
            with self._lock:
                if not self._spare:
                    return None
                wire = self._spare.pop()
            if not wire.is_stale():
                return wire
            wire.close()

    def _connect(self) -> Wire:
        address = (self._host, self._port)
        try:
            plain = socket.create_connection(address, self._pace.connect)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return Wire(self._secured(plain) if self._secure else plain)
        except OSError as fault:
            raise Unreachable(f"the provider cannot be reached: {fault}") from fault

    def _secured(self, plain: socket.socket) -> socket.socket:
        import ssl  # slow to import, and a local server needs none

        with self._lock:
            self._context = self._context or ssl.create_default_context()
        secured: socket.socket = self._context.wrap_socket(plain, server_hostname=self._host)
        return secured

    def _asked(self, wire: Wire, data: bytes, request: Request, client: Wire) -> Reply:
        wire.client = client
        try:
            with suppress(OSError):  # it may have answered before it had read all
                wire.send(data)
            return self._reply(wire, request.route.method)
        except (Cut, Malformed) as fault:
            wire.close()
            raise Unreachable("the provider ended the connection before it answered") from fault
        except BaseException:
            wire.close()
            raise

    def _reply(self, wire: Wire, method: str) -> Reply:
        while True:
            head = wire.head(self._pace.idle, self._pace.idle)
            match = head and _STATUS.fullmatch(head.first)
            if head is None or match is None:
                raise Cut
            status = int(match[2])
            if status >= 200:
                break
        bare = method == "HEAD" or status in (204, 304)
        return Reply(
            status=status,
            headers=head.headers,
            wire=wire,
            frame=0 if bare else (how := frame(head, default="close")),
            keep=match[1] == "1"
            and head.get("connection").lower() != "close"
            and (bare or how != "close"),
        )

    def _written(self, request: Request) -> bytes:
        where = request.route
        headers = [("host", self._named), *request.headers, ("accept-encoding", "identity")]
        for door in where.doors if self._key else ():
            headers.append((door, f"Bearer {self._key}" if door == "authorization" else self._key))
        if where.method == "POST":
            headers.append(("content-length", str(len(request.body))))
        line = f"{where.method} {self.path(where.path)}{where.query} HTTP/1.1"
        return written(line, headers, request.body)
