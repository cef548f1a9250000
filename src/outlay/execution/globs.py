"""Which paths a list of globs covers. Paths are relative, with `/` between their parts."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def covers(patterns: Iterable[str], path: str) -> bool:
    """Return whether any pattern matches the path or a folder above it.

    `*` and `?` stay within one part, `**` is any number of parts, `[ab]` and `[!ab]` are sets.
    A pattern without `**` is anchored at the top: `data` covers `data/x`, not `src/data`.
    """
    return any(_compiled(pattern).match(path) is not None for pattern in patterns)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    out = ""
    for i, part in enumerate(parts):
        last = i == len(parts) - 1
        if part == "**":
            out += ".+" if last else "(?:[^/]+/)*"
        else:
            out += _part(part) + ("" if last else "/")
    return re.compile(out + r"(?:/.*)?\Z", re.DOTALL)


def _part(part: str) -> str:
    out, i = "", 0
    while i < len(part):
        char = part[i]
        end = part.find("]", i + 2) if char == "[" else -1
        if char == "*":
            out += "[^/]*"
        elif char == "?":
            out += "[^/]"
        elif end > 0:
            inside = part[i + 1 : end].replace("\\", r"\\").replace("[", r"\[")
            out += "(?!/)[" + ("^" + inside[1:] if inside[0] == "!" else inside) + "]"
            i = end
        else:
            out += re.escape(char)
        i += 1
    return out
