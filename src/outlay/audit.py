"""Which gains that a log calls accepted are larger than the noise that the log itself shows.

Noise is estimated from repeats: rows that evaluate one configuration again. A gain is
*unconfirmed* if it is not above one observed seed difference, the root mean square difference of
two evaluations of one configuration. The *confirmed chain* is stricter: an accepted row joins it
if the 95 % interval of its gain over the last member excludes 0.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlay.auditlog import Row
    from outlay.task import Direction

CONFIDENCE = 0.95
TEST = (
    "an accepted row is confirmed if the 95 % interval (Student's t, pooled standard deviation of "
    "the repeats) of its gain over the last confirmed row excludes 0; one row at a time, without "
    "correction for the number of rows tried"
)

_SEED = re.compile(r"\bseeds?\b", re.IGNORECASE)
# Sums of decimals from a log carry rounding errors; a gain equal to the noise is not above it.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """Evaluations of one configuration.

    Attributes:
        source: How they were recognised, for example `equal hash`.
        rows: The rows, at least two, in the log's order.
    """

    source: str
    rows: tuple[Row, ...]

    @property
    def values(self) -> tuple[float, ...]:
        """Return the metric of each row."""
        return tuple(row.value for row in self.rows if row.value is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The noise of one evaluation, and where it comes from.

    Attributes:
        sd: Standard deviation of one evaluation, in metric units.
        degrees: Degrees of freedom of `sd`; infinite if it was given.
        source: In words.
        repeats: The evaluations that it was estimated from; empty if it was given.
    """

    sd: float
    degrees: float
    source: str
    repeats: tuple[Repeats, ...] = ()

    @property
    def difference(self) -> float:
        """Return the root mean square difference of two evaluations of one configuration."""
        return self.sd * math.sqrt(2)

    def half_width(self, first: int, second: int) -> float:
        """Return half the 95 % interval of a difference between means of so many evaluations."""
        from scipy.special import ndtri, stdtrit

        tail = (1 + CONFIDENCE) / 2
        known = math.isinf(self.degrees)
        quantile = float(ndtri(tail) if known else stdtrit(self.degrees, tail))
        return quantile * self.sd * math.sqrt(1 / first + 1 / second)


class Entry(NamedTuple):
    """One configuration in a log: its first row, the mean of its evaluations and their number."""

    row: Row
    value: float
    n: int
    accepted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """One accepted row after the baseline. Gains are signed so that positive is better.

    Attributes:
        entry: The row.
        previous: The champion of the log before it.
        gain: Gain over `previous`.
        unconfirmed: Whether `gain` is not above one seed difference; `None` if noise is unknown.
        anchor: The last confirmed champion before it; `None` if noise is unknown.
        over_anchor: Gain over `anchor`.
        low, high: Its 95 % interval.
        confirmed: Whether `low` is above 0.
    """

    entry: Entry
    previous: Entry
    gain: float
    unconfirmed: bool | None = None
    anchor: Entry | None = None
    over_anchor: float | None = None
    low: float | None = None
    high: float | None = None
    confirmed: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What a log shows.

    Attributes:
        entries: Every configuration with a value, in the log's order; the first is the baseline.
        failed: Rows without a value.
        gains: Accepted configurations after the baseline.
        noise: `None` if the log holds no repeats and no noise was given.
    """

    entries: tuple[Entry, ...]
    failed: int
    gains: tuple[Gain, ...]
    noise: Noise | None

    @property
    def unconfirmed(self) -> int | None:
        """Return how many gains are not above one seed difference; `None` without noise."""
        return sum(g.unconfirmed is True for g in self.gains) if self.noise else None

    @property
    def confirmed_chain(self) -> tuple[Gain, ...] | None:
        """Return the confirmed gains; `None` without noise."""
        return tuple(g for g in self.gains if g.confirmed) if self.noise else None


def audit(rows: Sequence[Row], direction: Direction, noise_sd: float | None = None) -> Audit:
    """Return what the log shows about its own accepted gains.

    Args:
        rows: The log; the first row with a value is the baseline.
        direction: Which way is better.
        noise_sd: Standard deviation of one evaluation, above 0; `None` estimates it from repeats.

    Raises:
        ValueError: If no row has a value.
    """
    entries = _entries(rows)
    if not entries:
        raise ValueError("no row has a value")
    if noise_sd is not None:
        noise: Noise | None = Noise(sd=noise_sd, degrees=math.inf, source="given")
    else:
        noise = estimate_noise(rows)
    gains = _gains(entries, 1.0 if direction == "maximize" else -1.0, noise)
    failed = sum(row.outcome == "failed" for row in rows)
    return Audit(entries=entries, failed=failed, gains=gains, noise=noise)


def estimate_noise(rows: Sequence[Row]) -> Noise | None:
    """Return the pooled standard deviation of all repeats, or `None` if there are none."""
    repeats = find_repeats(rows)
    if not repeats:
        return None
    squares, degrees = 0.0, 0
    for group in repeats:
        mean = math.fsum(group.values) / len(group.values)
        squares += math.fsum((value - mean) ** 2 for value in group.values)
        degrees += len(group.values) - 1
    source = "repeats in the log: " + ", ".join(sorted({group.source for group in repeats}))
    return Noise(sd=math.sqrt(squares / degrees), degrees=degrees, source=source, repeats=repeats)


def find_repeats(rows: Sequence[Row]) -> tuple[Repeats, ...]:
    """Return the rows that evaluate one configuration, in groups of at least two.

    Rows are of one configuration if they agree in the repeats column or in the hash; if they agree
    in the description under the same champion, since a description names a change and not what it
    was made to; or if the description names the seed, which repeats the champion of that moment.
    """
    same: dict[tuple[str, ...], int] = {}
    groups: dict[int, list[Row]] = {}
    sources: dict[int, set[str]] = {}
    champion = -1
    for row in rows:
        if row.value is None:
            continue
        found = _earlier(row, champion, same)
        first, source = found if found else (row.line, "")
        groups.setdefault(first, []).append(row)
        sources.setdefault(first, set()).update({source} - {""})
        for key in _keys(row, champion):
            same.setdefault(key, first)
        if row.outcome == "accepted" or champion < 0:
            champion = first
    return tuple(
        Repeats(source=" and ".join(sorted(sources[first])), rows=tuple(group))
        for first, group in groups.items()
        if len(group) > 1
    )


def _keys(row: Row, champion: int) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    if row.repeats:
        found.append(("repeats column", row.repeats))
    if row.hash:
        found.append(("equal hash", row.hash))
    if row.description:
        found.append(("equal description, same champion", row.description, str(champion)))
    return found


def _earlier(row: Row, champion: int, same: dict[tuple[str, ...], int]) -> tuple[int, str] | None:
    """Return the first line of the row's configuration and how it was recognised."""
    for key in _keys(row, champion):
        if key in same:
            return same[key], key[0]
    if _SEED.search(row.description) and champion >= 0:
        return champion, "seed in the description"
    return None


def _entries(rows: Sequence[Row]) -> tuple[Entry, ...]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if row.value is not None:
            groups.setdefault(row.repeats or f"\0{row.line}", []).append(row)
    return tuple(
        Entry(
            row=group[0],
            value=math.fsum(row.value for row in group if row.value is not None) / len(group),
            n=len(group),
            accepted=any(row.outcome == "accepted" for row in group),
        )
        for group in groups.values()
    )


def _gains(entries: Sequence[Entry], sign: float, noise: Noise | None) -> tuple[Gain, ...]:
    previous = anchor = entries[0]
    gains = []
    for entry in entries[1:]:
        if not entry.accepted:
            continue
        gain = _gain(entry, previous, anchor, sign, noise)
        gains.append(gain)
        previous = entry
        anchor = entry if gain.confirmed else anchor
    return tuple(gains)


def _gain(entry: Entry, previous: Entry, anchor: Entry, sign: float, noise: Noise | None) -> Gain:
    gain = sign * (entry.value - previous.value)
    if noise is None:
        return Gain(entry=entry, previous=previous, gain=gain)
    over = sign * (entry.value - anchor.value)
    half = noise.half_width(entry.n, anchor.n)
    return Gain(
        entry=entry,
        previous=previous,
        gain=gain,
        unconfirmed=gain <= noise.difference * (1 + _ROUNDING),
        anchor=anchor,
        over_anchor=over,
        low=over - half,
        high=over + half,
        confirmed=over - half > 0,
    )
