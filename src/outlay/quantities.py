"""Amounts with a unit, as people write them: `"1.5M"` tokens, `"2h"`, `"2GB"`.

Each function takes a number or a text and raises `ValueError` with a sentence on what is allowed.
Decimal arithmetic, so that `"0.1M"` is exactly 100,000.
"""

from __future__ import annotations

import re
from decimal import Decimal

COUNT = "a whole number of at least 0 such as 1500000 or 1.5M (k, M, G)"
DURATION = "a number of seconds, or a text such as 90s, 10m, 2h, 1h30m or 1d"
SIZE = "a number of bytes, or a text such as 512MB, 2GB or 2GiB"

_COUNTS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9}
_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_BYTES = {"": 1, "b": 1}
_BYTES |= {f"{p}{e}": 1000**i for i, p in enumerate("kmgt", 1) for e in ("", "b")}
_BYTES |= {f"{p}ib": 1024**i for i, p in enumerate("kmgt", 1)}

_NUMBER = r"[0-9]{1,18}(?:\.[0-9]{0,9})?"
_WHOLE = re.compile(rf"\s*({_NUMBER})\s*([A-Za-z]*)\s*", re.ASCII)
_LARGEST = 10**18


def count(value: object) -> int:
    """Return a whole number of things, such as tokens: `1500000`, `"1.5M"`, `"20k"`."""
    return _whole(value, _COUNTS, COUNT)


def size(value: object) -> int:
    """Return a number of bytes: `"2GB"` is 2e9, `"2GiB"` is 2 * 1024**3."""
    return _whole(value, _BYTES, SIZE)


def duration(value: object) -> float:
    """Return seconds: `90`, `"90s"`, `"1.5h"`, `"1h30m"`."""
    if isinstance(value, str):
        return float(sum(_duration_parts(value)))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(DURATION)
    if not 0 <= value <= _LARGEST:
        raise ValueError(DURATION)
    return float(value)


def _whole(value: object, units: dict[str, int], allowed: str) -> int:
    if isinstance(value, str):
        match = _WHOLE.fullmatch(value)
        unit = units.get(match[2].lower()) if match else None
        if match is None or unit is None:
            raise ValueError(allowed)
        amount = Decimal(match[1]) * unit
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and value == value:
        amount = Decimal(value)
    else:
        raise ValueError(allowed)
    if not 0 <= amount <= _LARGEST or amount != int(amount):
        raise ValueError(allowed)
    return int(amount)


def _duration_parts(text: str) -> list[Decimal]:
    compact = re.sub(r"(?<![0-9])\s+|\s+(?![0-9])", "", text, flags=re.ASCII).lower()
    if match := re.fullmatch(_NUMBER, compact, re.ASCII):
        return [Decimal(match[0])]
    if not re.fullmatch(f"(?:{_NUMBER}(?:ms|[smhd]))+", compact, re.ASCII):
        raise ValueError(DURATION)
    parts = re.findall(f"({_NUMBER})(ms|[smhd])", compact, re.ASCII)
    return [Decimal(amount) * _MILLISECONDS[unit] / 1000 for amount, unit in parts]
