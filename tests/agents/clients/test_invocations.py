"""The command lines, without starting anything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest

from outlay.agents.clients.contract import Invocation, Request, Usage
from outlay.agents.clients.registry import NAMES, by_name
from tests.agents.clients.real import CLIENTS

ASKED = Request(
    prompt="say \"hi\"; rm -rf '$HOME' {key}\n",
    folder="/w",
    home="/h",
    command=("program",),
    model='m"1',
    url="http://127.0.0.1:9",
    key="sk-secret",
)


def invoke(client: str, **fields: Any) -> Invocation:
    return by_name(client).invoke(ASKED._replace(**fields))


@pytest.mark.parametrize("client", CLIENTS)
def test_a_key_goes_into_the_environment_and_nowhere_else(client: str) -> None:
    made = invoke(client)
    assert "sk-secret" in made.environment.values()
    assert "sk-secret" not in json.dumps([made.command, made.files])
    assert made.environment["HOME"] == "/h"


@pytest.mark.parametrize("client", CLIENTS)
def test_without_an_address_the_configuration_of_the_user_stays(client: str) -> None:
    made = invoke(client, url="", key="")
    assert not {"HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"} & made.environment.keys()
    assert not any(word in " ".join(made.command) for word in ("--bare", "127.0.0.1"))


def test_the_settings_of_codex_are_toml_whatever_the_address_is() -> None:
    command = invoke("codex", url='http://h/"é\\', confined=False).command
    given = [command[i + 1] for i, part in enumerate(command) if part == "-c"]
    read = tomllib.loads("\n".join(given))
    assert read["model_providers"]["outlay"]["base_url"] == 'http://h/"é\\/v1'
    assert read["features"]["unbounded_connection_retries"] is False
    assert command[-2:] == ("--", ASKED.prompt)
    assert "workspace-write" in command


def test_a_sandbox_of_their_own_is_off_inside_ours_only() -> None:
    assert "--dangerously-bypass-approvals-and-sandbox" in invoke("codex").command
    assert (
        "--dangerously-bypass-approvals-and-sandbox" not in invoke("codex", confined=False).command
    )
    claude = invoke("claude")
    assert "--dangerously-skip-permissions" in claude.command
    assert claude.environment["IS_SANDBOX"] == "1"
    for client in ("opencode", "acp"):
        with pytest.raises(ValueError, match="bubblewrap"):
            invoke(client, confined=False)


def test_claude_without_the_programs_of_its_sandbox_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ValueError, match="no bwrap and no socat"):
        invoke("claude", confined=False)


def test_opencode_needs_the_name_of_a_model() -> None:
    with pytest.raises(ValueError, match="model: found none"):
        invoke("opencode", model="")


def test_a_template_is_filled_once_and_by_no_shell() -> None:
    made = invoke("command", command=("p", "{prompt}", "--m={model}", "{url}{key}{home}", "{x y}"))
    assert made.command == (
        *("p", ASKED.prompt, '--m=m"1', "http://127.0.0.1:9sk-secret/h", "{x y}"),
    )
    assert made.files == {"PLAN.md": ASKED.prompt}
    assert made.environment == {"OUTLAY_PLAN": "/h/PLAN.md"}
    assert invoke("command", command=("p", "{plan}")).command == ("p", "/h/PLAN.md")


@pytest.mark.parametrize("client", ["command", "acp"])
def test_a_command_line_is_needed(client: str) -> None:
    with pytest.raises(ValueError, match="no command line"):
        invoke(client, command=())


@pytest.mark.parametrize("client", NAMES)
def test_no_prompt_is_too_long_or_holds_what_no_command_can(client: str) -> None:
    made = invoke(client, prompt="é\0" * 400_000, command=("/bin/true",))
    assert max(len(os.fsencode(part)) for part in made.command) < 131_072
    assert "\0" not in "".join((*made.command, *made.files.values(), made.stdin))


def test_a_client_of_another_package(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("mine", "outlay.agents.clients.command:Command", "outlay.clients")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: EntryPoints([point]))
    assert by_name("mine").name == "command"
    with pytest.raises(ValueError, match=r"found 'other', allowed: codex, .*, mine"):
        by_name("other")


def test_what_an_attempt_loads_is_quick_and_the_standard_library() -> None:
    script = (
        "import sys\n"
        "from outlay.agents.clients.registry import NAMES, by_name\n"
        "[by_name(name).reader() for name in NAMES]\n"
        "found = {name.split('.')[0] for name in sys.modules}\n"
        "print(sorted(found - set(sys.stdlib_module_names) - {'outlay', '__main__'}))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    left = [name for name in json.loads(done.stdout.replace("'", '"')) if "editable" not in name]
    assert [name for name in left if not name.startswith(("_", "sitecustomize"))] == []


def test_usage_since_an_earlier_count() -> None:
    early = Usage(input=10, output=5, usd=0.25, requests=1)
    late = Usage(input=25, output=6, cached=3, usd=1.0, requests=3, source="session")
    assert late.minus(early) == late._replace(input=15, output=1, usd=0.75, requests=2)
    assert early.minus(late).input == 0
