"""The commands that read a store, over a run that was made in process."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from outlay.cli import _reading
from outlay.cli.app import main, outlay
from outlay.events import RunStarted, SittingStarted
from outlay.report.programs import node_of
from outlay.runs import default_store
from outlay.sqlite_store import SqliteStore
from outlay.state import State
from tests.report.samples import drive, flat, started, task


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A task's folder with a store that holds one run of five attempts."""
    folder = tmp_path_factory.mktemp("made")
    drive(task(5), store=default_store(folder))
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch) -> Path:
    """A copy of it that is the current folder."""
    shutil.copytree(made, tmp_path / "task")
    monkeypatch.chdir(tmp_path / "task")
    return tmp_path / "task"


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def data(capsys, *arguments: str):
    code, out, _ = run(capsys, *arguments, "--json")
    assert code == 0
    return json.loads(out)


def test_runs_lists_them(here, capsys):
    (line,) = data(capsys, "runs")
    assert (line["run"], line["status"], line["attempts"]) == ("six", "budget", 5)
    assert "six" in run(capsys, "runs", str(here))[1]


def test_show_a_run(here, capsys):
    found = data(capsys, "show")
    assert found["summary"]["run"] == "six"
    assert found["tree"][0]["parent"] is None
    assert {node["attempt"] for node in found["tree"]} == set(range(6))
    _, out, err = run(capsys, "show", "six")
    assert "Which switches raise the accuracy?" in out
    assert "★" in out
    assert err == ""


def test_show_one_attempt(here, capsys):
    found = data(capsys, "show", "--attempt", "2")
    assert found["attempt"] == 2
    assert found["plan"].startswith("# Plan: six")
    assert found["ended"][0]["attempt"] == 2
    assert set(found["configuration"]) == {lever.name for lever in task().levers}
    assert "attempt 2" in run(capsys, "show", "--attempt", "2")[1]


def test_show_a_node_that_was_not_tried(here, capsys):
    tree = data(capsys, "show")["tree"]
    node = next(node["node"] for node in tree if node["status"] == "open")
    found = data(capsys, "show", "--node", str(node))
    assert (found["status"], found["ended"], found["log"]) == ("open", [], "")
    assert data(capsys, "show", "--node", "champion")["judged"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "--attempt", "99"), "--attempt: found 99, allowed: 1 to 5"),
        (("show", "--node", "x"), "node: found 'x', allowed: 0 to"),
        (("show", "--node", "1", "--attempt", "1"), "allowed: one of them"),
        (("show", "other"), "RUN: found 'other', allowed: a run of"),
        (("show", "p/q"), "RUN: found 'p/q', allowed: the name of a run, or a folder that has"),
        (("clean", "../x"), "RUN: found '../x', allowed: the name of a run"),
        (("report", "--out", "."), "--out: found the folder '.', allowed: a file"),
        (("report", "--format", "md", "--json"), "--format md and --json: found both"),
        (("report", "--out", "-", "--json"), "--out - and --json: found both"),
        (("show", "--atempt", "1"), "; see 'outlay show --help'"),
        (("show", "--attempt", "x"), "; see 'outlay show --help'"),
        (("nothing",), "outlay: No such command 'nothing'; see 'outlay --help'"),
        (("diff", "0", "999"), "node: found '999'"),
        (("export",), "exactly one of"),
        (("export", "--patch", "a", "--branch", "b"), "exactly one of"),
    ],
)
def test_wrong_input_is_one_line_and_exit_2(here, capsys, arguments, said):
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_no_store_is_exit_5(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for command in ("runs", "show", "report", "stop", "clean"):
        code, out, err = run(capsys, command)
        assert (code, out) == (5, "")
        assert "there is no store here" in err
    assert list(tmp_path.iterdir()) == []


def test_several_runs_must_be_told_apart(here, capsys):
    with SqliteStore(default_store(here), "write") as store:
        store.create("second")
        store.append("second", [started()[0].event], at=1.0, elapsed=0.0)
    code, _, err = run(capsys, "show")
    assert code == 2
    assert "second, six" in err
    assert data(capsys, "show", "second")["summary"]["attempts"] == 0
    assert {line["run"] for line in data(capsys, "runs")} == {"six", "second"}


def test_a_folder_stands_for_its_only_run(made, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(made.parent)
    assert data(capsys, "show", made.name)["summary"]["run"] == "six"
    monkeypatch.chdir(tmp_path)
    assert data(capsys, "show", f"{made}/")["summary"]["run"] == "six"
    assert data(capsys, "show", "--store", str(made))["summary"]["run"] == "six"
    assert data(capsys, "show", "--store", str(default_store(made)))["summary"]["run"] == "six"


def test_diff_of_configurations(here, capsys):
    found = data(capsys, "diff", "baseline", "champion")
    assert found["configuration"]
    assert "Python callable" in found["files_unknown"]
    _, out, _ = run(capsys, "diff", "baseline", "champion")
    assert all(line.startswith("# ") for line in out.splitlines())
    assert "no difference" not in run(capsys, "diff", "0", "0")[1].split("files")[0]


def test_report_is_written_into_the_run_folder(here, capsys):
    found = data(capsys, "report")
    path = Path(found["report"])
    assert path == here / ".outlay" / "runs" / "six" / "report.html"
    assert path.read_text().startswith("<!doctype html>")


def test_report_elsewhere_and_as_markdown(here, capsys):
    assert run(capsys, "report", "--format", "md", "--out", "deep/r.md")[1] == "deep/r.md\n"
    text = (here / "deep" / "r.md").read_text()
    assert run(capsys, "report", "--format", "md", "--out", "-")[1] == text


def test_the_answers_do_not_depend_on_the_terminal_library(here):
    result = CliRunner().invoke(outlay, ["runs", "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)[0]["run"] == "six"


def test_the_installed_command_answers(here):
    command = [str(Path(sys.executable).with_name("outlay")), "show", "--json"]
    done = subprocess.run(command, capture_output=True, check=True)
    assert json.loads(done.stdout)["summary"]["status"] == "budget"
    assert done.stderr == b""


def test_stop_says_that_nobody_runs_it(here, capsys):
    assert data(capsys, "stop") == {"run": "six", "asked": False, "pid": None}
    assert "nobody runs six" in run(capsys, "stop")[1]
    assert not (here / ".outlay" / "runs" / "six" / "stop").exists()


def test_stop_asks_the_driver_that_has_the_run(here, capsys):
    with SqliteStore(default_store(here), "write") as store:
        import os

        store.create("busy")
        begun = started()[0].event
        assert isinstance(begun, RunStarted)
        sitting = SittingStarted(pid=os.getpid(), host="h", workers=1)
        store.append("busy", [begun, sitting], at=1.0, elapsed=0.0)
        assert data(capsys, "stop", "busy")["pid"] == os.getpid()
        assert (here / ".outlay" / "runs" / "busy" / "stop").exists()
        assert data(capsys, "stop", "six")["asked"] is False


def test_names_of_nodes():
    state = State.of(started())
    assert node_of(state, "baseline") == node_of(state, "champion") == node_of(state, "#0") == 0
    model = State.of(started(agent="command:./a"))
    assert node_of(model, "baseline") == -1


def test_a_terminal_gets_no_control_characters(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    _reading.answer({}, "a\x1b[2J", as_json=False)
    assert "\x1b" not in capsys.readouterr().out


def test_text_of_runs_is_printable_wherever_it_goes(here, capsys):
    job = here / ".outlay" / "runs" / "six" / "jobs" / "a1.1"
    job.mkdir(parents=True)
    (job / "out.txt").write_text("red \x1b[31m\n")
    _, out, _ = run(capsys, "show", "--attempt", "1")
    assert "red \N{REPLACEMENT CHARACTER}[31m" in out
    _, _, err = run(capsys, "show", "na\x1b[2Jme")
    assert "\x1b" not in err


def test_a_patch_keeps_its_bytes_unless_a_terminal_shows_it(monkeypatch, capsys):
    _reading.answer({}, "", as_json=False, patch="+a\r\n")
    assert capsys.readouterr().out == "+a\r\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    _reading.answer({}, "", as_json=False, patch="+\x1b[2J\n")
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"", b"no store at all" * 100])
def test_a_file_that_is_no_store_is_exit_5(tmp_path, capsys, content):
    (tmp_path / "store.db").write_bytes(content)
    for command in ("runs", "show", "report", "stop"):
        store = str(tmp_path / "store.db")
        arguments = (store,) if command == "runs" else ("--store", store)
        code, out, err = run(capsys, command, *arguments)
        assert (code, out, err.count("\n")) == (5, "", 1), err


def test_a_store_without_its_tables_is_exit_5(tmp_path, capsys):
    connection = sqlite3.connect(tmp_path / "store.db")
    connection.executescript("CREATE TABLE other (a); PRAGMA user_version = 1")
    connection.close()
    for command in ("runs", "show", "clean"):
        code, out, err = run(capsys, command, "--store", str(tmp_path / "store.db"))
        assert (code, out, err.count("\n")) == (5, "", 1), err


JUDGED = '{"type":"Judged","attempt":9,"promoted":true}'


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("DELETE FROM events WHERE place % 4294967296 = 5", "event 5 is missing"),
        ("DELETE FROM events WHERE place % 4294967296 = 1", "event 1 is missing"),
        ("UPDATE events SET body = '{' WHERE place % 4294967296 = 4", "event "),
        (
            f"UPDATE events SET body = '{JUDGED}' WHERE place % 4294967296 = 4",
            "event 4 does not fit those before it",
        ),
    ],
)
def test_a_broken_log_is_exit_5(here, capsys, damage, said):
    with sqlite3.connect(default_store(here)) as connection:
        connection.execute(damage)
    connection.close()
    for command in ("runs", "show", "report", "clean"):
        code, out, err = run(capsys, command)
        assert (code, out, err.count("\n")) == (5, "", 1), err
        assert said in err


def test_a_full_stdout_is_one_line_and_exit_1(here):
    command = [str(Path(sys.executable).with_name("outlay")), "show"]
    for more in ((), ("--json",)):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [*command, *more], stdout=full, stderr=subprocess.PIPE, text=True
            )
        assert done.returncode == 1
        assert done.stderr.startswith("outlay: standard output: No space left on device")
        assert done.stderr.count("\n") == 1


def test_any_fault_of_the_system_is_one_line(here, capsys):
    (here / "file").write_text("")
    code, out, err = run(capsys, "report", "--out", "file/below")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("outlay: file")


def test_a_group_called_alone_prints_its_help(capsys):
    code, _, err = run(capsys)
    assert code in (0, 2)
    assert "Commands:" in err or code == 0


def test_a_run_without_a_gain_says_so(tmp_path, monkeypatch, capsys):
    drive(task(3), flat, store=default_store(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert data(capsys, "runs")[0]["confirmed"] is False
    out = run(capsys, "runs")[1]
    assert "no gain confirmed" in out
    assert "gain +0" not in out


def test_a_run_that_cannot_be_read_hides_no_other_and_can_be_removed(here, capsys):
    path = default_store(here)
    with SqliteStore(path, "write") as store:
        store.create("poisoned")
        bad = replace(started()[0].event, seed="x")  # msgspec checks what it reads only
        store.append("poisoned", [bad], at=1.0, elapsed=0.0)
    code, out, err = run(capsys, "runs")
    assert code == 5
    assert out.count("\n") == 1
    assert "poisoned" not in out
    assert "run 'poisoned'" in err
    assert "`outlay clean poisoned --all` removes it" in err
    assert "outlay clean poisoned --all" in run(capsys, "clean", "--yes")[2]
    assert run(capsys, "clean", "poisoned", "--all", "--yes")[0] == 0
    assert run(capsys, "runs")[::2] == (0, "")
