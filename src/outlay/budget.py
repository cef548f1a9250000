"""Limits, charges and reservations: what was spent, what is held, and what is left."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from typing import TYPE_CHECKING, Literal

import msgspec

from outlay.tokens import weighed

if TYPE_CHECKING:
    from outlay.task import Budget

Kind = Literal["execution", "planning", "measurement"]


class Charge(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one piece of work used.

    Attributes:
        attempts: Whole attempts.
        tokens_in: Input tokens that were not cached.
        tokens_cached: Input tokens read from a cache.
        tokens_out: Output tokens.
        usd: US dollars.
        seconds: Wall clock of the work itself.
    """

    attempts: int = 0
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    usd: float = 0.0
    seconds: float = 0.0

    @property
    def tokens(self) -> float:
        """Tokens as the limit counts them, cached ones at `outlay.tokens.CACHED_TOKEN_RATE`."""
        return weighed(self.tokens_in, self.tokens_cached, self.tokens_out)

    def __add__(self, other: Charge) -> Charge:
        return Charge(
            attempts=self.attempts + other.attempts,
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_cached=self.tokens_cached + other.tokens_cached,
            tokens_out=self.tokens_out + other.tokens_out,
            usd=self.usd + other.usd,
            seconds=self.seconds + other.seconds,
        )


NOTHING = Charge()


class Remaining(msgspec.Struct, frozen=True, kw_only=True):
    """What is left under each limit after what was spent and what is held; `None`: unlimited."""

    attempts: float | None = None
    tokens: float | None = None
    usd: float | None = None
    seconds: float | None = None

    def lacking(self, cost: Charge) -> str:
        """Return the name of the first limit that `cost` does not fit under, or an empty text.

        A limit that is passed already keeps from nothing that takes none of it, but for wall
        clock, which everything takes.
        """
        for name in ("attempts", "tokens", "usd", "seconds"):
            left, needed = getattr(self, name), getattr(cost, name)
            if left is not None and needed > left + 1e-9 and (needed or name == "seconds"):
                return name
        return ""


class Recent:
    """The 90th percentile of the latest values, in logarithmic time a value.

    Args:
        window: Values that it is taken over.
    """

    __slots__ = ("_latest", "_ordered")

    def __init__(self, window: int) -> None:
        self._latest: deque[float] = deque(maxlen=window)
        self._ordered: list[float] = []

    def add(self, value: float) -> None:
        """Take in a value; the oldest one beyond the window is forgotten."""
        if len(self._latest) == self._latest.maxlen:
            del self._ordered[bisect_left(self._ordered, self._latest[0])]
        self._latest.append(value)
        insort(self._ordered, value)

    def high(self) -> float | None:
        """Return the percentile, `None` without any value."""
        return self._ordered[int(0.9 * (len(self._ordered) - 1))] if self._ordered else None


class Ledger:
    """Every charge by kind, and every reservation for work in flight.

    `spent` never shrinks; a reservation is released when its work is settled, whatever came of it.
    """

    __slots__ = ("by_kind", "reservations", "spent")

    def __init__(self) -> None:
        self.by_kind: dict[Kind, Charge] = {}
        self.reservations: dict[str, Charge] = {}
        self.spent = NOTHING

    @property
    def held(self) -> Charge:
        """What is reserved for all the work in flight."""
        total = NOTHING
        for charge in self.reservations.values():
            total += charge
        return total

    def reserve(self, work: str, charge: Charge) -> None:
        """Hold `charge` for `work`; work holds one reservation at a time."""
        if work in self.reservations:
            raise ValueError(f"{work} already holds a reservation")
        self.reservations[work] = charge

    def settle(self, work: str, kind: Kind, charge: Charge) -> None:
        """Release the reservation of `work` and record what it really used."""
        del self.reservations[work]
        self.record(kind, charge)

    def record(self, kind: Kind, charge: Charge) -> None:
        """Record a charge that was never reserved."""
        self.spent += charge
        self.by_kind[kind] = self.by_kind.get(kind, NOTHING) + charge

    def remaining(self, budget: Budget, elapsed: float) -> Remaining:
        """Return what is left; `elapsed` is the driver's wall clock over all sittings, seconds.

        Work in flight runs beside the clock, so wall clock is not reserved for it here.
        """
        spent, held = self.spent, self.held
        return Remaining(
            attempts=_left(budget.attempts, spent.attempts + held.attempts),
            tokens=_left(budget.tokens, spent.tokens + held.tokens),
            usd=_left(budget.usd, spent.usd + held.usd),
            seconds=_left(budget.seconds, elapsed),
        )

    def remaining_ratio(self, budget: Budget, elapsed: float) -> float:
        """Return `r_t`, the smallest remaining share of any limit, in [0, 1]."""
        spent, held, ratio = self.spent, self.held, 1.0
        for limit, used in (
            (budget.attempts, spent.attempts + held.attempts),
            (budget.tokens, spent.tokens + held.tokens if budget.tokens else 0.0),
            (budget.usd, spent.usd + held.usd),
            (budget.seconds, elapsed),
        ):
            if limit:
                ratio = min(ratio, (limit - used) / limit)
        return max(0.0, ratio)


def _left(limit: float | None, used: float) -> float | None:
    return None if limit is None else limit - used
