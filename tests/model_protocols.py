"""The protocols of OpenAI and Anthropic as the scripted model speaks them: read and written."""

from __future__ import annotations

import json
import time
from typing import Any, Literal, NamedTuple

from outlay.agents.clients.contract import Usage

Protocol = Literal["responses", "messages", "chat"]

Fault = Literal[
    "", "400", "401", "403", "429", "500", "503", "529", "drop", "hang", "cut", "stall", "garbage"
]
"""A status; or the connection closed before an answer, no answer ever, the answer cut off in its
middle, silent for ever in its middle, broken JSON and no end in its middle."""

_FIRST = Usage(input=1200, cached=1000, output=40, reasoning=16)
_LATER = Usage(input=1300, cached=1150, output=12)
_SHELLS = ("exec_command", "shell_command", "shell", "Bash", "bash")
_STRUCTURED = "StructuredOutput"  # how Claude Code asks for an answer of a given form


class Turn(NamedTuple):
    """One answer of the model: a text, a tool call, an object, or a fault.

    Attributes:
        text: Its message; also what is begun before a fault in the middle.
        shell: Command line for whichever shell tool the client offers.
        tool, arguments: Any other tool by name. A tool that is not offered becomes a text.
        answer: Object for a client that asked for an answer of a given form, by its own means.
        usage: What it says it used; by default 1,200 input tokens (1,000 cached) and 40 output
            tokens (16 of reasoning) for a tool call, 1,300 (1,150) and 12 for a text.
        fault: What goes wrong.
        retry_after: Sent along with a status.
        wait: Seconds before the first byte.
    """

    text: str = ""
    shell: str = ""
    tool: str = ""
    arguments: dict[str, Any] = {}  # noqa: RUF012 - never changed in place
    answer: Any = None
    usage: Usage | None = None
    fault: Fault = ""
    retry_after: str = ""
    wait: float = 0.0


class Asked(NamedTuple):
    """What a client asked, read from any of the protocols.

    Attributes:
        protocol: Which one.
        key: The client's key.
        number: How often this key asked for an answer before, faults included.
        prompt: All user text and instructions, in order, one part a line.
        results: Output of every tool that ran, in order.
        called: Names of the tools that ran, in order.
        tools: Names of the tools on offer.
        schema: Form of the answer that is asked for, or `None`.
        body: The request itself.
    """

    protocol: Protocol
    key: str
    number: int
    prompt: str
    results: tuple[str, ...]
    called: tuple[str, ...]
    tools: tuple[str, ...]
    schema: Any
    body: dict[str, Any]


def read(protocol: Protocol, key: str, number: int, body: dict[str, Any]) -> Asked:
    """Return what a request asks."""
    prompt, results, called = _READERS[protocol](body)
    tools = [tool.get("name") or tool.get("function", {}).get("name") or tool.get("type")
             for tool in body.get("tools") or []]  # fmt: skip
    form = (body.get("text") or {}).get("format") or body.get("response_format") or {}
    schema = form.get("schema") or form.get("json_schema", {}).get("schema")
    for tool in body.get("tools") or []:
        if tool.get("name") == _STRUCTURED:
            schema = tool.get("input_schema")
    return Asked(
        protocol=protocol,
        key=key,
        number=number,
        prompt="\n".join(part for part in prompt if part),
        results=tuple(results),
        called=tuple(called),
        tools=tuple(tools),
        schema=schema,
        body=body,
    )


_Parts = tuple[list[str], list[str], list[str]]


def _text(content: Any) -> str:
    """Return the text of a content field: a string, or parts of which some have text."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(p["text"] for p in parts if isinstance(p, dict) and "text" in p)


def _read_responses(body: dict[str, Any]) -> _Parts:
    prompt, results, called = [str(body.get("instructions") or "")], [], []
    items = body.get("input") or []
    for item in [{"content": items}] if isinstance(items, str) else items:
        kind = item.get("type", "message")
        if kind.endswith("_output"):
            output = item.get("output")
            results.append(output if isinstance(output, str) else _text(output))
        elif kind.endswith("_call"):
            called.append(item.get("name") or kind)
        elif kind == "message" and item.get("role") != "assistant":
            prompt.append(_text(item.get("content")))
    return prompt, results, called


def _read_messages(body: dict[str, Any]) -> _Parts:
    prompt, results, called = [_text(body.get("system"))], [], []
    for message in body.get("messages") or []:
        content = message.get("content")
        if message.get("role") == "user":
            prompt.append(_text(content))
        for part in content if isinstance(content, list) else []:
            if part.get("type") == "tool_result":
                results.append(_text(part.get("content")))
            elif part.get("type") == "tool_use":
                called.append(part["name"])
    return prompt, results, called


def _read_chat(body: dict[str, Any]) -> _Parts:
    prompt, results, called = [], [], []
    for message in body.get("messages") or []:
        if message.get("role") == "tool":
            results.append(_text(message.get("content")))
        elif message.get("role") != "assistant":
            prompt.append(_text(message.get("content")))
        called += [call["function"]["name"] for call in message.get("tool_calls") or []]
    return prompt, results, called


_READERS = {"responses": _read_responses, "messages": _read_messages, "chat": _read_chat}


class Said(NamedTuple):
    """A turn fitted to a client: a text, or the call of a tool that it offers."""

    text: str
    tool: str
    arguments: dict[str, Any]
    usage: Usage


def fit(turn: Turn, asked: Asked) -> Said:
    tool, arguments, text = turn.tool, turn.arguments, turn.text
    if turn.shell:
        tool = next((name for name in _SHELLS if name in asked.tools), "")
        arguments = _shell_arguments(tool, turn.shell)
        text = text or f"I would run {turn.shell}"
    elif turn.answer is not None:
        open_form = _STRUCTURED in asked.tools and _STRUCTURED not in asked.called
        tool, arguments = (_STRUCTURED, turn.answer) if open_form else ("", {})
        text = json.dumps(turn.answer)
    if tool not in asked.tools:
        tool, text = "", text or f"I would call {turn.tool}"
    usage = turn.usage or (_FIRST if tool else _LATER)
    if asked.protocol == "messages" and turn.usage is None:
        usage = usage._replace(cache_write=50)
    return Said(text, tool, arguments, usage)


def _shell_arguments(tool: str, command: str) -> dict[str, Any]:
    if tool == "exec_command":
        return {"cmd": command}
    if tool == "shell":
        return {"command": ["bash", "-lc", command]}
    return {"command": command, **({"description": "a step"} if tool in ("Bash", "bash") else {})}


class Event(NamedTuple):
    """One event of a stream; `tells`: with it the client has the whole usage."""

    data: dict[str, Any] | str
    name: str = ""
    tells: bool = False

    def encoded(self) -> bytes:
        data = self.data if isinstance(self.data, str) else json.dumps(self.data)
        return (
            f"event: {self.name}\n" if self.name else ""
        ).encode() + f"data: {data}\n\n".encode()


class Pieces(NamedTuple):
    whole: dict[str, Any]
    events: list[Event]


def _split(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)] or [""]


def told(asked: Asked, said: Said) -> Usage:
    """Return the usage without what a stream was not asked to tell."""
    options = asked.body.get("stream_options") or {}
    if asked.protocol == "chat" and asked.body.get("stream") and not options.get("include_usage"):
        return Usage()
    return said.usage


def _responses(asked: Asked, said: Said, number: int, size: int) -> Pieces:
    used = said.usage
    usage = {
        "input_tokens": used.input,
        "input_tokens_details": {
            "cached_tokens": used.cached,
            "cache_write_tokens": used.cache_write,
        },
        "output_tokens": used.output,
        "output_tokens_details": {"reasoning_tokens": used.reasoning},
        "total_tokens": used.input + used.output,
    }
    item: dict[str, Any] = {"id": f"item_{number}", "status": "completed"}
    if said.tool:
        item |= {"type": "function_call", "name": said.tool, "call_id": f"call_{number}"}
        item["arguments"] = json.dumps(said.arguments)
    else:
        part = {"type": "output_text", "text": said.text, "annotations": []}
        item |= {"type": "message", "role": "assistant", "content": [part]}
    base = {"id": f"resp_{number}", "object": "response", "created_at": int(time.time())}
    base |= {"model": asked.body.get("model"), "parallel_tool_calls": True, "tool_choice": "auto"}
    whole = {**base, "status": "completed", "output": [item], "tools": [], "usage": usage}
    return Pieces(whole, _responses_events(base, item, whole, said, size))


def _responses_events(
    base: dict[str, Any], item: dict[str, Any], whole: dict[str, Any], said: Said, size: int
) -> list[Event]:
    started = {**base, "status": "in_progress", "output": []}
    steps: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": started}),
        (
            "response.output_item.added",
            {"output_index": 0, "item": {**item, "status": "in_progress"}},
        ),
    ]
    at = {"item_id": item["id"], "output_index": 0}
    if said.tool:
        name, text = "response.function_call_arguments", item["arguments"]
    else:
        name, text = "response.output_text", said.text
        at["content_index"] = 0
    steps += [(f"{name}.delta", {**at, "delta": piece}) for piece in _split(text, size)]
    steps.append((f"{name}.done", {**at, "arguments" if said.tool else "text": text}))
    steps.append(("response.output_item.done", {"output_index": 0, "item": item}))
    steps.append(("response.completed", {"response": whole}))
    return [
        Event({"type": kind, "sequence_number": n, **data}, kind, kind == "response.completed")
        for n, (kind, data) in enumerate(steps)
    ]


def _messages(asked: Asked, said: Said, number: int, size: int) -> Pieces:
    used = said.usage
    usage = {
        "input_tokens": used.input - used.cached - used.cache_write,
        "cache_creation_input_tokens": used.cache_write,
        "cache_read_input_tokens": used.cached,
        "output_tokens": used.output,
        "output_tokens_details": {"thinking_tokens": used.reasoning},
    }
    block: dict[str, Any] = {"type": "text", "text": said.text}
    empty: dict[str, Any] = {"type": "text", "text": ""}
    if said.tool:
        block = {"type": "tool_use", "id": f"toolu_{number:04d}", "name": said.tool}
        block["input"] = said.arguments
        empty = {**block, "input": {}}
    stop = {"stop_reason": "tool_use" if said.tool else "end_turn", "stop_sequence": None}
    base = {"id": f"msg_{number}", "type": "message", "role": "assistant"}
    base["model"] = str(asked.body.get("model"))
    begun: dict[str, Any] = {**base, "content": [], "stop_reason": None, "stop_sequence": None}
    begun["usage"] = {**usage, "output_tokens": 1}
    text = json.dumps(said.arguments) if said.tool else said.text
    kind, field = ("input_json_delta", "partial_json") if said.tool else ("text_delta", "text")
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": begun},
        {"type": "ping"},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": kind, field: piece}}
            for piece in _split(text, size)
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": usage},
        {"type": "message_stop"},
    ]
    return Pieces(
        {**base, "content": [block], **stop, "usage": usage},
        [Event(e, str(e["type"]), e["type"] == "message_delta") for e in events],
    )


def _chat(asked: Asked, said: Said, number: int, size: int) -> Pieces:
    used = said.usage
    usage = {
        "prompt_tokens": used.input,
        "completion_tokens": used.output,
        "total_tokens": used.input + used.output,
        "prompt_tokens_details": {
            "cached_tokens": used.cached,
            "cache_write_tokens": used.cache_write,
        },
        "completion_tokens_details": {"reasoning_tokens": used.reasoning},
    }
    base = {"id": f"chatcmpl-{number}", "created": int(time.time())}
    base["model"] = asked.body.get("model")
    text = json.dumps(said.arguments) if said.tool else said.text
    call = {"id": f"call_{number}", "type": "function"}
    message: dict[str, Any] = {"role": "assistant", "content": None if said.tool else text}
    if said.tool:
        message["tool_calls"] = [{**call, "function": {"name": said.tool, "arguments": text}}]
    end = "tool_calls" if said.tool else "stop"
    choice = {"index": 0, "message": message, "finish_reason": end}
    whole = {**base, "object": "chat.completion", "choices": [choice], "usage": usage}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> Event:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        return Event({**base, "object": "chat.completion.chunk", "choices": choices})

    def piece(text: str) -> dict[str, Any]:
        if not said.tool:
            return {"content": text}
        return {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}

    events = [chunk({"role": "assistant", "content": None if said.tool else ""})]
    if said.tool:
        first = {"index": 0, **call, "function": {"name": said.tool, "arguments": ""}}
        events.append(chunk({"tool_calls": [first]}))
    events += [chunk(piece(part)) for part in _split(text, size)]
    events.append(chunk({}, end))
    if (asked.body.get("stream_options") or {}).get("include_usage"):
        last = {**base, "object": "chat.completion.chunk", "choices": [], "usage": usage}
        events.append(Event(last, tells=True))
    return Pieces(whole, [*events, Event("[DONE]")])


WRITERS = {"responses": _responses, "messages": _messages, "chat": _chat}
