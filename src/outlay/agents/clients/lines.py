"""What all readers of a client's output need: tolerant JSON, numbers, short lines, reasons."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outlay.agents.clients.contract import Reason

_MOST_TOKENS = 10**15
_SHOWN = 300

_SPENT = "the budget of this attempt is spent"  # so says our proxy
_STATUS = re.compile(r"(?:status(?: code)?:?|HTTP|API Error:?)\s+(\d{3})\b", re.IGNORECASE)
_KEY = re.compile(
    r"unauthori[sz]ed|api.?key|authenticat|not logged in|permission_error|/login", re.IGNORECASE
)
_PROVIDER = re.compile(
    r"connect|network|overload|rate.?limit|quota|high demand|timed? ?out|idle timeout|disconnect"
    r"|stream|unavailable|server (?:had an )?error|socket|refused|reset|EOF",
    re.IGNORECASE,
)


def record(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a line is; `None` for any other line."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def part(found: object, *path: str) -> dict[str, Any]:
    """Return the object at a path of names; empty if there is none."""
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def parts(found: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the objects of a list; other things in it are left out."""
    items = found.get(name)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def word(found: dict[str, Any], *names: str) -> str:
    """Return the first of the fields that is text, free of what no file can hold; else empty."""
    for name in names:
        if isinstance(value := found.get(name), str) and value:
            return _storable(value)
    return ""


def _storable(text: str) -> str:
    """Return the text without half characters, which JSON can hold and files cannot."""
    return text.encode("utf-8", "replace").decode("utf-8")


def count(found: dict[str, Any], *names: str) -> int:
    """Return the sum of the fields that are numbers of tokens; what is none counts 0."""
    values = [found.get(name) for name in names]
    return sum(v for v in values if type(v) is int and 0 <= v < _MOST_TOKENS)


def money(found: dict[str, Any], name: str) -> float | None:
    """Return dollars; `None` for what is no finite amount from 0."""
    value = found.get(name)
    if isinstance(value, (int, float)) and 0 <= value < _MOST_TOKENS:
        return float(value)
    return None


def shown(text: str) -> str:
    """Return one line for people, at most 300 characters."""
    line = " ".join(_storable(text[: 4 * _SHOWN]).split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"


def why(text: str, status: int = 0) -> Reason:
    """Return whose fault an error of a request is.

    Args:
        text: What the client says.
        status: HTTP status; 0 looks for one in the text.
    """
    if _SPENT in text:
        return "budget"
    if not status and (found := _STATUS.search(text)):
        status = int(found[1])
    if status in (401, 402, 403) or "insufficient_quota" in text:
        return "key"
    if status in (408, 409, 425, 429) or status >= 500:
        return "provider"
    if status:
        return "agent"
    if _KEY.search(text):
        return "key"
    return "provider" if _PROVIDER.search(text) else "agent"
