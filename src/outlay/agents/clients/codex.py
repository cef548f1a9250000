"""Codex CLI: `codex exec --json`, over the protocol of OpenAI's Responses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outlay.agents.clients.contract import Ending, Happened, Invocation, Usage
from outlay.agents.clients.lines import count, part, parts, record, shown, why, word
from outlay.agents.clients.programs import find
from outlay.agents.clients.prompts import instruction

if TYPE_CHECKING:
    from outlay.agents.clients.contract import Request

KEY = "OUTLAY_CLIENT_KEY"
_SCHEMA = "schema.json"
_CONFIG = ".codex/config.toml"  # empty, but its folder must be there
_QUIET = (
    "check_for_update_on_startup=false",
    "analytics.enabled=false",
    'web_search="disabled"',
    # Without these it looks up hosts, and waits for ever for a server that refuses.
    *(
        f"features.{name}=false"
        for name in ("unbounded_connection_retries", "plugins", "remote_plugin", "apps")
    ),
)
_CONFINED = ("--dangerously-bypass-approvals-and-sandbox",)
_CONFINES = ("-s", "workspace-write", "-c", "sandbox_workspace_write.exclude_slash_tmp=true")


class Codex:
    """The adapter of Codex."""

    name = "codex"
    own = (".codex/config.toml", ".codex/auth.json")

    def invoke(self, request: Request) -> Invocation:
        """Return the command line."""
        said = instruction(request)
        settings, environment = _settings(request)
        files = {**said.files, _CONFIG: ""} if request.url else dict(said.files)
        command = [*(request.command or (find(self.name),)), "exec", "--json"]
        command += ["--skip-git-repo-check", *(_CONFINED if request.confined else _CONFINES)]
        for setting in settings:
            command += ["-c", setting]
        if request.model:
            command += ["-m", request.model]
        if request.schema:
            files[_SCHEMA] = request.schema
            command += ["--output-schema", f"{request.home}/{_SCHEMA}"]
        if request.session:
            command += ["resume", request.session]
        return Invocation((*command, "--", said.text), environment, files)

    def reader(self, before: Usage = Usage()) -> CodexReader:  # noqa: B008 - never changed
        """Return a reader for one run."""
        return CodexReader(before)

    def recover(self, home: str, session: str = "") -> Usage:
        """Return the sum of the responses in its rollout files."""
        used = Usage(source="session", complete=False)
        for path in sorted(Path(home, ".codex", "sessions").rglob(f"rollout-*{session}.jsonl")):
            responses = {}
            with open(path, encoding="utf-8", errors="replace") as file:
                for number, line in enumerate(file):
                    entry = record(line) or {}
                    if entry.get("type") == "token_usage_record":
                        payload = part(entry, "payload")
                        responses[payload.get("response_id") or number] = part(payload, "usage")
            for usage in responses.values():
                used = used.plus(_usage(usage)._replace(requests=1))
        return used


def _settings(request: Request) -> tuple[list[str], dict[str, str]]:
    """Return the settings and the environment; without an address those of the user stay."""
    if not request.url:
        return list(_QUIET), {}
    fields = {
        "name": "outlay",
        "base_url": f"{request.url}/v1",
        "wire_api": "responses",
        "env_key": KEY,
    }
    # Text of JSON is text of TOML as well.
    text = ", ".join(f"{name} = {json.dumps(value)}" for name, value in fields.items())
    retries = "request_max_retries = 2, stream_max_retries = 2"
    provider = f"model_providers.outlay={{ {text}, {retries} }}"
    return (
        [*_QUIET, 'model_provider="outlay"', provider],
        {"HOME": request.home, "CODEX_HOME": f"{request.home}/.codex", KEY: request.key},
    )


def _usage(told: dict[str, Any]) -> Usage:
    return Usage(
        input=count(told, "input_tokens"),
        cached=count(told, "cached_input_tokens"),
        cache_write=count(told, "cache_write_input_tokens"),
        output=count(told, "output_tokens"),
        reasoning=count(told, "reasoning_output_tokens"),
        source="stream",
    )


class CodexReader:
    """Reads the events of one `codex exec --json`.

    An `error` alone is no end, since a retry may follow: `turn.failed` and `turn.completed` are.
    """

    def __init__(self, before: Usage) -> None:
        self.hopeless = False
        self._before = before
        self._session = ""
        self._answer = ""
        self._usage = Usage(source="stream", complete=False)
        self._failure = ""
        self._completed = False
        self._tools = 0
        self._denied: list[str] = []
        self._last = ""  # how the last tool ended

    def line(self, text: str) -> list[Happened]:
        """Return what this line tells."""
        event = record(text) or {}
        kind = word(event, "type")
        if kind == "thread.started":
            self._session = word(event, "thread_id")
            return [Happened("session", self._session)]
        if kind == "turn.completed":
            self._completed = True
            self._usage = _usage(part(event, "usage")).minus(self._before)
            return [Happened("usage", f"{self._usage.input} in, {self._usage.output} out")]
        if kind in ("error", "turn.failed"):
            said = word(event, "message") or word(part(event, "error"), "message")
            self._failure = said or self._failure or "it failed without a word"
            return [Happened("error", shown(self._failure))] if kind == "error" else []
        return self._item(kind, part(event, "item"))

    def _item(self, stage: str, item: dict[str, Any]) -> list[Happened]:
        """Return what an item tells: a message, or the start or end of a tool."""
        kind = word(item, "type")
        if kind == "agent_message" and stage == "item.completed":
            self._answer = word(item, "text")
            return [Happened("message", shown(self._answer))]
        if kind in ("", "agent_message", "reasoning", "todo_list", "error"):
            return []
        what = _tool(kind, item)
        if stage == "item.started":
            return [Happened("tool", shown(what))]
        if stage != "item.completed":
            return []
        self._tools += 1
        status = word(item, "status")
        if status == "declined":
            self._denied.append(shown(what))
        self._last = status
        if status not in ("failed", "declined"):
            return [Happened("tool", shown(what))] if kind == "file_change" else []
        return [Happened("error", shown(f"{status}: {what}"))]

    def ending(self, code: int, errors: str) -> Ending:
        """Return how Codex ended."""
        ok = code == 0 and self._completed
        denied = self._last == "declined"
        return Ending(
            ok=ok and not denied,
            reason="" if ok and not denied else "denied" if ok else why(self._failure or errors),
            detail=self._detail(ok, code, errors),
            answer=self._answer,
            session=self._session,
            usage=self._usage,
            denied=tuple(self._denied),
        )

    def _detail(self, ok: bool, code: int, errors: str) -> str:
        if not ok:
            return shown(self._failure or errors or f"codex ended with {code} before its turn did")
        if self._last in ("failed", "declined"):
            return f"its last command {self._last}"
        return "" if self._tools else "it ended without a command that ran"


def _tool(kind: str, item: dict[str, Any]) -> str:
    if kind == "file_change":
        return f"edit {', '.join(word(change, 'path') for change in parts(item, 'changes'))}"
    return word(item, "command", "tool", "query") or kind
