"""What an attempt's agent used so far, its limit, and why its latest request failed."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from outlay.agents.clients.contract import Usage
from outlay.tokens import cost, is_spent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from outlay.tokens import Prices

Fault = Literal["", "key", "provider", "cut", "budget"]
"""The key was refused, the provider failed until patience ended, its answer broke off or never
came, the limit was reached."""


_MOST_BROKEN = 6
"""Answers in a row that broke off after which a client that asks again does so for ever."""


class Account:
    """Shared by all requests of an attempt; every method may be called from any thread.

    Args:
        tokens: Limit in tokens as `outlay.tokens.weighed` counts them, or `None`.
        usd: Limit in US dollars, or `None`.
        prices: Needed for a limit in dollars; without them `usage.usd` stays `None`.
        told: Called with the usage so far after each response, one call at a time.
    """

    def __init__(
        self,
        tokens: float | None,
        usd: float | None,
        prices: Prices | None,
        told: Callable[[Usage], None],
    ) -> None:
        if usd is not None and prices is None:
            raise ValueError("a limit in dollars needs prices")
        self._lock = threading.RLock()
        self._tokens = tokens
        self._usd = usd
        self._prices = prices
        self._told = told
        self._usage = Usage(source="proxy", usd=None if prices is None else 0.0)
        self._fault: Fault = ""
        self._refused = False
        self._broken = 0
        self._busy = 0
        self._backing_off = 0
        self._waited = 0.0
        self._since = 0.0

    @property
    def usage(self) -> Usage:
        """What was used."""
        with self._lock:
            return self._usage

    @property
    def fault(self) -> Fault:
        """Why the latest request failed, empty if it did not; a refusal for the limit stays."""
        with self._lock:
            return "budget" if self._refused else self._fault

    @property
    def hopeless(self) -> bool:
        """Whether nothing is in flight, and the next request would fail as the latest did.

        An answer that broke off says so only with five others in a row before it.
        """
        with self._lock:
            passing = self.fault == "cut" and self._broken < _MOST_BROKEN
            return self._busy == 0 and self.fault != "" and not passing

    @property
    def waited(self) -> float:
        """Seconds in which every request in flight was backing off."""
        with self._lock:
            return self._waited + (time.monotonic() - self._since if self._is_idle() else 0.0)

    def add(self, usage: Usage) -> None:
        """Count one response."""
        with self._lock:
            if self._prices is not None:
                usage = usage._replace(usd=cost(usage, self._prices))
            self._usage = self._usage.plus(usage)
            self._told(self._usage)

    def is_spent(self) -> bool:
        """Return whether a limit is reached, and note that a request was refused for it."""
        with self._lock:
            spent = is_spent(self._usage, self._tokens, self._usd)
            self._refused |= spent
            return spent

    def ended(self, fault: Fault, *, begun: bool = False) -> None:
        """Note how a request ended, or that its answer has begun."""
        with self._lock:
            self._fault = fault
            if not begun:
                self._broken = self._broken + 1 if fault == "cut" else 0

    @contextmanager
    def working(self) -> Iterator[None]:
        """Hold while a request is in flight."""
        with self._moving(busy=1):
            yield

    @contextmanager
    def backing_off(self) -> Iterator[None]:
        """Hold while a request in flight waits before it is sent again."""
        with self._moving(busy=0, backing_off=1):
            yield

    @contextmanager
    def _moving(self, *, busy: int, backing_off: int = 0) -> Iterator[None]:
        self._move(busy, backing_off)
        try:
            yield
        finally:
            self._move(-busy, -backing_off)

    def _move(self, busy: int, backing_off: int) -> None:
        with self._lock:
            now = time.monotonic()
            if self._is_idle():
                self._waited += now - self._since
            self._busy += busy
            self._backing_off += backing_off
            self._since = now

    def _is_idle(self) -> bool:
        return self._backing_off > 0 and self._backing_off == self._busy
