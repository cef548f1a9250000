"""Taking secrets out of what is kept, wherever they turn up."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from outlay.agents.access import PROVIDERS
from outlay.execution.metering.record import OWN_SECRET, REDACTED, forms, redacted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from outlay.task import Task

_LEAST_KEY = 16
"""Characters from which on a value counts as a key by the name of its variable alone."""

_NAMES = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS)$")
_SHAPES = re.compile(rf"{OWN_SECRET.pattern}|(?<![A-Za-z0-9_-])sk-[A-Za-z0-9_-]{{20,}}")


def secrets_of(task: Task, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the keys at hand: those that the task or a provider names, and lookalikes."""
    named = {task.agent.key, task.reflector.key, *(key for _, key in PROVIDERS.values())}
    return tuple(
        value
        for name, value in environment.items()
        if value and (name in named or (_NAMES.search(name.upper()) and _is_key(value)))
    )


def _is_key(value: str) -> bool:
    """Return whether a value reads as no word, number or sentence."""
    is_one_word = not re.search(r"\s", value) and any(c.isdigit() for c in value)
    return is_one_word and not value.isdigit() and len(value) >= _LEAST_KEY


class Hiding:
    """Cuts secrets out of texts, JSON values and the contents of files.

    Beside the given secrets it knows those of our own proxy, and keys that begin with `sk-`.

    Attributes:
        renamed: Texts that take the place of others, such as the names of changed files.
        cut: Texts that held a secret.
    """

    def __init__(self, secrets: tuple[str, ...]) -> None:
        self._forms = forms(secrets)
        self.renamed: dict[str, str] = {}
        self.cut = 0

    def text(self, text: str) -> str:
        """Return the text without secrets."""
        clean = _SHAPES.sub(REDACTED, redacted(text, self._forms))
        self.cut += clean != text
        return self.renamed.get(clean, clean)

    def value(self, value: Any) -> Any:
        """Return a JSON value in which no text holds a secret."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(name): self.value(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self.value(part) for part in value]
        return value

    def content(self, content: bytes) -> bytes:
        """Return a file's content without secrets."""
        return self.text(content.decode("utf-8", "surrogateescape")).encode(
            "utf-8", "surrogateescape"
        )
