"""Every process of a job ends with it, and no other process does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from outlay.execution import processes, recover
from outlay.execution.folder import read_usage
from tests.execution.conftest import Lab, of_token, until

if TYPE_CHECKING:
    from outlay.execution.sandbox import Kind

STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
"""
SETSID = (
    STUBBORN
    + """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(1); os.close(2)
        time.sleep(600)
    os._exit(0)
os.wait()
"""
)
FOREVER = "\nprint('started', flush=True)\ntime.sleep(600)\n"
SCORED = "\nprint('{\"score\": 0.5}')\n"


@pytest.mark.parametrize("script", [STUBBORN + FOREVER, SETSID + FOREVER])
def test_timeout_ends_the_whole_tree(lab: Lab, kind: Kind, script: str) -> None:
    job = lab.job(script, seconds=0.7, sandbox=kind)
    result = lab.run(job)
    assert (result.status, result.reason, result.sandbox) == ("failed", "timeout", kind)
    assert 0.7 <= result.seconds < 4
    assert result.runs[0].value is None
    assert of_token(job.token) == []


def test_a_daemon_does_not_outlive_a_good_evaluation(lab: Lab, kind: Kind) -> None:
    job = lab.job(SETSID + SCORED, sandbox=kind)
    result = lab.run(job)
    assert result.status == "done"
    assert result.seconds < 10
    assert of_token(job.token) == []


def test_a_daemon_without_its_environment_ends_too(lab: Lab, kind: Kind) -> None:
    mark = f"{time.time_ns()}"
    script = f"""
import os, time
if os.fork() == 0:
    os.setsid()
    os.execve("/bin/sleep", ["sleep", "600.{mark}"], {{}})
time.sleep(0.3)
{SCORED}"""
    assert lab.run(lab.job(script, sandbox=kind)).status == "done"
    assert not _with_argument(f"600.{mark}")


def test_closed_stdout_is_no_answer_and_no_hang(lab: Lab, kind: Kind) -> None:
    job = lab.job("import os\nos.close(1)\nos.close(2)\n", sandbox=kind)
    result = lab.run(job)
    assert (result.status, result.reason) == ("failed", "metric")
    assert "never printed" in result.detail


def test_memory_hog_is_ended(lab: Lab, kind: Kind) -> None:
    script = "import time\nkept = []\nwhile True:\n    kept.append(bytearray(b'x' * 10_000_000))\n"
    job = lab.job(script + "    time.sleep(0.01)\n", memory=150_000_000, sandbox=kind)
    result = lab.run(job)
    assert (result.status, result.reason) == ("failed", "memory")
    assert 150_000_000 < result.peak_memory < 600_000_000
    assert of_token(job.token) == []


def test_memory_counts_the_tree_and_shared_pages_once(lab: Lab) -> None:
    script = """
import os, time
kept = bytearray(b"x" * 60_000_000)
for _ in range(4):
    if os.fork() == 0:
        time.sleep(600)
time.sleep(0.5)
"""
    assert lab.run(lab.job(script + SCORED, memory=150_000_000)).status == "done"
    own = "        own = b'y' * 60_000_000\n        time.sleep"
    script = script.replace("        time.sleep", own).replace("sleep(0.5)", "sleep(20)")
    result = lab.run(lab.job(script + SCORED, memory=150_000_000))
    assert result.reason == "memory"


def test_a_kill_from_outside_is_no_fault_of_the_work(lab: Lab, kind: Kind) -> None:
    job = lab.job("import os\nos.kill(os.getpid(), 9)\n", sandbox=kind)
    result = lab.run(job)
    if kind == "unshare":  # its helper turns the signal into an exit code
        assert result.status in ("infrastructure", "failed")
    else:
        assert (result.status, result.reason) == ("infrastructure", "host")


def test_ended_on_request_with_an_answer(lab: Lab, kind: Kind) -> None:
    job = lab.job(SETSID + FOREVER, sandbox=kind)
    lab.pool.start(job)
    until(lambda: "started" in _text(lab, job.id))
    lab.pool.end(job.id)
    (result,) = lab.pool.wait(10)
    assert (result.status, result.reason) == ("infrastructure", "ended")
    assert of_token(job.token) == []


def test_nothing_outlives_a_killed_wrapper(lab: Lab, kind: Kind) -> None:
    job = lab.job(SETSID + FOREVER, sandbox=kind)
    lab.pool.start(job)
    until(lambda: "started" in _text(lab, job.id))
    until(lambda: read_usage(lab.folder(job)).seconds > 1.0)  # a heartbeat with all processes
    fate = recover.look(lab.run_folder, job.id, job.token)
    assert isinstance(fate, recover.Alive)
    os.kill(fate.process.pid, signal.SIGKILL)
    until(lambda: not processes.alive(fate.process))
    (result,) = lab.pool.wait(10)
    assert (result.status, result.reason) == ("infrastructure", "host")
    assert 1.0 < result.seconds < 20
    assert of_token(job.token) == []
    seen = read_usage(lab.folder(job)).seen
    assert seen
    assert not [process for process in seen if processes.alive(process)]


def test_namespaces_die_with_the_wrapper_at_once(lab: Lab, kind: Kind) -> None:
    if kind == "subreaper":
        pytest.skip("without a namespace, orphans are ended by recovery")
    job = lab.job(SETSID + FOREVER, sandbox=kind)
    lab.pool.start(job)
    until(lambda: "started" in _text(lab, job.id))
    fate = recover.look(lab.run_folder, job.id, job.token)
    assert isinstance(fate, recover.Alive)
    os.kill(fate.process.pid, signal.SIGKILL)
    until(lambda: of_token(job.token) == [])


def test_others_are_left_alone(lab: Lab, kind: Kind) -> None:
    """A process of the same name, one of the same group of programs and a stranger live on."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as stranger:
        job = lab.job(SETSID + FOREVER, seconds=0.5, sandbox=kind)
        other = lab.job(STUBBORN + FOREVER)
        lab.pool.start(other)
        until(lambda: "started" in _text(lab, other.id))
        lab.run(job)
        recover.ensure_ended(lab.run_folder, job.id, job.token)
        assert stranger.poll() is None
        assert len(of_token(other.token)) >= 2
        stranger.kill()


def test_a_reused_process_id_is_not_ended() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        found = processes.row(child.pid)
        assert found is not None
        other = found.process._replace(start=found.process.start - 1)
        assert not processes.send(other, signal.SIGKILL)
        assert child.poll() is None
        assert processes.send(found.process, signal.SIGKILL)


def _text(lab: Lab, job_id: str) -> str:
    file = lab.run_folder / "jobs" / job_id / "out.txt"
    return file.read_text() if file.exists() else ""


def _with_argument(argument: str) -> list[int]:
    found = []
    for row in processes.table():
        try:
            with open(f"/proc/{row.process.pid}/cmdline", "rb") as file:
                if argument.encode() in file.read():
                    found.append(row.process.pid)
        except OSError:
            continue
    return found
