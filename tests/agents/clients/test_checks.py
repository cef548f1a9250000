from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING, Any

import pytest

from outlay.agents.clients import programs
from outlay.agents.clients.checks import examine_agent, examine_call
from outlay.cli.app import main
from tests.agents.clients.real import CLIENTS, installed
from tests.model_server import ModelServer, Turn, turns

if TYPE_CHECKING:
    from pathlib import Path


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/"])
def test_a_model_that_answers(client: str, end: str) -> None:
    with ModelServer(keys=("sk-secret",)) as server:
        check = examine_call(client, "m1", server.url + end, "sk-secret")
        body = json.loads(server.seen[0].body)
    assert check.ok, check.found
    assert body["model"] == "m1"
    assert max(body.get("max_tokens", 0), body.get("max_output_tokens", 0)) <= 16


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(("fault", "words"), [("401", "key"), ("429", "server"), ("400", "long")])
def test_a_model_that_does_not(client: str, fault: Any, words: str) -> None:
    with ModelServer(turns(Turn(fault=fault))) as server:
        check = examine_call(client, "m1", server.url, "sk-secret")
    assert check.ok is False
    assert words in check.found
    assert fault in check.found


def test_a_key_is_never_shown() -> None:
    check = examine_call("codex", "m1", "http://127.0.0.1:9/sk-secret", "sk-secret")
    assert check.ok is False
    assert "sk-secret" not in check.found


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x", "x"])
def test_an_address_that_is_none(url: str) -> None:
    assert examine_call("claude", "m1", url, "k").ok is False


@pytest.mark.parametrize(
    ("model", "path"), [("m1", "/v1/chat/completions"), ("anthropic:m1", "/v1/messages")]
)
def test_a_plain_model_is_asked_over_its_protocol(model: str, path: str) -> None:
    with ModelServer() as server:
        program, key, call = examine_agent("model", model=model, url=server.url)
        assert (program.ok, call.ok, server.seen[0].path) == (True, True, path)
        assert key.ok
        assert f"none is sent to {server.url}" in key.found
        assert json.loads(server.seen[0].body)["model"] == "m1"


def test_a_server_that_asks_for_a_key_where_none_is_named() -> None:
    with ModelServer(keys=("sk-secret",)) as server:
        *_, call = examine_agent("model", model="m1", url=server.url)
    assert not call.ok
    assert call.found.startswith("no key was sent, and the server asks for one (401)")


def test_without_a_model_no_call_is_made() -> None:
    with ModelServer() as server:
        check = examine_call("codex", "", server.url, "k")
        assert (check.ok, server.seen) == (True, [])
    assert examine_call("opencode", "", server.url, "k").ok is False


def test_a_program_is_found_and_its_version_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    program(tmp_path / "codex", "echo codex-cli 0.99.0")
    old, key = examine_agent("codex")
    assert (old.ok, "0.163.0" in old.found) == (False, True)
    assert (key.ok, "its own account" in key.found) == (True, True)
    program(tmp_path / "codex", "echo codex-cli 0.171.0")
    new, _ = examine_agent("codex")
    assert (new.ok, new.found) == (True, f"codex 0.171.0: {tmp_path / 'codex'}")


def test_the_real_program_is_preferred_to_the_script_of_npm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = tmp_path / "node_modules"
    script = program(modules / "@openai/codex/bin/codex.js", "exit 1")
    vendor = modules / "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin"
    native = program(vendor / "codex", "exit 0")
    (modules / ".bin").mkdir()
    (modules / ".bin" / "codex").symlink_to(script)
    monkeypatch.setenv("PATH", str(modules / ".bin"))
    assert programs.find("codex") == str(native)
    assert programs.needed(str(native)) == (str(modules),)
    assert programs.needed("codex") == (str(modules),)


def test_a_link_to_a_program_is_followed_unless_it_has_a_name_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = program(tmp_path / "packages/bin/codex", "exit 0")
    shim = program(tmp_path / "packages/shim", "exit 0")
    (tmp_path / "codex").symlink_to(real)
    (tmp_path / "claude").symlink_to(shim)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert programs.find("codex") == str(real)
    assert programs.needed(str(real)) == (str(real),)
    assert programs.find("claude") == str(tmp_path / "claude")
    assert programs.needed("claude") == (str(tmp_path / "claude"), str(shim))
    assert programs.needed("nosuch") == ()


def test_a_program_of_a_python_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundled = program(tmp_path / "claude_agent_sdk/_bundled/claude", "exit 0")
    (tmp_path / "claude_agent_sdk/__init__.py").write_text("raise ImportError")
    monkeypatch.setenv("PATH", "")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert programs.find("claude") == str(bundled)


def test_a_program_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ValueError, match="npm install -g opencode-ai"):
        programs.find("opencode")


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("nosuch", "allowed: codex, claude, opencode, command, acp"),
        ("command", "no command line"),
        ("command:nosuchprogram -x", "'nosuchprogram' is not on PATH"),
    ],
)
def test_doctor_refuses_an_agent(
    agent: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["doctor", "--agent", agent]) == 2
    assert words in capfd.readouterr().out


def test_a_relative_program_is_looked_for_where_it_would_start(tmp_path: Path) -> None:
    script = program(tmp_path / "agent.sh", "exit 0")
    assert examine_agent("command", command=("./agent.sh",), folder=tmp_path)[0].ok
    (missing,) = examine_agent("command", command=("./agent.sh",), folder=tmp_path / "x")
    assert (missing.ok, "is not in the workspace" in missing.found) == (False, True)
    script.chmod(0o644)
    (found,) = examine_agent("command", command=("./agent.sh",), folder=tmp_path)
    assert found.found == "command './agent.sh' is not executable (chmod +x)"


@pytest.mark.real_client
@pytest.mark.xdist_group("clients")
@pytest.mark.parametrize("client", CLIENTS)
def test_doctor_finds_the_real_clients(
    client: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    path = installed(client, monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MY_KEY", "sk-secret")
    with ModelServer(keys=("sk-secret",)) as server:
        options = ["--model", "m1", "--base-url", server.url, "--key", "MY_KEY", "--json"]
        assert main(["doctor", "--agent", client, *options]) == 0
    printed = capfd.readouterr().out
    checks = json.loads(printed)["checks"]
    assert [(check["name"], check["ok"]) for check in checks] == [
        ("agent", True),
        ("key", True),
        ("call", True),
    ]
    assert path in checks[0]["found"]
    assert "sk-secret" not in printed
