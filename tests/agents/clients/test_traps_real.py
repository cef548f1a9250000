"""What the real clients do to a driver that trusts them, and that ours does not fall for it.

Beside these: hangs, denied tools and usage of resumed sessions in the file of each client.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.agents.clients.real import REAL, WROTE, Lab, end_all_with, installed, processes_with
from tests.model_server import ModelServer, Turn, turns

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = REAL
SLEEPS = turns(Turn(shell="sleep 60"), Turn(text="slept"))


@pytest.fixture
def codex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    installed("codex", monkeypatch)
    return Lab("codex", tmp_path)


def test_codex_waits_for_ever_for_a_server_that_refuses_unless_told(codex: Lab) -> None:
    invocation = codex.client.invoke(codex.request("http://127.0.0.1:9"))
    ours = codex.start(invocation, 20)
    switch = "features.unbounded_connection_retries"
    command = tuple(a.replace(f"{switch}=false", f"{switch}=true") for a in invocation.command)
    theirs = codex.start(invocation._replace(command=command), 8)
    assert (ours.ended.stop, theirs.ended.stop) == ("", "timeout")


def by_hand(lab: Lab, url: str, token: str, program: str = "") -> subprocess.Popen[bytes]:
    """Start the client as one would by hand, with an open pipe as its input."""
    asked = lab.request(url, command=(program,) if program else ())
    invocation = lab.client.invoke(asked)
    for name, text in invocation.files.items():
        (lab.home / name).parent.mkdir(parents=True, exist_ok=True)
        (lab.home / name).write_text(text)
    environment = {"PATH": os.environ["PATH"], "TOKEN": token} | invocation.environment
    return subprocess.Popen(
        invocation.command,
        cwd=lab.work,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def ends(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


@pytest.mark.parametrize("client", ["codex", "opencode"])
def test_an_open_input_is_waited_for(
    client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(client, monkeypatch)
    lab = Lab(client, tmp_path)
    with ModelServer(WROTE) as server, by_hand(lab, server.url, "") as process:
        waited = not ends(process, 6)
        asked = len(server.seen)
        assert process.stdin is not None
        process.stdin.close()
        try:
            assert ends(process, 60)
        finally:
            process.kill()
    assert (waited, asked) == (True, 0)


def test_a_killed_wrapper_leaves_its_agent_and_our_end_of_the_tree_nothing(codex: Lab) -> None:
    wrapper = shutil.which("codex")
    with open(str(wrapper), "rb") as file:
        if file.read(2) != b"#!":
            pytest.skip("codex is not from npm here, so it has no wrapper")
    token = secrets.token_hex(16)
    codex.held = "unshare"  # no sandbox hides the processes from us
    with ModelServer(SLEEPS) as server:
        with by_hand(codex, server.url, token, str(wrapper)) as process:
            assert process.stdin is not None
            process.stdin.close()
            _until(lambda: len(server.seen) > 0)
            process.send_signal(signal.SIGKILL)
            process.wait()
            left = end_all_with(token)
        token = secrets.token_hex(16)
        invocation = codex.client.invoke(codex.request(server.url, command=(str(wrapper),)))
        environment = invocation.environment | {"TOKEN": token}
        ran = codex.start(invocation._replace(environment=environment), 3)
    assert left
    assert (ran.ended.stop, ran.ended.left, processes_with(token)) == ("timeout", 0, [])


def _until(done: object) -> None:
    for _ in range(600):
        if done():  # type: ignore[operator]
            return
        time.sleep(0.05)
    pytest.fail("it did not happen within 30 s")


def test_a_killed_opencode_leaves_the_tool_that_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed("opencode", monkeypatch)
    lab = Lab("opencode", tmp_path)
    token = secrets.token_hex(16)
    script = turns(Turn(shell="touch started; sleep 63"), Turn(text="slept"))
    with ModelServer(script) as server, by_hand(lab, server.url, token) as process:
        assert process.stdin is not None
        process.stdin.write(b"Write hello.txt.")
        process.stdin.close()
        _until((lab.work / "started").exists)
        process.kill()
        process.wait()
        left = end_all_with(token)
    assert left


@pytest.mark.parametrize("client", ["claude", "opencode"])
def test_a_tool_that_still_runs_dies_with_our_end_of_the_tree(
    client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(client, monkeypatch)
    lab = Lab(client, tmp_path)
    lab.held = "unshare"
    token = secrets.token_hex(16)
    tool = f"touch started; sleep 61 # {token}"
    with ModelServer(turns(Turn(shell=tool), Turn(text="slept"))) as server:
        ran = lab.run(server.url, until=(lab.work / "started").exists)
    assert (ran.ended.stop, ran.ended.left, processes_with(token)) == ("ended", 0, [])


def test_codex_ends_with_0_though_its_tool_could_not_write(codex: Lab) -> None:
    codex.held = "unshare"
    with ModelServer(WROTE) as server:
        invocation = codex.client.invoke(codex.request(server.url, confined=False))
        command = tuple(a.replace("workspace-write", "read-only") for a in invocation.command)
        ran = codex.start(invocation._replace(command=command), 30)
    assert (ran.ended.code, ran.ending.answer) == (0, "I wrote it.")
    assert not (codex.work / "hello.txt").exists()  # so the caller looks at the files
    assert ran.ending.detail in ("it ended without a command that ran", "its last command failed")
