"""What may happen to a run from outside: kills, viewers, clocks, disks, other drivers."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from outlay import events, sqlite_store, taskfile
from outlay.cli.app import main
from outlay.digest import digest
from outlay.driver import Driver
from outlay.execution import folder as jobs
from outlay.execution import processes
from outlay.execution.calls import Calls
from outlay.replay import verify
from outlay.report import write_report
from outlay.runs import Settings, open_run, place_of
from outlay.sqlite_store import SqliteStore
from outlay.state import State
from tests.e2e.conftest import OUTLAY, SCORE, TASK, Command, digest_of, edit, log_of, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from outlay.execution.processes import Process

DIES_AFTER = """\
import os, signal, sys
from outlay import sqlite_store
from outlay.api import search
left, plain = int(sys.argv[2]), sqlite_store.SqliteStore._run_script
def commit(store, statements):
    global left
    plain(store, statements)
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
sqlite_store.SqliteStore._run_script = commit
search(sys.argv[1])
"""

VIEWER = """\
import contextlib, io, json, sys
from outlay.cli.app import main
store, page = sys.argv[1:]
while True:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        first = main(["show", "--store", store, "--json"])
    if first == 0:
        json.loads(shown.getvalue())
    with contextlib.redirect_stdout(io.StringIO()):
        second = main(["report", "--store", store, "--out", page])
    print(first, second, flush=True)
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of the one-lever task when nothing happens to it."""
    folder = write_task(tmp_path_factory.mktemp("undisturbed"))
    assert drive(folder) == 0
    return digest_of(folder)


def write_task(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "score.py").write_text(SCORE)
    (folder / "outlay.toml").write_text(TASK)
    return folder


def drive(folder: Path, dies_after: int = 0) -> int:
    """Search in a process that may die right after a commit; return how it ended."""
    command = [sys.executable, "-c", DIES_AFTER, str(folder), str(dies_after)]
    return subprocess.run(command, check=False, timeout=120).returncode


@contextmanager
def driving(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A search in the background, killed if it is still there."""
    with subprocess.Popen(
        [OUTLAY, "search", str(folder), "--json", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            yield child
        finally:
            child.kill()


def job(folder: Path, identity: str) -> Path:
    return folder / ".outlay" / "runs" / "switches" / "jobs" / identity


def wrapper(folder: Path, identity: str) -> Process:
    """Return the process of a job, once it has claimed it."""
    until((job(folder, identity) / "claim").exists)
    claim = jobs.read_claim(job(folder, identity))
    assert claim is not None
    assert claim.process is not None
    return claim.process


# Kills.


@pytest.mark.parametrize("commits", [1, 2, 3])
def test_killed_while_it_begins_it_comes_to_the_same_end(
    tmp_path: Path, undisturbed: str, commits: int
) -> None:
    folder = write_task(tmp_path / "task")
    assert drive(folder, dies_after=commits) == -signal.SIGKILL
    assert drive(folder) == 0
    assert digest_of(folder) == undisturbed


@pytest.mark.parametrize("commits", [4, 5])
def test_killed_after_every_kth_commit_it_comes_to_the_same_end(
    tmp_path: Path, undisturbed: str, commits: int
) -> None:
    # A sitting begins with a commit of its own, and a launch that never began is closed and
    # launched again, so with fewer than four a run would not get anywhere.
    folder = write_task(tmp_path / "task")
    ends = [drive(folder, dies_after=commits)]
    while ends[-1] != 0:
        assert ends[-1] == -signal.SIGKILL
        assert len(ends) < 20
        ends.append(drive(folder, dies_after=commits))
    assert len(ends) >= 3
    assert digest_of(folder) == undisturbed
    assert verify(log_of(folder)) == []


def test_a_killed_attempt_process_closes_the_try_and_the_same_attempt_is_tried_again(
    task: Path,
) -> None:
    edit(task, '"--a"', '"--a --slow 0.5"')
    with driving(task) as child:
        assert processes.send(wrapper(task, "a1.1"), signal.SIGKILL)
        assert child.wait(60) == 0
    log = [entry.event for entry in log_of(task)]
    tries = [e for e in log if isinstance(e, events.AttemptSettled)]
    assert [(e.attempt, e.trial, e.outcome) for e in tries] == [
        (1, 1, "interrupted"),
        (1, 2, "scored"),
    ]
    assert [e.charge.attempts for e in tries] == [0, 1]
    state = State.of(log_of(task))
    assert state.ledger.by_kind["execution"].seconds == sum(e.charge.seconds for e in tries)
    assert state.ledger.spent.attempts == 1


def test_three_lost_tries_close_an_attempt(task: Path) -> None:
    edit(task, '"--a"', '"--a --slow 20"')
    with driving(task) as child:
        for trial in (1, 2, 3):
            victim = wrapper(task, f"a1.{trial}")
            until((job(task, f"a1.{trial}") / "usage.json").exists)
            processes.send(victim, signal.SIGKILL)
        out, err = child.communicate(timeout=60)
    tries = [e.event for e in log_of(task) if isinstance(e.event, events.AttemptSettled)]
    assert [e.outcome for e in tries] == ["interrupted", "interrupted", "lost"]
    assert [e.charge.attempts for e in tries] == [0, 0, 1]
    assert child.returncode == 4, err
    found = json.loads(out)
    assert found["champion"]["node"] == found["baseline"]["node"]
    assert found["charges"]["total"]["attempts"] == 1


# Others at the same store.


def test_a_second_driver_is_refused_and_the_first_unharmed(
    task: Path, outlay: Command, undisturbed: str
) -> None:
    with driving(task) as first:
        until((job(task, "m1.1") / "claim").exists)
        refused = [outlay(*words) for words in (("search", task), ("resume", "--store", task))]
        out, _ = first.communicate(timeout=60)
    assert [done.returncode for done in refused[:1]] == [5]
    assert f"process {first.pid} on" in refused[0].stderr
    assert refused[1].returncode in (2, 5)
    assert json.loads(out)["status"] == "exhausted"
    assert digest_of(task) == undisturbed


def test_viewers_may_look_at_any_time(task: Path, undisturbed: str) -> None:
    command = [sys.executable, "-c", VIEWER, task / ".outlay" / "store.db", task.parent / "p.html"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as viewer:
        for commits in (4, 3, 5):
            drive(task, dies_after=commits)
        assert drive(task) == 0
        time.sleep(0.5)
        viewer.kill()
        out, err = viewer.communicate()
    looks = [tuple(map(int, line.split())) for line in out.splitlines()]
    assert len(looks) >= 3
    seen = [code for codes in looks for code in codes]
    assert seen[-1] == 0
    assert set(seen[seen.index(0) :]) == {0}
    assert set(seen) <= {0, 2, 5}
    assert "Traceback" not in err
    assert "locked" not in err
    assert digest_of(task) == undisturbed


def test_a_clock_that_goes_back_an_hour_changes_neither_limits_nor_order(task: Path) -> None:
    edit(task, "attempts = 16", 'time = "100s"')
    found = [_with_clock(task, task.parent / name, jump) for name, jump in (("a", 0), ("b", 3600))]
    (plain, plain_log), (moved, log) = found
    assert digest(log) == digest(plain_log)
    assert [e.elapsed for e in log] == sorted(e.elapsed for e in log)
    assert [e.elapsed for e in log] == [e.elapsed for e in plain_log]
    assert min(e.at for e in log) < log[0].at
    assert moved.ended == plain.ended
    assert moved.ended is not None
    assert moved.ended.status == "exhausted"
    page = write_report(moved, log, task.parent / "b", "switches")
    assert "exhausted" in page.read_text()


def _with_clock(task: Path, folder: Path, jump: float) -> tuple[State, list[events.Entry]]:
    """Search with clocks of our own; the wall clock jumps back in the middle."""
    loaded, ticks, looks = taskfile.load(task), iter(range(10**6)), iter(range(10**6))
    settings = Settings()
    with SqliteStore(folder / "store.db", "write") as store:
        state, began = open_run(store, loaded, "switches", settings, None)
        driver = Driver(
            store,
            "switches",
            state,
            place_of(loaded, folder, settings),
            Calls(lambda config, seed: 0.2 * (config["a"] == "on") + 0.01 * ((seed or 0) % 3)),
            monotonic=lambda: next(ticks) / 100,
            now=lambda: 1e9 + (look := next(looks)) - jump * (look > 5),
        )
        driver.record(*began)
        driver.drive()
        return driver.state, list(store.read("switches"))


# Disks.


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A file system of its own in memory; skips where that is not allowed."""
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if os.getuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def remount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)


@pytest.mark.parametrize("size", ["size=8k", "size=80k", "size=160k", "nr_inodes=30"])
def test_a_full_disk_ends_with_a_message_and_goes_on_when_there_is_room(
    task: Path, outlay: Command, undisturbed: str, size: str
) -> None:
    with mounted(task / ".outlay", size) as disk:
        _full_then_room(task, outlay, disk, undisturbed)


@pytest.mark.parametrize("size", ["size=24k", "size=60k"])
def test_a_full_disk_of_the_run_folder_alone(
    task: Path, outlay: Command, undisturbed: str, size: str
) -> None:
    with mounted(task / ".outlay" / "runs", size) as disk:
        _full_then_room(task, outlay, disk, undisturbed)


def test_a_full_disk_of_the_store_alone(task: Path, outlay: Command, undisturbed: str) -> None:
    with mounted(task / ".outlay", "size=100k") as disk:
        (task.parent / "runs").mkdir()
        (disk / "runs").symlink_to(task.parent / "runs")
        _full_then_room(task, outlay, disk, undisturbed)


def _full_then_room(task: Path, outlay: Command, disk: Path, undisturbed: str) -> None:
    full = outlay("search", task, "--json")
    assert full.returncode == 1, full.stderr
    assert full.stdout == ""
    assert "make room and run the same command again" in full.stderr
    assert "Traceback" not in full.stderr
    remount(disk, "size=50m,nr_inodes=10000")
    done = outlay("search", task, "--json")
    assert done.returncode == 0, done.stderr
    assert digest_of(task) == undisturbed


def test_a_read_only_disk_refuses_a_driver_and_serves_readers(task: Path, outlay: Command) -> None:
    with mounted(task / ".outlay", "size=20m") as disk:
        assert outlay("search", task).returncode == 0
        remount(disk, "ro")
        done = outlay("search", task, "--json")
        assert (done.returncode, done.stdout) == (5, "")
        assert "Read-only file system" in done.stderr
        assert "--store" in done.stderr
        shown = outlay("show", "--store", disk / "store.db", "--json")
        assert json.loads(shown.stdout)


def test_a_store_that_cannot_be_made_is_named(task: Path, outlay: Command) -> None:
    (task / ".outlay").write_text("a file in the way")
    done = outlay("search", task)
    assert done.returncode == 5
    assert f"{task}/.outlay" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_store_of_a_newer_version_is_refused_naming_both(task: Path, outlay: Command) -> None:
    assert drive(task) == 0
    store = task / ".outlay" / "store.db"
    with sqlite3.connect(store) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    for words in (("search", task), ("show", "--store", store), ("resume", "--store", store)):
        done = outlay(*words)
        assert done.returncode == 5
        assert "version 99" in done.stderr
        assert f"up to {len(sqlite_store.MIGRATIONS)}" in done.stderr


def test_a_network_file_system_is_refused(
    task: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mounts = task.parent / "mountinfo"
    mounts.write_text(f"36 35 0:42 / {task} rw,relatime shared:1 - nfs4 server:/home rw\n")
    monkeypatch.setattr(sqlite_store.refuse_network, "__defaults__", (mounts,))
    assert main(["search", str(task)]) == 5
    assert "network file system (nfs4)" in capsys.readouterr().err


# What is deleted or changed meanwhile.


def test_results_in_a_run_folder_without_its_store_are_not_taken(
    task: Path, outlay: Command
) -> None:
    first = json.loads(outlay("search", task, "--json").stdout)
    _forget_store(task)
    score = (task / "score.py").read_text()
    (task / "score.py").write_text(score.replace("0.5 + gain", "0.7 + gain"))
    second = json.loads(outlay("search", task, "--json").stdout)
    for who in ("baseline", "champion"):
        assert second[who]["selected"] == pytest.approx(first[who]["selected"] + 0.2)
        assert second[who]["fresh"]["mean"] == pytest.approx(first[who]["fresh"]["mean"] + 0.2)


def test_processes_of_a_run_whose_store_is_gone_are_ended(task: Path, outlay: Command) -> None:
    edit(task, '"--a"', '"--a --slow 60"')
    with driving(task):
        orphan = wrapper(task, "a1.1")
    assert processes.alive(orphan)
    _forget_store(task)
    edit(task, "--slow 60", "--slow 0")
    assert outlay("search", task).returncode == 0
    assert not processes.alive(orphan)


def _forget_store(task: Path) -> None:
    for file in (task / ".outlay").glob("store.db*"):
        file.unlink()


def test_a_workspace_that_is_deleted_meanwhile_is_not_needed(
    task: Path, outlay: Command, undisturbed: str
) -> None:
    with driving(task) as child:
        until((job(task, "m1.1") / "claim").exists)
        (task / "score.py").rename(task.parent / "away.py")
        _, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    assert digest_of(task) == undisturbed
    again = outlay("resume", "--store", task / ".outlay" / "store.db")
    assert again.returncode == 2
    assert "files" in again.stderr


def test_a_task_folder_that_is_gone_is_named(task: Path, outlay: Command) -> None:
    store = task.parent / "kept" / "store.db"
    assert outlay("search", task, "--store", store).returncode == 0
    shutil.rmtree(task)
    done = outlay("resume", "--store", store)
    assert done.returncode == 2
    assert str(task) in done.stderr
    assert "Traceback" not in done.stderr
    assert outlay("show", "--store", store).returncode == 0


# Limits.


def test_wall_clock_ends_what_overruns_and_still_measures_the_end(
    task: Path, outlay: Command
) -> None:
    edit(task, "attempts = 16", 'time = "6s"')
    edit(task, '{ off = "", on = "--a" }', '{ off = "", on = "--a", slow = "--slow 100" }')
    began = time.monotonic()
    done = outlay("search", task, "--json")
    assert done.returncode in (0, 4), done.stderr
    assert time.monotonic() - began < 15
    found = json.loads(done.stdout)
    settled = [e.event for e in log_of(task) if isinstance(e.event, events.AttemptSettled)]
    slow = [e for e in settled if e.outcome == "failed"]
    assert [e.reason for e in slow] == ["budget"]
    assert all(e.value is None for event in slow for e in event.evaluations)
    assert found["champion"]["fresh"]["n"] == 3
    assert found["status"] in ("budget", "exhausted")
    assert State.of(log_of(task)).elapsed < 9


def test_four_workers_with_options_that_fail_hang_and_crash(task: Path, outlay: Command) -> None:
    score = (task / "score.py").read_text()
    crash = 'import os\nif "--crash" in arguments:\n    os.abort()\n'
    (task / "score.py").write_text(score.replace("gain = ", crash + "gain = "))
    options = 'on = "--a", broken = "--broken", hangs = "--slow 100", dies = "--crash"'
    edit(task, 'on = "--a"', options)
    edit(task, "[budget]", "[limits]\nseconds = 3\n[budget]")
    done = outlay("search", task, "--json", "--workers", "4")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["status"], found["attempts"]) == ("exhausted", 4)
    assert found["champion"]["configuration"]["a"] == "on"
    assert found["difference"]["low"] > 0
    state = State.of(log_of(task))
    outcomes = {
        state.configuration(node)["a"]: (node.status, node.score is None)
        for node in state.tree.nodes
        if node.attempt
    }
    failed = ("failed", True)
    assert outcomes == {
        "on": ("scored", False),
        "broken": failed,
        "hangs": failed,
        "dies": failed,
    }
    assert verify(log_of(task)) == []
    left = [p for p in processes.table() if str(task) in _command_line(p.process.pid)]
    assert left == []


def _command_line(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    return ""
