"""When a request that failed is sent again. Pure: the time is an argument."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import NamedTuple


class Pace(NamedTuple):
    """Seconds.

    Attributes:
        first: The first pause; each further one is twice as long.
        most: The longest pause, whatever the provider asks for.
        connect: Limit for reaching the provider.
        idle: Limit of the provider's silence, before its answer and in the middle of it.
    """

    first: float = 1.0
    most: float = 60.0
    connect: float = 10.0
    idle: float = 300.0


def asked_for(headers: dict[str, str], now: float) -> float:
    """Return the pause that a provider asks for, 0 if it asks for none that can be read.

    Args:
        headers: Of its answer, of which `retry-after-ms` and `retry-after` (a number or a date)
            count.
        now: Unix time.
    """
    told = {name.lower(): value for name, value in headers.items()}
    seconds = told.get("retry-after", "")
    for text, scale in ((told.get("retry-after-ms", ""), 0.001), (seconds, 1.0)):
        with suppress(ValueError):
            return max(float(text) * scale, 0.0)
    if "," not in seconds:
        return 0.0
    from email.utils import parsedate_to_datetime  # slow to import, and dates are rare

    try:
        return max(parsedate_to_datetime(seconds).timestamp() - now, 0.0)
    except (ValueError, OverflowError):
        return 0.0


def pause(pace: Pace, number: int, asked: float) -> float:
    """Return the seconds before try `number + 1`, counted from 0; `asked` by the provider."""
    wanted = max(pace.first * 2.0 ** min(number, 30), asked)
    return min(wanted, pace.most) if wanted == wanted else pace.most  # NaN asks for the most


class Spell:
    """How long a provider has been failing; shared by all requests, from any thread.

    A spell begins with the first failure since an answer and ends with the next answer, so
    requests that wait side by side, or that a client sends anew, share one patience.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._lock = threading.Lock()
        self._since: float | None = None

    def failed(self, now: float) -> float:
        """Return the time up to which a request that failed now may wait."""
        with self._lock:
            if self._since is None:
                self._since = now
            return self._since + self._patience

    def answered(self) -> None:
        """End the spell."""
        with self._lock:
            self._since = None
