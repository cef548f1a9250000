"""Which paths a glob names. Standard library only.

A path is relative to the workspace, with `/` between its parts. `*` and `?` stay within one part,
`**` spans any number of parts, every other character stands for itself. A glob that names a folder
names everything beneath it.
"""

from __future__ import annotations

import re
from functools import lru_cache


def matches(path: str, globs: tuple[str, ...]) -> bool:
    """Return whether any of the globs names the path or a folder above it."""
    return any(_compiled(glob).match(path) is not None for glob in globs)


def is_literal(glob: str) -> bool:
    """Return whether the glob is a plain path, without any wildcard."""
    return not any(c in glob for c in "*?")


@lru_cache(maxsize=1024)
def _compiled(glob: str) -> re.Pattern[str]:
    parts = [p for p in glob.split("/") if p not in ("", ".")]
    pattern = "".join("(?:[^/]+/)*" if p == "**" else _part(p) + "/" for p in parts[:-1])
    last = parts[-1] if parts else "**"
    pattern += "[^/]+(?:/.*)?" if last == "**" else _part(last) + "(?:/.*)?"
    return re.compile(pattern + r"\Z", re.DOTALL)


def _part(glob: str) -> str:
    wild = {"*": "[^/]*", "?": "[^/]"}
    return "".join(wild.get(c) or re.escape(c) for c in re.sub(r"\*+", "*", glob))
