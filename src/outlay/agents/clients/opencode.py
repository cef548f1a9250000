"""OpenCode: `opencode run --format json`, over the protocol of OpenAI's chat completions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from outlay.agents.clients.contract import Ending, Happened, Invocation, Usage
from outlay.agents.clients.lines import count, money, part, record, shown, why, word
from outlay.agents.clients.programs import find
from outlay.agents.clients.prompts import whole

if TYPE_CHECKING:
    from outlay.agents.clients.contract import Request

KEY = "OUTLAY_CLIENT_KEY"
_QUIET = (
    *("AUTOUPDATE", "MODELS_FETCH", "DEFAULT_PLUGINS", "LSP_DOWNLOAD", "PROJECT_CONFIG"),
    "CLAUDE_CODE",
)
_FRUITLESS = 3
"""Steps in a row without an answer after which it will go on for ever."""


class OpenCode:
    """The adapter of OpenCode."""

    name = "opencode"
    own = (
        *(f".config/opencode/{name}" for name in ("opencode.json", "opencode.jsonc")),
        ".local/share/opencode/auth.json",
    )

    def invoke(self, request: Request) -> Invocation:
        """Return the command line; raises `ValueError` without a sandbox of ours or a model."""
        if not request.confined:
            raise ValueError(
                "opencode: found no sandbox around it, and it has none of its own; allowed: "
                "bubblewrap, which `outlay doctor` looks for"
            )
        if request.url and not request.model:
            raise ValueError("model: found none, allowed: the name of a model for opencode")
        environment = {f"OPENCODE_DISABLE_{name}": "1" for name in _QUIET}
        if request.url:
            environment |= {"HOME": request.home, KEY: request.key}
            environment["OPENCODE_CONFIG_CONTENT"] = json.dumps(_settings(request))
        model = f"outlay/{request.model}" if request.url else request.model
        command = [*(request.command or (find(self.name),)), "run", "--pure", "--format", "json"]
        command += ["--auto", "--title", "outlay"]
        if model:
            command += ["--model", model]
        if request.session:
            command += ["--session", request.session]
        # It changes a prompt among its arguments: quotes, spaces and numbers come out otherwise.
        said = whole(request, schema=True)
        return Invocation(tuple(command), environment, stdin=said)

    def reader(self, before: Usage = Usage()) -> OpenCodeReader:  # noqa: B008 - never changed
        """Return a reader for one run; its steps tell of themselves only."""
        return OpenCodeReader()

    def recover(self, home: str, session: str = "") -> Usage:
        """Return nothing: its events tell every step as it ends, and its files no more."""
        return Usage(complete=False)


def _settings(request: Request) -> dict[str, Any]:
    model = f"outlay/{request.model}"
    return {
        "model": model,
        "small_model": model,
        "autoupdate": False,
        "share": "disabled",
        "permission": {"*": "allow", "webfetch": "deny", "websearch": "deny"},
        "provider": {
            "outlay": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "Outlay",
                "options": {"baseURL": f"{request.url}/v1", "apiKey": f"{{env:{KEY}}}"},
                "models": {request.model: {"name": request.model}},
            }
        },
    }


class OpenCodeReader:
    """Reads the events of one `opencode run --format json`, which has no event for its end."""

    def __init__(self) -> None:
        self.hopeless = False
        self._session = ""
        self._answer = ""
        self._usage = Usage(source="stream")
        self._failure = ""
        self._status = 0
        self._finish = ""
        self._fruitless = 0
        self._denied: list[str] = []
        self._last_denied = False

    def line(self, text: str) -> list[Happened]:
        """Return what this line tells."""
        event = record(text) or {}
        told, piece = [], part(event, "part")
        if not self._session and (session := word(event, "sessionID")):
            self._session = session
            told.append(Happened("session", session))
        match event.get("type"):
            case "text":
                self._answer = word(piece, "text")
                told.append(Happened("message", shown(self._answer)))
            case "tool_use":
                told.append(self._tool(piece))
            case "step_finish":
                told.append(self._step(piece))
            case "error":
                told.append(self._error(part(event, "error")))
        return told

    def _tool(self, piece: dict[str, Any]) -> Happened:
        state = part(piece, "state")
        given = part(state, "input")
        what = shown(f"{word(piece, 'tool')} {word(given, 'command', 'filePath', 'pattern')}")
        error = word(state, "error")
        self._last_denied = "rejected permission" in error or "prevents you" in error
        if self._last_denied:
            self._denied.append(what)
        return Happened("error", shown(f"{what}: {error}")) if error else Happened("tool", what)

    def _step(self, piece: dict[str, Any]) -> Happened:
        tokens = part(piece, "tokens")
        cache = part(tokens, "cache")
        usd = money(piece, "cost") or None  # 0 where it knows no price
        step = Usage(
            input=count(tokens, "input") + count(cache, "read", "write"),
            cached=count(cache, "read"),
            cache_write=count(cache, "write"),
            output=count(tokens, "output", "reasoning"),
            reasoning=count(tokens, "reasoning"),
            requests=1,
            usd=usd,
        )
        self._finish = word(piece, "reason")
        if self._finish == "unknown" and step.input + step.output == 0:
            self._fruitless += 1
            self.hopeless = self._fruitless >= _FRUITLESS
            self._failure = "the stream of its model was cut off"
            self._usage = self._usage._replace(complete=False)
            return Happened("error", self._failure)
        self._fruitless, self._failure = 0, ""
        self._usage = self._usage.plus(step)
        return Happened("usage", f"{step.input} in, {step.output} out")

    def _error(self, error: dict[str, Any]) -> Happened:
        data = part(error, "data")
        status = data.get("statusCode")
        self._status = status if type(status) is int else 0
        self._failure = word(data, "message") or word(error, "name") or "an error without a name"
        return Happened("error", shown(self._failure))

    def ending(self, code: int, errors: str) -> Ending:
        """Return how OpenCode ended: well if its last step was an end and nothing failed."""
        denied = self._last_denied
        ok = code == 0 and not self._failure and not denied and self._finish == "stop"
        said = self._failure or errors or f"its last step ended with {self._finish or 'nothing'}"
        if denied:
            said = "the last tool that it tried was denied"
        return Ending(
            ok=ok,
            reason="" if ok else "denied" if denied else why(said, self._status),
            detail="" if ok else shown(said),
            answer=self._answer,
            session=self._session,
            usage=self._usage if code == 0 else self._usage._replace(complete=False),
            denied=tuple(self._denied),
        )
