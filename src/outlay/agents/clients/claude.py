"""Claude Code: `claude -p --output-format stream-json`, over Anthropic's protocol of messages."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outlay.agents.clients.contract import Ending, Happened, Invocation, Usage
from outlay.agents.clients.lines import count, money, part, parts, record, shown, why, word
from outlay.agents.clients.programs import find
from outlay.agents.clients.prompts import instruction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from outlay.agents.clients.contract import Reason, Request

_QUIET = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
_NEEDED = ("bwrap", "socat")
_OWN_SANDBOX = {
    "sandbox": {
        "enabled": True,
        "autoAllowBashIfSandboxed": True,
        "allowUnsandboxedCommands": False,
    }
}
_Names = tuple[str, str, str, str, str]
_RESULT: _Names = (
    *("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"),
    *("outputTokens", "thinkingTokens"),
)
_MESSAGE: _Names = (
    *("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
    *("output_tokens", "thinking_tokens"),
)


class Claude:
    """The adapter of Claude Code."""

    name = "claude"
    own = (".claude.json", ".claude/settings.json", ".claude/.credentials.json")

    def invoke(self, request: Request) -> Invocation:
        """Return the command line; raises `ValueError` if it would not be confined."""
        said = instruction(request)
        environment = dict(_QUIET)
        command = [*(request.command or (find(self.name),)), "-p"]
        command += ["--output-format", "stream-json", "--verbose", *_confinement(request)]
        if request.url:
            # Little beside the task in each request; it would not know a subscription, though.
            command += ["--bare"]
            environment |= _address(request)
        else:
            command += ["--setting-sources", "user"]
        if request.confined:
            environment["IS_SANDBOX"] = "1"
        if said.files:
            command += ["--add-dir", request.home]
        if request.model:
            command += ["--model", request.model]
        if request.schema:
            command += ["--json-schema", request.schema]
        if request.session:
            command += ["--resume", request.session]
        return Invocation((*command, "--", said.text), environment, said.files)

    def reader(self, before: Usage = Usage()) -> ClaudeReader:  # noqa: B008 - never changed
        """Return a reader for one run; its events tell of this run only, whatever was before."""
        return ClaudeReader()

    def recover(self, home: str, session: str = "") -> Usage:
        """Return the sum of the messages in its session files, each counted once."""
        messages: dict[str, dict[str, Any]] = {}
        for path in sorted(Path(home, ".claude", "projects").rglob(f"{session or '*'}.jsonl")):
            with open(path, encoding="utf-8", errors="replace") as file:
                messages.update(_messages(record(line) or {} for line in file))
        used = Usage(source="session", complete=False)
        for message in messages.values():
            used = used.plus(_message_usage(message))
        return used


def _confinement(request: Request) -> list[str]:
    if request.confined:
        return ["--dangerously-skip-permissions"]
    if missing := [name for name in _NEEDED if shutil.which(name) is None]:
        # It would only warn, and work without a sandbox.
        raise ValueError(
            f"claude: found no {' and no '.join(missing)} on PATH, with which it confines itself; "
            "allowed: install it, or let bubblewrap hold the attempt"
        )
    tools = "Bash,Edit,Write,Read"
    settings = json.dumps(_OWN_SANDBOX)
    return ["--permission-mode", "acceptEdits", "--allowedTools", tools, "--settings", settings]


def _address(request: Request) -> dict[str, str]:
    environment = {
        "HOME": request.home,
        "CLAUDE_CONFIG_DIR": f"{request.home}/.claude",
        "ANTHROPIC_BASE_URL": request.url,
        "ANTHROPIC_API_KEY": request.key,
        "CLAUDE_CODE_MAX_RETRIES": "2",
    }
    if request.model:  # its side requests would name a model that the server need not have
        environment["ANTHROPIC_DEFAULT_HAIKU_MODEL"] = request.model
    return environment


def _messages(events: Iterator[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for event in events:
        message = part(event, "message")
        if event.get("type") == "assistant" and message.get("model") != "<synthetic>":
            yield word(message, "id"), message


def _counted(told: dict[str, Any], names: _Names) -> Usage:
    _, read, write, output, reasoning = names
    return Usage(
        input=count(told, *names[:3]),
        cached=count(told, read),
        cache_write=count(told, write),
        output=count(told, output),
        reasoning=count(told, reasoning),
    )


def _message_usage(message: dict[str, Any]) -> Usage:
    told = part(message, "usage")
    thinking = part(told, "output_tokens_details")
    return _counted(told | thinking, _MESSAGE)._replace(requests=1)


class ClaudeReader:
    """Reads the events of one `claude -p --output-format stream-json`."""

    def __init__(self) -> None:
        self.hopeless = False
        self._session = ""
        self._messages: dict[str, Usage] = {}
        self._tools: dict[str, str] = {}
        self._said = ""
        self._result: dict[str, Any] = {}
        self._trouble = ""

    def line(self, text: str) -> list[Happened]:
        """Return what this line tells."""
        event = record(text) or {}
        self._session = word(event, "session_id") or self._session
        match event.get("type"):
            case "system":
                return self._system(event)
            case "assistant":
                return self._assistant(event)
            case "user":
                return [
                    Happened("error", f"{self._tool(block)}: {shown(str(block.get('content')))}")
                    for block in parts(part(event, "message"), "content")
                    if block.get("is_error") is True
                ]
            case "result":
                self._result = event
                usage = self._usage()
                return [Happened("usage", f"{usage.input} in, {usage.output} out")]
        return []

    def _system(self, event: dict[str, Any]) -> list[Happened]:
        if event.get("subtype") == "init":
            return [Happened("session", self._session)]
        if event.get("subtype") == "api_retry":
            self._trouble = f"status {event.get('error_status')} {event.get('error')}"
            return [Happened("error", shown(f"the request is tried again: {self._trouble}"))]
        return []

    def _assistant(self, event: dict[str, Any]) -> list[Happened]:
        self._messages.update(
            # The output that is told here is that of the message's start.
            (name, _message_usage(message))
            for name, message in _messages(iter((event,)))
        )
        told = []
        for block in parts(part(event, "message"), "content"):
            if block.get("type") == "text" and (said := word(block, "text")):
                self._said = said
                told.append(Happened("message", shown(said)))
            elif block.get("type") == "tool_use":
                what = part(block, "input")
                name = word(block, "name")
                self._tools[word(block, "id")] = name
                told.append(
                    Happened("tool", shown(f"{name} {word(what, 'command', 'file_path')}"))
                )
        return told

    def _tool(self, block: dict[str, Any]) -> str:
        return self._tools.get(word(block, "tool_use_id"), "a tool")

    def _usage(self) -> Usage:
        result = self._result
        # Versions that have the first field tell the sum of all of a session in the second.
        models = part(result, "model_usage_since_last_result") or part(result, "modelUsage")
        used = Usage(source="stream", complete=bool(models))
        if not models:  # killed, or no answer at all
            for usage in self._messages.values():
                used = used.plus(usage)
            return used
        for told in (part(models, name) for name in models):
            used = used.plus(_counted(told, _RESULT)._replace(usd=money(told, "costUSD")))
        return used._replace(requests=len(self._messages))

    def ending(self, code: int, errors: str) -> Ending:
        """Return how Claude Code ended; `success` is the name of failures as well."""
        result = self._result
        denials = parts(result, "permission_denials")
        last = next(reversed(self._tools), "")
        denied = bool(last) and any(word(denial, "tool_use_id") == last for denial in denials)
        clean = code == 0 and result.get("subtype") == "success" and not result.get("is_error")
        answer = word(result, "result") or self._said
        if "structured_output" in result:
            answer = json.dumps(result["structured_output"])
        return Ending(
            ok=clean and not denied,
            reason=("denied" if denied else "") if clean else self._reason(errors),
            detail="" if clean and not denied else self._detail(code, errors, denied=clean),
            answer=answer,
            session=self._session,
            usage=self._usage(),
            denied=tuple(
                shown(f"{word(d, 'tool_name')} {word(part(d, 'tool_input'), 'command')}")
                for d in denials
            ),
        )

    def _reason(self, errors: str) -> Reason:
        subtype, status = word(self._result, "subtype"), self._result.get("api_error_status")
        if subtype == "error_max_budget_usd":
            return "budget"
        if subtype.startswith("error_max"):
            return "agent"
        said = word(self._result, "result") or self._trouble or errors
        return why(said, status if type(status) is int else 0)

    def _detail(self, code: int, errors: str, *, denied: bool) -> str:
        if denied:
            return "the last tool that it tried was denied"
        result = self._result
        said = word(result, "result") if result.get("is_error") else word(result, "subtype")
        return shown(said or self._trouble or errors or f"claude ended with {code} before it told")
