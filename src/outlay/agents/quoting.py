"""Text that programs left, for a prompt: cut to size, and between markers it cannot forge."""

from __future__ import annotations

import hashlib
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_TELLING = ("error", "exception", "traceback", "failed", "fatal", "warning", "nan", "killed")
_LONGEST_LINE = 300
_ERROR_LINES = 20
_LEAST_PART = 200


def mark(secret: str, texts: Sequence[str]) -> str:
    """Return a word for the markers around the texts, in none of which it occurs.

    Args:
        secret: What the programs that left the texts do not know, the same for a whole run so that
            prompts begin alike and a provider's cache knows them.
        texts: All that will stand between markers.
    """
    words = (hashlib.sha256(f"{secret}/{k}".encode()).hexdigest()[:16] for k in count())
    return next(word for word in words if not any(word in text for text in texts))


def quoted(name: str, word: str, text: str) -> str:
    """Return the text between its two markers."""
    return f"<<<{name} {word}>>>\n{text}\n<<<end of {name} {word}>>>"


def shortened(text: str, most: int) -> str:
    """Return at most `most` characters of a text: its head and its tail, and what is left out."""
    if len(text) <= most:
        return text
    note = f"\n[... {len(text)} characters in all ...]\n"
    room = most - len(note)
    if room < 2:
        return text[: max(most, 0)]
    return text[: room // 2] + note + text[len(text) - room // 2 :]


def log_excerpt(text: str, most: int) -> str:
    """Return at most `most` characters of a log: head, lines that tell of trouble, and tail."""
    text = text.strip("\n")
    part = most // 3
    if len(text) <= most or part < _LEAST_PART:
        return shortened(text, most)
    middle = text[part // 2 : len(text) - part]
    told = [line[:_LONGEST_LINE] for line in middle.splitlines() if _is_telling(line)]
    errors = shortened("\n".join(list(dict.fromkeys(told))[-_ERROR_LINES:]), part)
    between = f"[... from the middle, what tells of trouble ...]\n{errors}" if errors else ""
    parts = [text[: part // 2], between, "[... the end ...]", text[len(text) - part :]]
    return "\n".join(part for part in parts if part)


def _is_telling(line: str) -> bool:
    lowered = line[:_LONGEST_LINE].lower()
    return any(word in lowered for word in _TELLING)
