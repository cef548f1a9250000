"""The readers of all clients over samples of what the clients print, and over anything else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlay.agents.clients.contract import Ending, Happened, Usage
from outlay.agents.clients.registry import NAMES, by_name


def read(client: str, *events: dict[str, Any] | str, code: int = 0, errors: str = "") -> Ending:
    return told(client, *events, code=code, errors=errors)[1]


def told(
    client: str, *events: dict[str, Any] | str, code: int = 0, errors: str = ""
) -> tuple[list[Happened], Ending]:
    reader = by_name(client).reader()
    lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
    happened = [happened for line in lines for happened in reader.line(line)]
    return happened, reader.ending(code, errors)


def item(**fields: Any) -> dict[str, Any]:
    return {"type": "item.completed", "item": {"id": "i", **fields}}


STARTED = {"type": "thread.started", "thread_id": "t1"}
RAN = item(type="command_execution", command="make", exit_code=0, status="completed")
SAID = item(type="agent_message", text="done")
USED = {"input_tokens": 2500, "cached_input_tokens": 2150, "output_tokens": 52}
COMPLETED = {"type": "turn.completed", "usage": {**USED, "reasoning_output_tokens": 16}}
RETRY = {"type": "error", "message": "Reconnecting... 1/2 (stream disconnected)"}


def test_codex_goes_on_after_an_error_that_is_tried_again() -> None:
    ending = read("codex", STARTED, RETRY, RAN, SAID, COMPLETED)
    usage = Usage(input=2500, cached=2150, output=52, reasoning=16, source="stream")
    assert ending == Ending(ok=True, answer="done", session="t1", usage=usage)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("unexpected status 401 Unauthorized: Incorrect API key provided, url: x", "key"),
        ("unexpected status 403 Forbidden: no", "key"),
        ("unexpected status 402 Payment Required: no money", "key"),
        ("unexpected status 400 Bad Request: the budget of this attempt is spent", "budget"),
        ("exceeded retry limit, last status: 429 Too Many Requests", "provider"),
        ("We're currently experiencing high demand, which may cause errors.", "provider"),
        ("stream disconnected before completion", "provider"),
        ("Connection failed: error sending request", "provider"),
        ("unexpected status 400 Bad Request: prompt is too long", "agent"),
        ("Missing environment variable: `OUTLAY_CLIENT_KEY`.", "agent"),
    ],
)
def test_codex_failures(message: str, reason: str) -> None:
    failed = {"type": "turn.failed", "error": {"message": message}}
    ending = read("codex", STARTED, RETRY, failed, code=1)
    assert (ending.ok, ending.reason, ending.detail) == (False, reason, message)
    assert ending.usage.complete is False


def test_codex_without_an_end_is_no_success_whatever_its_code() -> None:
    assert read("codex", STARTED, SAID).ok is False
    assert read("codex", STARTED, SAID, COMPLETED, code=-9).ok is False


def test_codex_tells_of_tools_that_failed_or_were_declined() -> None:
    failed = item(type="command_execution", command="make", exit_code=2, status="failed")
    happened, ending = told("codex", STARTED, failed, SAID, COMPLETED)
    assert Happened("error", "failed: make") in happened
    assert (ending.ok, ending.detail) == (True, "its last command failed")
    changes = [{"path": "a.py", "kind": "update"}, {"path": "b.py", "kind": "add"}]
    declined = item(type="file_change", changes=changes, status="declined")
    ending = read("codex", STARTED, RAN, declined, SAID, COMPLETED)
    assert (ending.ok, ending.reason, ending.denied) == (False, "denied", ("edit a.py, b.py",))


INIT = {"type": "system", "subtype": "init", "session_id": "s1"}
MODEL_USAGE = {
    "inputTokens": 350,
    "outputTokens": 52,
    "cacheReadInputTokens": 2150,
    "cacheCreationInputTokens": 100,
    "costUSD": 0.004,
}
RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "done",
    "session_id": "s1",
    "modelUsage": {"large": MODEL_USAGE, "small": MODEL_USAGE},
    "total_cost_usd": 0.1,
    "permission_denials": [],
}


def message(*content: dict[str, Any], name: str = "m1") -> dict[str, Any]:
    usage = {"input_tokens": 200, "cache_read_input_tokens": 1000, "output_tokens": 1}
    inside = {"id": name, "content": list(content), "usage": usage}
    return {"type": "assistant", "message": inside, "session_id": "s1"}


def tool(name: str, command: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "Bash", "input": {"command": command}}


def test_claude_counts_side_requests_and_each_message_once() -> None:
    text = {"type": "text", "text": "I begin"}
    ending = read("claude", INIT, message(text), message(tool("t1", "make")), RESULT)
    usage = Usage(
        input=5200,
        cached=4300,
        cache_write=200,
        output=104,
        requests=1,
        usd=0.008,
        source="stream",
    )
    assert ending == Ending(ok=True, answer="done", session="s1", usage=usage)


def test_claude_prefers_the_usage_of_this_run() -> None:
    result = RESULT | {"model_usage_since_last_result": {"large": MODEL_USAGE}}
    assert read("claude", INIT, result).usage.output == 52


def test_claude_ended_early_tells_what_it_had_begun() -> None:
    usage = read("claude", INIT, message(), message(), message(name="m2"), code=-9).usage
    assert (usage.input, usage.requests, usage.complete) == (2400, 2, False)


@pytest.mark.parametrize(
    ("fields", "code", "reason"),
    [
        ({"is_error": True, "api_error_status": 401, "result": "no"}, 1, "key"),
        ({"is_error": True, "api_error_status": 529, "result": "no"}, 1, "provider"),
        ({"is_error": True, "result": "Unable to connect to API (Refused)"}, 1, "provider"),
        ({"is_error": True, "result": "Not logged in · Please run /login"}, 1, "key"),
        ({"is_error": True, "api_error_status": 400, "result": "Prompt too long"}, 1, "agent"),
        ({"subtype": "error_max_turns"}, 1, "agent"),
        ({"subtype": "error_max_budget_usd"}, 1, "budget"),
    ],
)
def test_claude_failures(fields: dict[str, Any], code: int, reason: str) -> None:
    ending = read("claude", INIT, RESULT | fields, code=code)
    assert (ending.ok, ending.reason) == (False, reason)
    assert ending.detail


def test_claude_denied_at_last_is_no_success_and_denied_before_is() -> None:
    denial = {"tool_name": "Bash", "tool_use_id": "t1", "tool_input": {"command": "curl x"}}
    result = RESULT | {"permission_denials": [denial]}
    ending = read("claude", INIT, message(tool("t1", "curl x")), result)
    assert (ending.ok, ending.reason, ending.denied) == (False, "denied", ("Bash curl x",))
    later = message(tool("t1", "curl x")), message(tool("t2", "make"), name="m2")
    assert read("claude", INIT, *later, result).ok is True


def step(reason: str, tokens: dict[str, Any], cost: float = 0) -> dict[str, Any]:
    return {
        "type": "step_finish",
        "sessionID": "s1",
        "part": {"reason": reason, "tokens": tokens, "cost": cost},
    }


TOKENS = {"input": 200, "output": 24, "reasoning": 16, "cache": {"write": 0, "read": 1000}}
NOTHING = {"input": 0, "output": 0, "reasoning": 0, "cache": {"write": 0, "read": 0}}
FINAL = {"type": "text", "sessionID": "s1", "part": {"text": "done"}}


def test_opencode_sums_its_steps_with_cache_and_reasoning_inside() -> None:
    ending = read("opencode", step("tool-calls", TOKENS, 0.1), FINAL, step("stop", TOKENS))
    usage = Usage(
        input=2400,
        cached=2000,
        output=80,
        reasoning=32,
        requests=2,
        usd=0.1,
        source="stream",
    )
    assert ending == Ending(ok=True, answer="done", session="s1", usage=usage)


def test_opencode_is_hopeless_after_three_steps_without_an_answer() -> None:
    reader = by_name("opencode").reader()
    seen = []
    for tokens in (NOTHING, NOTHING, TOKENS, NOTHING, NOTHING, NOTHING):
        reason = "stop" if tokens is TOKENS else "unknown"
        reader.line(json.dumps(step(reason, tokens)))
        seen.append(reader.hopeless)
    assert seen == [False] * 5 + [True]
    ending = reader.ending(-9, "")
    assert (ending.reason, ending.usage.complete) == ("provider", False)


def test_opencode_failures() -> None:
    data = {"message": "Incorrect API key provided", "statusCode": 401}
    error = {"type": "error", "error": {"name": "APIError", "data": data}}
    ending = read("opencode", error, code=1)
    assert (ending.ok, ending.reason, ending.detail) == (False, "key", data["message"])
    for reason in ("tool-calls", "length"):
        ending = read("opencode", step(reason, TOKENS))
        assert (ending.ok, ending.reason) == (False, "agent")


def test_opencode_rejected_at_last_is_no_success() -> None:
    state = {
        "status": "error",
        "input": {"command": "make"},
        "error": "The user rejected permission to use this specific tool call.",
    }
    rejected = {"type": "tool_use", "part": {"tool": "bash", "state": state}}
    ending = read("opencode", rejected, step("tool-calls", TOKENS))
    assert (ending.ok, ending.reason, ending.denied) == (False, "denied", ("bash make",))


def test_a_command_tells_in_lines_or_in_text() -> None:
    usage = {"type": "usage", "input": 1200, "cached": 1000, "output": 40, "usd": 0.5}
    happened, ending = told("command", "I begin", {"type": "tool", "text": "make"}, usage, usage)
    assert [h.kind for h in happened] == ["message", "tool", "usage", "usage"]
    assert (ending.ok, ending.answer) == (True, "I begin")
    used = Usage(input=2400, cached=2000, output=80, requests=2, usd=1.0, source="stream")
    assert ending.usage == used
    assert read("command", "some text").usage.source == ""


@pytest.mark.parametrize(
    ("events", "code", "reason"),
    [
        ([], 1, "agent"),
        ([{"type": "error", "text": "slow down", "status": 429}], 1, "provider"),
        ([{"type": "end", "ok": False, "text": "status 401"}], 0, "agent"),
        ([{"type": "denied", "text": "curl"}], 0, "denied"),
    ],
)
def test_a_command_fails(events: list[dict[str, Any]], code: int, reason: str) -> None:
    ending = read("command", *events, code=code)
    assert (ending.ok, ending.reason) == (False, reason)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=8,
)
SAMPLES = [STARTED, RAN, SAID, COMPLETED, RETRY, INIT, RESULT, message(tool("t", "x")), FINAL]
SAMPLES += [step("stop", TOKENS), {"type": "usage", "input": 1}, {"type": "error"}]


@st.composite
def broken(draw: st.DrawFn) -> str:
    """A sample of which one value, somewhere inside, is anything."""
    event = json.loads(json.dumps(draw(st.sampled_from(SAMPLES))))
    place = event
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            break
        key = draw(st.sampled_from(keys))
        if not isinstance(place[key], (dict, list)) or draw(st.booleans()):
            place[key] = draw(JSON)
            break
        place = place[key]
    return json.dumps(event)


@pytest.mark.parametrize("client", NAMES)
@settings(max_examples=80, deadline=None)
@given(lines=st.lists(broken() | st.text(max_size=30) | JSON.map(json.dumps), max_size=6))
def test_nothing_that_is_printed_makes_a_reader_raise(client: str, lines: list[str]) -> None:
    reader = by_name(client).reader()
    for line in lines:
        for happened in reader.line(line):
            assert "\n" not in happened.text
            happened.text.encode()
    for code in (0, 1, -9):
        ending = reader.ending(code, "")
        ending.answer.encode()
        assert ending.ok is (ending.reason == "")
        assert min(ending.usage[:6]) >= 0


def test_half_a_character_is_no_trouble() -> None:
    bad = {"type": "tool_result", "is_error": True, "content": ["\ud800"]}
    happened, _ = told("claude", {"type": "user", "message": {"content": [bad]}}, code=1)
    assert happened[0].text.encode()
    assert read("codex", item(type="agent_message", text="\ud800")).answer == "?"


@pytest.mark.parametrize("client", NAMES)
def test_lines_that_a_parser_would_choke_on(client: str) -> None:
    deep, number = "[" * 100_000, "9" * 10_000
    lines = ('{"type": "result", "x": ' + deep, '{"type": ' + number + "}", '{"type": "\\ud800"}')
    assert read(client, *lines, code=1).ok is False
