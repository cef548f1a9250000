"""Any program by a template of its command line, as in `--agent 'command:my-agent {prompt}'`.

It may tell what it does in lines of JSON; each is one object with a `type`:

    {"type": "session", "id": "s1"}
    {"type": "message", "text": "I made the loop shorter."}
    {"type": "tool", "text": "pytest -q"}
    {"type": "denied", "text": "curl example.org"}
    {"type": "usage", "input": 1200, "cached": 1000, "output": 40, "reasoning": 16, "usd": 0.01}
    {"type": "error", "text": "rate limit", "status": 429}
    {"type": "end", "ok": true, "text": "done"}

Every other line is text that it says.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, Any

from outlay.agents.clients.contract import Ending, Happened, Invocation, Usage
from outlay.agents.clients.lines import count, money, record, shown, why, word
from outlay.agents.clients.prompts import PLAN, whole

if TYPE_CHECKING:
    from outlay.agents.clients.contract import Reason, Request

_MOST_TEXT = 1 << 20  # characters of plain text that may be the answer, the last ones

_HOLDS_ONE = re.compile(r"[\w./:=,@+-]*(\{[A-Za-z_]\w*\})[\w./:=,@+-]*")


def filled(request: Request) -> tuple[str, ...]:
    """Return the command with its placeholders replaced, each argument for itself, by no shell.

    Raises `ValueError` for an argument that looks like one with a placeholder that there is not.
    """
    values = {
        "{prompt}": whole(request, schema=True),
        "{plan}": f"{request.home}/{PLAN}",
        "{model}": request.model,
        "{url}": request.url,
        "{key}": request.key,
        "{home}": request.home,
    }
    for argument in request.command:
        found = _HOLDS_ONE.fullmatch(argument)
        if found and found[1] not in values:
            raise ValueError(
                f"agent: found {found[1]} in {argument!r}, allowed: {', '.join(values)}, or other "
                "characters beside it if braces are meant"
            )
    return tuple(_replaced(argument, values) for argument in request.command)


def _replaced(argument: str, values: dict[str, str]) -> str:
    """Return the argument with each placeholder replaced once: what comes in is not looked at."""
    places = {argument.find(name): name for name in values if name in argument}
    if not places:
        return argument
    first = min(places)
    name = places[first]
    rest = argument[first + len(name) :]
    return argument[:first] + values[name] + _replaced(rest, values)


class Command:
    """The adapter of a command line."""

    name = "command"
    own = ()

    def invoke(self, request: Request) -> Invocation:
        """Return the command line; raises `ValueError` if there is none."""
        if not request.command:
            raise ValueError("agent: found no command line, allowed: one, as in command:my-agent")
        return Invocation(
            filled(request),
            {"OUTLAY_PLAN": f"{request.home}/{PLAN}"},
            {PLAN: whole(request, schema=True)},
        )

    def reader(self, before: Usage = Usage()) -> CommandReader:  # noqa: B008 - never changed
        """Return a reader for one run."""
        return CommandReader()

    def recover(self, home: str, session: str = "") -> Usage:
        """Return nothing: it has no session files that we know."""
        return Usage(complete=False)


class CommandReader:
    """Reads lines of JSON as above, and text."""

    def __init__(self) -> None:
        self.hopeless = False
        self._session = ""
        self._said = ""
        self._text: deque[str] = deque()
        self._length = 0
        self._usage = Usage()
        self._failure: tuple[str, int] = ("", 0)
        self._end: dict[str, Any] = {}
        self._denied: list[str] = []
        self._last_denied = False

    def line(self, text: str) -> list[Happened]:
        """Return what this line tells."""
        event = record(text) or {}
        said = word(event, "text")
        match word(event, "type"):
            case "session":
                self._session = word(event, "id")
                return [Happened("session", shown(self._session))]
            case "message":
                self._said = said
                return [Happened("message", shown(said))]
            case "tool":
                self._last_denied = False
                return [Happened("tool", shown(said))]
            case "denied":
                self._last_denied = True
                self._denied.append(shown(said))
                return [Happened("error", shown(f"denied: {said}"))]
            case "usage":
                return [self._used(event)]
            case "error":
                self._failure = (said or "an error without a word", count(event, "status"))
                return [Happened("error", shown(self._failure[0]))]
            case "end":
                self._end = event
                return []
        self._keep(text.rstrip("\n"))
        return [Happened("message", shown(text))] if text.strip() else []

    def _keep(self, text: str) -> None:
        self._text.append(text[-_MOST_TEXT:])
        self._length += len(self._text[-1]) + 1
        while self._length > _MOST_TEXT + 1:
            self._length -= len(self._text.popleft()) + 1

    def _used(self, event: dict[str, Any]) -> Happened:
        more = Usage(
            input=count(event, "input"),
            cached=count(event, "cached"),
            cache_write=count(event, "cache_write"),
            output=count(event, "output"),
            reasoning=count(event, "reasoning"),
            requests=count(event, "requests") or 1,
            usd=money(event, "usd"),
            source="stream",
            complete=event.get("complete") is not False,
        )
        self._usage = self._usage.plus(more)
        return Happened("usage", f"{more.input} in, {more.output} out")

    def ending(self, code: int, errors: str) -> Ending:
        """Return how it ended: by its exit code, and by its last word if it has one."""
        done = code == 0 and self._end.get("ok") is not False
        denied = self._last_denied
        ok = done and not denied
        said, status = self._failure
        # What a plain program prints is no word about its provider; the status of an event is.
        reason: Reason = why("", status) if status else "agent"
        said = word(self._end, "text") or said or errors or f"the command ended with {code}"
        if denied:
            said = "the last tool that it tried was denied"
        return Ending(
            ok=ok,
            reason="" if ok else "denied" if done else reason,
            detail="" if ok else shown(said),
            answer=self._said or "\n".join(self._text).strip(),
            session=self._session,
            usage=self._usage,
            denied=tuple(self._denied),
        )
