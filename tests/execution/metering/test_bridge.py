"""The bridge as a process: by itself, and in a real sandbox without network."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import outlay
from outlay.execution import sandbox
from outlay.execution.metering.bridge import bridged
from tests.execution.metering.conftest import KEY, PATHS, QUIET, SECRET, asking, metered
from tests.model_server import ModelServer, Turn, turns

CLIENT = f"""
import http.client, os, sys, time
port, wait = int(sys.argv[1]), float(sys.argv[2])
client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
client.connect()
print("connected", flush=True)
time.sleep(wait)
client.request("POST", {PATHS["responses"]!r}, {asking("responses", stream=True)!r},
               {{"authorization": "Bearer {SECRET}"}})
print(client.getresponse().read().decode(), flush=True)
"""

needs_bwrap = pytest.mark.skipif(not sandbox.works("bwrap"), reason="bubblewrap does not start")


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run(
    *command: str, place: str = "/tmp/nobody-listens", **given: Any
) -> subprocess.CompletedProcess[str]:
    line = bridged(command, free_port(), place)
    return subprocess.run(line, capture_output=True, text=True, timeout=20, check=False, **given)


@pytest.mark.parametrize("code", [0, 1, 77, 255])
def test_the_exit_code_is_the_commands(code: int) -> None:
    done = run("sh", "-c", f"echo out; echo err >&2; exit {code}")
    assert (done.returncode, done.stdout, done.stderr) == (code, "out\n", "err\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_it_ends_by_the_signal_that_ended_the_command(number: int) -> None:
    assert run("sh", "-c", f"ulimit -c 0; kill -{number} $$").returncode == -number


def test_a_command_that_cannot_be_started() -> None:
    done = run("no-such-command")
    assert done.returncode == 127
    assert "'no-such-command' cannot be started: No such file" in done.stderr


def test_the_command_reads_what_the_bridge_is_given() -> None:
    assert run("cat", input="for you").stdout == "for you"


def test_it_starts_in_the_same_folder_with_the_same_environment(tmp_path: Path) -> None:
    script = "import os; print(os.getcwd(), os.environ['X'], sorted(os.listdir('/proc/self/fd')))"
    done = run(sys.executable, "-c", script, cwd=tmp_path, env={"X": "y"})
    assert done.stdout == f"{tmp_path} y ['0', '1', '2', '3']\n"  # 3 lists the folder


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP])
def test_a_signal_reaches_the_whole_group_once(number: int) -> None:
    inner = f"trap 'echo inner; exit 0' {number}; echo ready; while :; do sleep 0.02; done"
    outer = f"trap 'echo outer; wait; exit 7' {number}; sh -c \"{inner}\" & wait"
    process = subprocess.Popen(
        bridged(("sh", "-c", outer), free_port(), "/tmp/nobody-listens"),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    text, _ = process.communicate(timeout=10)
    assert sorted(text.split()) == ["inner", "outer"]
    assert process.returncode == 7


def test_connections_outlive_the_command(tmp_path: Path) -> None:
    port, place = free_port(), tmp_path / "model.sock"
    script = tmp_path / "client.py"
    script.write_text(CLIENT)
    left = f"{sys.executable} {script} {port} 0.5 > {tmp_path}/out &"
    wait = f"until grep -q connected {tmp_path}/out; do sleep 0.02; done"
    with (
        ModelServer(turns(Turn(text="all is well"))) as server,
        metered(server, socket=place) as proxy,
    ):
        command = ("sh", "-c", f"{left} {wait}; exit 3")
        done = subprocess.run(bridged(command, port, str(place)), timeout=20, check=False)
        assert done.returncode == 3
        assert proxy.usage._replace(source="") == server.told(KEY)
    assert "all is well" in (tmp_path / "out").read_text()


def test_a_connection_that_stays_open_does_not_hold_it_for_ever(tmp_path: Path) -> None:
    port, place = free_port(), tmp_path / "model.sock"
    source = bridged(("true",), port, str(place))
    quick = [part.replace("LINGER = 5.0", "LINGER = 0.2") for part in source[:-1]]
    script = tmp_path / "client.py"
    script.write_text(CLIENT)
    left = f"{sys.executable} {script} {port} 20 > {tmp_path}/out & echo $! > {tmp_path}/pid;"
    wait = f"until grep -q connected {tmp_path}/out; do sleep 0.02; done"
    with ModelServer() as server, metered(server, socket=place):
        begun = time.monotonic()
        done = subprocess.run([*quick, "sh", "-c", left + wait], timeout=20, check=False)
        assert done.returncode == 0
        assert time.monotonic() - begun < 10
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def laid_out(place: Path, exchange: Path) -> sandbox.View:
    """Return a view of new folders, with a client to run and what it needs to be seen."""
    view = sandbox.View(
        work=str(place / "work"),
        exchange=str(exchange),
        tmp=str(place / "tmp"),
        visible=(sys.base_prefix, sys.prefix, os.path.dirname(outlay.__file__)),
    )
    for folder in (view.work, view.exchange, view.tmp):
        os.makedirs(folder)
    Path(view.work, "client.py").write_text(CLIENT)
    return view


@needs_bwrap
def test_a_client_in_a_sandbox_without_network(tmp_path: Path) -> None:
    exchange = tmp_path.joinpath(*["a-rather-long-name"] * 8)
    view = laid_out(tmp_path, exchange)
    command = (sys.executable, "client.py", "8971", "0")
    with (
        ModelServer(turns(Turn(text="all is well"))) as server,
        metered(server, socket=exchange / "model.sock") as proxy,
    ):
        line = bridged(command, 8971, str(exchange / "model.sock"))
        wrapped = sandbox.wrap("bwrap", line, view)
        done = subprocess.run(wrapped, capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 0, done.stderr
        assert "all is well" in done.stdout
        assert proxy.usage.requests == 1
        assert proxy.usage._replace(source="") == server.told(KEY)
        port = server.url.rpartition(":")[2]
        direct = sandbox.wrap("bwrap", (sys.executable, "client.py", port, "0"), view)
        refused = subprocess.run(direct, capture_output=True, timeout=20, check=False)
        assert b"Connection refused" in refused.stderr


@needs_bwrap
def test_killing_the_sandbox_ends_everything_and_counts(tmp_path: Path) -> None:
    exchange = tmp_path / "exchange"
    view = laid_out(tmp_path, exchange)
    line = bridged((sys.executable, "client.py", "8971", "0"), 8971, str(exchange / "model.sock"))
    with (
        ModelServer(turns(Turn(text="x" * 60, fault="stall"))) as server,
        metered(server, socket=exchange / "model.sock", pace=QUIET) as proxy,
    ):
        process = subprocess.Popen(sandbox.wrap("bwrap", line, view), stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while not server.asked[KEY]:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.kill()
        process.wait(10)
        while not proxy.usage.requests:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert not proxy.usage.complete
