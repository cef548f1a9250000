"""The metering proxy of one attempt: a reverse proxy that counts, limits and records."""

from __future__ import annotations

import os
import socket
import stat
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from outlay.execution.metering.account import Account, Fault
from outlay.execution.metering.patience import Pace, Spell
from outlay.execution.metering.provider import Provider, Upstream
from outlay.execution.metering.record import Recorder, forms
from outlay.execution.metering.request import error
from outlay.execution.metering.serving import Service, serve
from outlay.execution.metering.wire import Wire, written

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from outlay.agents.clients.contract import Usage
    from outlay.tokens import Prices

MOST_CONNECTIONS = 64
_END = 5.0


class Proxy:
    """Serves in threads of its own while it is entered.

    Args:
        upstream: The provider.
        secret: What the client sends as its key.
        tokens, usd: Limits, or `None`; tokens as `outlay.tokens.weighed` counts them. A request
            that is in flight when a limit is reached ends, so each may pass it by one response.
        prices: Needed for `usd`, and for money in `usage`.
        patience: Seconds that requests wait in all for a provider that keeps failing.
        record: File that every exchange is appended to.
        socket: Unix socket to listen on in place of a port of the loopback.
        told: Called with the usage so far after each response, from another thread, one call at
            a time; must not raise.
        pace: Pauses and time limits.

    Attributes:
        port: Port on 127.0.0.1, 0 with a Unix socket.

    Raises:
        ValueError: An address or a key that is none, or a limit in dollars without prices.
        OSError: On entering, if it cannot listen.
    """

    def __init__(
        self,
        upstream: Upstream,
        *,
        secret: str,
        told: Callable[[Usage], None],
        patience: float,
        tokens: float | None = None,
        usd: float | None = None,
        prices: Prices | None = None,
        record: Path | None = None,
        socket: Path | None = None,
        pace: Pace = Pace(),  # noqa: B008 - a tuple
    ) -> None:
        secrets = (upstream.key, secret)
        self.port = 0
        self._account = Account(tokens, usd, prices, told)
        self._recorder = Recorder(record, secrets)
        self._service = Service(
            provider=Provider(upstream, pace),
            account=self._account,
            recorder=self._recorder,
            spell=Spell(patience),
            pace=pace,
            secret=secret,
            forms=forms((upstream.key,)),
        )
        self._place = socket
        self._lock = threading.Lock()
        self._clients: dict[threading.Thread, Wire] = {}

    def __enter__(self) -> Proxy:
        self._listener = _on_path(self._place) if self._place else _on_loopback()
        self.port = 0 if self._place else self._listener.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Hang up on every client, and count what was in flight."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()
        with self._lock:
            clients = dict(self._clients)
        for wire in clients.values():
            wire.shut()
        until = time.monotonic() + _END
        for thread in clients:
            thread.join(max(until - time.monotonic(), 0))
        self._service.provider.close()
        if self._place is not None:
            self._place.unlink(missing_ok=True)

    @property
    def usage(self) -> Usage:
        """What was used so far."""
        return self._account.usage

    @property
    def fault(self) -> Fault:
        """Why the latest request failed, empty if it did not; a refusal for a limit stays."""
        return self._account.fault

    @property
    def hopeless(self) -> bool:
        """Whether nothing is in flight, and the next request would fail as the latest did.

        An answer that broke off says so only with five others in a row before it.
        """
        return self._account.hopeless

    @property
    def waited(self) -> float:
        """Seconds in which every request in flight was waiting to be sent again."""
        return self._account.waited

    @property
    def unrecorded(self) -> int:
        """Exchanges that could not be written to the record."""
        return self._recorder.lost

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            wire = Wire(connection)
            if connection.family == socket.AF_INET:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            thread = threading.Thread(target=self._serve, args=(wire,), daemon=True)
            with self._lock:
                full = len(self._clients) >= MOST_CONNECTIONS
                if not full:
                    self._clients[thread] = wire
            if full:
                _turn_away(wire)
            else:
                thread.start()

    def _serve(self, wire: Wire) -> None:
        try:
            serve(wire, self._service)
        finally:
            with self._lock:
                self._clients.pop(threading.current_thread(), None)


def _turn_away(wire: Wire) -> None:
    body = error("api_error", f"more than {MOST_CONNECTIONS} connections")
    headers = [("content-length", str(len(body))), ("connection", "close")]
    with suppress(OSError):
        wire.send(written("HTTP/1.1 503 Service Unavailable", headers, body))
    wire.close()


def _on_loopback() -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    listener.listen(MOST_CONNECTIONS)
    return listener


def _on_path(place: Path) -> socket.socket:
    """Listen on a Unix socket that only the user can connect to."""
    with suppress(FileNotFoundError):
        if stat.S_ISSOCK(place.lstat().st_mode):
            place.unlink()  # of a process that was killed
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    os.fchmod(listener.fileno(), 0o600)  # before it has a name that others could open
    folder = os.open(place.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # The kernel takes no socket path over 107 bytes, and folders of runs can be deep.
        listener.bind(f"/proc/self/fd/{folder}/{place.name}")
    except OSError:
        listener.close()
        raise
    finally:
        os.close(folder)
    listener.listen(MOST_CONNECTIONS)
    return listener
