"""What can be known of an agent before a run: program, version, key, and one call of its model."""

from __future__ import annotations

import importlib.util
import os
import time
import urllib.error
from pathlib import Path
from typing import Any, NamedTuple

from outlay.agents.ask import MISSING
from outlay.agents.clients import programs
from outlay.agents.clients.lines import record, why
from outlay.agents.clients.model import named
from outlay.agents.clients.provider import ask, base, said, without
from outlay.agents.clients.registry import by_name
from outlay.agents.starting import lack
from outlay.doctor import Check

_SECONDS = 60
_HI = [{"role": "user", "content": "Say ok."}]


class _Protocol(NamedTuple):
    """How a client asks its model, and where if nothing else is said; `limit` is in the fields."""

    path: str
    fields: dict[str, Any]
    url: str = ""


_PROTOCOLS = {
    # 16 is the least that OpenAI takes.
    "codex": _Protocol(
        "/v1/responses", {"input": "Say ok.", "max_output_tokens": 16}, "https://api.openai.com"
    ),
    "claude": _Protocol(
        "/v1/messages", {"messages": _HI, "max_tokens": 1}, "https://api.anthropic.com"
    ),
    "opencode": _Protocol("/v1/chat/completions", {"messages": _HI, "max_tokens": 1}),
    "model": _Protocol("/v1/chat/completions", {"messages": _HI, "max_tokens": 1}),
}
_SAID = {
    "key": "the key was refused",
    "provider": "the server cannot be used now",
    "agent": "the request was refused",
}
_NO_KEY = "no key was sent, and the server asks for one"


def examine_agent(
    name: str,
    *,
    model: str = "",
    url: str = "",
    key: str = "",
    command: tuple[str, ...] = (),
    folder: str | os.PathLike[str] = ".",
) -> list[Check]:
    """Return what was found of an agent; its model is called once, for one token or a few.

    Args:
        name: Client, as in `--agent NAME`.
        model: Model that is called; none is if this is empty.
        url: Address of its provider; empty for the usual one of the client.
        key: Name of the environment variable that holds the key; empty where the client uses an
            account of its own, which is not called.
        command: Program and arguments that replace the client's own.
        folder: What a relative path of the program is relative to.
    """
    checks = [examine_program(name, command, folder)]
    if key:
        checks.append(examine_key(key))
    elif url or name in _PROTOCOLS:
        found = f"none is named, so none is sent to {url}; --key NAME names the variable with one"
        if not url:
            found = (
                "none is named: it uses its own account and has the network, and its own word on "
                "tokens is charged"
            )
        checks.append(Check(name="key", ok=True, found=found))
    if (key or url) and name in _PROTOCOLS:
        checks.append(examine_call(name, model, url, os.environ.get(key, "") if key else ""))
    return checks


def examine_program(
    name: str, command: tuple[str, ...] = (), folder: str | os.PathLike[str] = "."
) -> Check:
    """Return whether the client's program is there, and new enough where that is known."""
    if name == "model":
        there = importlib.util.find_spec("pydantic_ai") is not None
        return Check(name="agent", ok=there, found="model: a plain call" if there else MISSING)
    try:
        by_name(name)
        start = command or (_own(name),)
    except ValueError as error:
        return Check(name="agent", ok=False, found=str(error))
    if why := lack(start[0], Path(folder)):
        return Check(name="agent", ok=False, found=f"command {start[0]!r} {why}")
    if name not in programs.KNOWN:
        return Check(name="agent", ok=True, found=f"{name}: {start[0]}")
    version, oldest = programs.version(start), programs.KNOWN[name].oldest
    least = ".".join(map(str, oldest))
    if programs.numbers(version) < oldest:
        found = f"{start[0]} is {version or 'of unknown version'}; at least {least} is needed"
        return Check(name="agent", ok=False, found=found)
    return Check(name="agent", ok=True, found=f"{name} {version}: {start[0]}")


def _own(name: str) -> str:
    """Return the client's own program; raises `ValueError` if it has none, or none is there."""
    if name not in programs.KNOWN:
        raise ValueError(f"{name}: found no command line, allowed: one, as in {name}:my-agent")
    return programs.find(name)


def examine_key(key: str) -> Check:
    """Return whether the environment variable holds something; what it holds is never shown."""
    there = bool(os.environ.get(key, "").strip())
    return Check(name="key", ok=there, found=f"{key} is {'set' if there else 'not set'}")


def examine_call(name: str, model: str, url: str, secret: str) -> Check:
    """Return whether the model answers one short request in the client's protocol."""
    if name == "model":
        api, model = named(model)
        name = "claude" if api == "anthropic" else name
    protocol = _PROTOCOLS[name]
    place = base(url or protocol.url)
    if not model or not place:
        missing = "model" if not model else "address"
        ok = name not in ("opencode", "model")  # which need both
        return Check(name="call", ok=ok, found=f"not tried: no {missing} is named")
    begun = time.monotonic()
    try:
        fields = {"model": model, **protocol.fields}
        answer = ask(place + protocol.path, secret, fields, _SECONDS)
    except urllib.error.HTTPError as error:
        reason = why("", error.code)
        words = _NO_KEY if reason == "key" and not secret else _SAID[reason]
        found = f"{words} ({error.code}): {said(error)}"
    except (OSError, ValueError) as error:
        found = f"{place}: {error}"
    else:
        if record(answer) is not None:
            found = f"{model} at {place} answered in {time.monotonic() - begun:.1f} s"
            return Check(name="call", ok=True, found=found)
        found = f"{place}: answered with something else than JSON: {answer[:60]!r}"
    return Check(name="call", ok=False, found=without(found, secret))
