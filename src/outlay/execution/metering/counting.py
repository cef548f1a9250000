"""Usage of one response from the provider's own fields, or an estimate where they never came.

All three protocols are brought to one meaning (`contract.Usage`):

responses   `usage` of the last event, `response.completed` or `response.incomplete`
messages    `usage` of `message_start`, overwritten by that of `message_delta`, which is a running
            total; its input excludes what a cache gave or took, so that is added
chat        `usage` of the chunk after the last choice

The estimate: a token is four bytes of the request's body, or of the text that was streamed, or of
what could not be read. What the provider told before its answer ended is kept.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from outlay.agents.clients.contract import Usage
from outlay.execution.metering.events import Events

if TYPE_CHECKING:
    from outlay.execution.metering.events import Event

Protocol = Literal["responses", "messages", "chat"]

BYTES_PER_TOKEN = 4
"""In an estimate."""

_LABELS = ("type", "id", "role", "name", "finish_reason", "stop_reason", "index")
_MOST = 10**12


class Counter:
    """Counts one response.

    Args:
        protocol: What the provider speaks.
        asked: Bytes of the request's body.

    Attributes:
        done: Whether the provider told the whole usage.
        over: Whether the last event of a stream was there.
        failed: Whether it told of an error in the middle of its answer.
    """

    def __init__(self, protocol: Protocol, asked: int) -> None:
        self.done = False
        self.over = False
        self.failed = False
        self._protocol = protocol
        self._asked = asked
        self._events = Events()
        self._fields: dict[str, Any] = {}
        self._finished = False
        self._text = 0

    def feed(self, piece: bytes) -> list[Event]:
        """Take in bytes of a stream and return the events that they complete."""
        events = self._events.feed(piece)
        for event in events:
            if data := parsed(event.data):
                self._take(data)
            elif event.data == b"[DONE]":
                self.over = True
            else:
                self._text += len(event.data)
        return events

    def rest(self) -> bytes:
        """Return the bytes of a stream that no event took."""
        return self._events.rest()

    def whole(self, body: bytes) -> None:
        """Take in a body that is no stream."""
        answer = parsed(body)
        if self._merge(answer.get("usage")):
            self.done = True
        else:
            self._text += len(body)

    def usage(self) -> Usage:
        """Return the usage, marked incomplete if some of it is an estimate."""
        told = _NORMAL[self._protocol](self._fields)._replace(source="proxy", requests=1)
        if self.done:
            return told
        text = self._text + len(self.rest())
        if self.failed and not text:
            return told._replace(complete=False)
        return told._replace(
            input=told.input or tokens(self._asked),
            output=max(told.output, tokens(text)),
            complete=False,
        )

    def _take(self, data: dict[str, Any]) -> None:
        if self._protocol == "responses":
            self._take_responses(data)
        elif self._protocol == "messages":
            self._take_messages(data)
        else:
            self._take_chat(data)

    def _take_responses(self, data: dict[str, Any]) -> None:
        kind = str(data.get("type"))
        if kind.endswith(".delta"):
            self._text += spoken(data.get("delta"))
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            self.failed = kind == "response.failed"
            self.done = self._merge(_field(data, "response", "usage"))
            self.over = True
        elif kind == "error":
            self.failed = True

    def _take_messages(self, data: dict[str, Any]) -> None:
        kind = data.get("type")
        if kind == "message_start":
            self._merge(_field(data, "message", "usage"))
        elif kind == "content_block_delta":
            self._text += spoken(data.get("delta"))
        elif kind == "message_delta":
            self.done = self._merge(data.get("usage")) or self.done
        elif kind == "message_stop":
            self.over = True
        elif kind == "error":
            self.failed = True

    def _take_chat(self, data: dict[str, Any]) -> None:
        choices = data.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            self._text += spoken(_field(choice, "delta"))
            self._finished |= bool(_field(choice, "finish_reason"))
        self._merge(data.get("usage"))
        self.done = self._finished and bool(self._fields)
        self.failed |= "error" in data

    def _merge(self, usage: Any) -> bool:
        """Take in fields that are told; those told later win."""
        if not isinstance(usage, dict) or not usage:
            return False
        self._fields |= {name: value for name, value in usage.items() if value is not None}
        return True


def is_only_usage(data: bytes) -> bool:
    """Return whether a chunk of a chat says nothing but its usage."""
    chunk = parsed(data)
    return chunk.get("choices") == [] and bool(chunk.get("usage"))


def parsed(text: bytes) -> dict[str, Any]:
    """Return a JSON object, an empty one for anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def tokens(size: int) -> int:
    """Return the estimate for so many bytes."""
    return -(-size // BYTES_PER_TOKEN)


def spoken(delta: Any) -> int:
    """Return the bytes of text in a delta, labels left out."""
    if isinstance(delta, str):
        return len(delta.encode("utf-8", "replace"))
    if isinstance(delta, list):
        return sum(spoken(part) for part in delta)
    if isinstance(delta, dict):
        return sum(spoken(part) for name, part in delta.items() if name not in _LABELS)
    return 0


def _field(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _number(fields: dict[str, Any], *names: str) -> int:
    value = _field(fields, *names)
    return value if type(value) is int and 0 <= value < _MOST else 0


def _openai(fields: dict[str, Any], asked: str, answered: str) -> Usage:
    told = _number(fields, f"{asked}_tokens")
    cached = min(_number(fields, f"{asked}_tokens_details", "cached_tokens"), told)
    write = _number(fields, f"{asked}_tokens_details", "cache_write_tokens")
    # Some providers leave reasoning out of the output, but none leaves it out of the total.
    output = max(_number(fields, f"{answered}_tokens"), _number(fields, "total_tokens") - told)
    reasoning = _number(fields, f"{answered}_tokens_details", "reasoning_tokens")
    return Usage(
        input=told,
        cached=cached,
        cache_write=min(write, told - cached),
        output=output,
        reasoning=min(reasoning, output),
    )


def _responses(fields: dict[str, Any]) -> Usage:
    return _openai(fields, "input", "output")


def _chat(fields: dict[str, Any]) -> Usage:
    return _openai(fields, "prompt", "completion")


def _messages(fields: dict[str, Any]) -> Usage:
    cached = _number(fields, "cache_read_input_tokens")
    write = _number(fields, "cache_creation_input_tokens")
    output = _number(fields, "output_tokens")
    return Usage(
        input=_number(fields, "input_tokens") + cached + write,
        cached=cached,
        cache_write=write,
        output=output,
        reasoning=min(_number(fields, "output_tokens_details", "thinking_tokens"), output),
    )


_NORMAL = {"responses": _responses, "messages": _messages, "chat": _chat}
