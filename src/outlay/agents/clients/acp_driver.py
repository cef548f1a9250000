"""Speaks the Agent Client Protocol with one agent, and prints lines that `command` describes.

It runs beside the agent inside its sandbox, as a file of its own in the agent's home, so it
imports nothing of ours. Its argument is a JSON file: command, prompt, folder, session.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import IO, Any, cast

_ENDED_WELL = "end_turn"


class AgentError(Exception):
    """The agent refused, or went away."""


def tell(kind: str, **fields: object) -> None:
    """Print one line."""
    print(json.dumps({"type": kind, **fields}), flush=True)  # noqa: T201 - this is its output


def inside(path: str, folder: str) -> bool:
    """Return whether a path lies in the folder, links followed."""
    real, root = os.path.realpath(os.path.join(folder, path)), os.path.realpath(folder)
    return real == root or real.startswith(root + os.sep)


def allowed(call: dict[str, Any], folder: str) -> bool:
    """Return whether a tool call may pass: no web, and no change outside the workspace."""
    kind = call.get("kind")
    if kind == "fetch":
        return False
    if kind in ("read", "search", "think"):
        return True
    places = [*(call.get("locations") or []), *(call.get("content") or [])]
    paths = [place["path"] for place in places if isinstance(place.get("path"), str)]
    return all(inside(path, folder) for path in paths)


class Agent:
    """The connection: requests go out one after another, and what comes meanwhile is answered."""

    def __init__(self, out: IO[bytes], into: IO[bytes], folder: str) -> None:
        self._out = out
        self._into = into
        self._folder = folder
        self._number = 0
        self._calls: dict[str, dict[str, Any]] = {}
        self._said: list[str] = []
        self.quiet = False  # while an earlier session is told again

    def ask(self, method: str, **params: object) -> dict[str, Any]:
        """Return the agent's answer; raises `AgentError` if it is an error or never comes."""
        self._number += 1
        self._send(id=self._number, method=method, params=params)
        for line in self._out:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if not isinstance(message, dict):
                continue
            if "method" in message:
                self._serve(message)
            elif message.get("id") == self._number:
                if error := message.get("error"):
                    raise AgentError(f"{method}: {error.get('message')} {error.get('data') or ''}")
                return message.get("result") or {}
        raise AgentError(f"{method}: the agent closed the connection")

    def _send(self, **message: object) -> None:
        try:
            self._into.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self._into.flush()
        except OSError as error:
            raise AgentError(f"the agent went away: {error}") from error

    def _serve(self, message: dict[str, Any]) -> None:
        params = message.get("params") or {}
        if message["method"] == "session/update":
            self._update(params.get("update") or {})
        elif message["method"] == "session/request_permission":
            self._send(id=message["id"], result={"outcome": self._permit(params)})
        elif "id" in message:
            error = {"code": -32601, "message": f"no method {message['method']}"}
            self._send(id=message["id"], error=error)

    def _permit(self, params: dict[str, Any]) -> dict[str, str]:
        call = params.get("toolCall") or {}
        known = self._calls.get(call.get("toolCallId", ""), {})
        call = known | {name: value for name, value in call.items() if value is not None}
        word = "allow" if allowed(call, self._folder) else "reject"
        if word == "reject":
            tell("denied", text=call.get("title") or "a tool")
        for kind in (f"{word}_once", f"{word}_always"):
            for option in params.get("options") or []:
                if option.get("kind") == kind:
                    return {"outcome": "selected", "optionId": option["optionId"]}
        return {"outcome": "cancelled"}

    def _update(self, update: dict[str, Any]) -> None:
        kind = update.get("sessionUpdate")
        if self.quiet:
            return
        if kind == "agent_message_chunk":
            self._said.append((update.get("content") or {}).get("text") or "")
            return
        self.finish_message()
        if kind in ("tool_call", "tool_call_update"):
            name = update.get("toolCallId", "")
            new = {key: value for key, value in update.items() if value is not None}
            self._calls[name] = self._calls.get(name, {}) | new
            title = self._calls[name].get("title") or "a tool"
            if kind == "tool_call":
                tell("tool", text=title)
            elif update.get("status") == "failed":
                tell("tool", text=f"failed: {title}")

    def finish_message(self) -> None:
        """Tell the message whose pieces came so far."""
        text, self._said = "".join(self._said), []
        if text.strip():
            tell("message", text=text)


def turn(agent: Agent, asked: dict[str, Any]) -> None:
    """Carry out one turn and tell how it ended."""
    able = (
        agent.ask(
            "initialize",
            protocolVersion=1,
            clientCapabilities={"fs": {"readTextFile": False, "writeTextFile": False}},
            clientInfo={"name": "outlay", "version": "1"},
        ).get("agentCapabilities")
        or {}
    )
    place = {"cwd": asked["folder"], "mcpServers": []}
    session = asked["session"]
    if session and not able.get("loadSession"):
        raise AgentError("session/load: the agent cannot go on with a session")
    if session:
        agent.quiet = True
        agent.ask("session/load", sessionId=session, **place)
        agent.quiet = False
    else:
        session = agent.ask("session/new", **place)["sessionId"]
    tell("session", id=session)
    prompt = [{"type": "text", "text": asked["prompt"]}]
    answer = agent.ask("session/prompt", sessionId=session, prompt=prompt)
    agent.finish_message()
    if usage := answer.get("usage"):
        tell_usage(usage)
    reason = answer.get("stopReason")
    tell(
        "end",
        ok=reason == _ENDED_WELL,
        text="" if reason == _ENDED_WELL else f"it ended: {reason}",
    )


def tell_usage(usage: dict[str, Any]) -> None:
    """Tell usage, which the protocol calls unstable: some agents tell of the last step only."""
    fields = {
        "cached": usage.get("cachedReadTokens") or 0,
        "cache_write": usage.get("cachedWriteTokens") or 0,
        "reasoning": usage.get("thoughtTokens") or 0,
    }
    fresh, output = usage.get("inputTokens") or 0, usage.get("outputTokens") or 0
    tell(
        "usage",
        input=fresh + fields["cached"] + fields["cache_write"],
        output=output + fields["reasoning"],
        complete=False,
        **fields,
    )


def main(path: str) -> int:
    """Start the agent, carry out the turn, end the agent; return the exit code."""
    with open(path, encoding="utf-8") as file:
        asked = json.load(file)
    with subprocess.Popen(
        asked["command"], cwd=asked["folder"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        out, into = cast("IO[bytes]", process.stdout), cast("IO[bytes]", process.stdin)
        try:
            turn(Agent(out, into, asked["folder"]), asked)
            return 0
        except AgentError as error:
            tell("error", text=str(error))
            return 1
        except (AttributeError, KeyError, TypeError) as error:
            tell("error", text=f"the agent sent what the protocol does not know: {error!r}")
            return 1
        finally:
            process.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
