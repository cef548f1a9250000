"""A plain model: one question, one answer, over OpenAI's or Anthropic's protocol.

It works no tools and changes no files, so it can draft plans but not carry them out.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from outlay.agents.ask import KEY, MISSING
from outlay.agents.clients.contract import Ending, Happened, Invocation, Usage
from outlay.agents.clients.lines import count, record, shown, word

if TYPE_CHECKING:
    from outlay.agents.clients.contract import Reason, Request

Api = Literal["openai", "anthropic"]

_APIS: tuple[Api, ...] = ("openai", "anthropic")
_REASONS = ("agent", "key", "provider", "budget")
_FILE = "request.json"


class Named(NamedTuple):
    """A model and the protocol that it is asked over."""

    api: Api
    model: str


def named(model: str) -> Named:
    """Return what `anthropic:NAME` or `openai:NAME` stands for; OpenAI's protocol by default."""
    prefix, colon, name = model.partition(":")
    if colon and prefix in _APIS:
        return Named(prefix, name)
    return Named("openai", model)


class Model:
    """The adapter."""

    name = "model"

    def invoke(self, request: Request) -> Invocation:
        """Return the command line; raises `ValueError` without the name of a model."""
        api, model = named(request.model)
        if not model:
            raise ValueError(
                "model: found no name, allowed: NAME of any server that speaks OpenAI's protocol, "
                "or anthropic:NAME"
            )
        if not request.command and importlib.util.find_spec("pydantic_ai") is None:
            raise ValueError(f"model: {MISSING}")
        if request.session:
            raise ValueError("model: found a session, allowed: none, as every question is new")
        asked = {
            "prompt": request.prompt,
            "schema": request.schema,
            "model": model,
            "api": api,
            "url": request.url,
        }
        own = (sys.executable, "-I", "-m", "outlay.agents.ask")
        return Invocation(
            (*(request.command or own), f"{request.home}/{_FILE}"),
            {"HOME": request.home, **({KEY: request.key} if request.key else {})},
            {_FILE: json.dumps(asked)},
        )

    def reader(self, before: Usage = Usage()) -> ModelReader:  # noqa: B008 - never changed
        """Return a reader for one question; there is nothing before it."""
        return ModelReader()

    def recover(self, home: str, session: str = "") -> Usage:
        """Return that nothing is known: there are no session files."""
        return Usage(source="session", complete=False)


class ModelReader:
    """Reads the lines of one `outlay.agents.ask`."""

    def __init__(self) -> None:
        self.hopeless = False
        self._usage = Usage(source="stream", complete=False)
        self._last: dict[str, Any] = {}

    def line(self, text: str) -> list[Happened]:
        """Return what this line tells."""
        told = record(text) or {}
        match told.get("type"):
            case "usage":
                self._usage = self._usage.plus(_counted(told))
                return [Happened("usage", f"{self._usage.input} in, {self._usage.output} out")]
            case "refused":
                return [Happened("error", f"it takes no schema: {shown(word(told, 'text'))}")]
            case "answer":
                self._last = told
                return [Happened("message", shown(word(told, "text")))]
            case "failure":
                self._last = told
                return [Happened("error", shown(word(told, "text")))]
        return []

    def ending(self, code: int, errors: str) -> Ending:
        """Return how it ended; an answer that was cut off is none."""
        last, kind = self._last, self._last.get("type")
        finish = word(last, "finish")
        cut = finish not in ("", "stop")
        answered = kind == "answer" and code == 0
        reason: Reason = "" if answered and not cut else "agent"
        if kind == "failure" and last.get("reason") in _REASONS:
            reason = last["reason"]
        detail = word(last, "text") if kind == "failure" else ""
        if answered and cut:
            detail = f"the answer did not end by itself: {finish}"
        elif not answered and not detail:
            detail = errors.strip() or f"it ended with {code} before it answered"
        return Ending(
            ok=not reason,
            reason=reason,
            detail=shown(detail),
            answer=word(last, "text") if kind == "answer" else "",
            usage=self._usage._replace(complete=kind == "answer"),
        )


def _counted(told: dict[str, Any]) -> Usage:
    return Usage(
        input=count(told, "input"),
        cached=count(told, "cached"),
        cache_write=count(told, "cache_write"),
        output=count(told, "output"),
        reasoning=count(told, "reasoning"),
        requests=1,
    )
