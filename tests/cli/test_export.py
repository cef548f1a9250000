"""Export, diff and clean over a real run of a small program in a git repository."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from outlay.cli import diff, export
from outlay.cli._reading import read_run
from outlay.cli.app import main
from outlay.execution import snapshot
from outlay.planfiles import RESULTS, PlanFiles
from outlay.runs import Settings, default_store, run_folder
from outlay.session import sitting
from outlay.sqlite_store import SqliteStore
from outlay.task import Budget, Search
from tests.report.samples import drive_program, git, program_task, repository, started

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.xdist_group("export")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A repository with uncommitted changes, and a finished run over its subfolder `work`."""
    top = tmp_path_factory.mktemp("made") / "top"
    work = repository(top)
    (work / "part.py").write_text("BONUS = 0.0  # not committed\n")
    (work / "new.txt").write_text("untracked\n")
    (work / "outlay.toml").write_text("# the task\n")
    git(top, "add", "work/outlay.toml")
    git(top, "commit", "-qm", "task")
    drive_program(work)
    return top


@pytest.fixture
def top(made, monkeypatch) -> Path:
    """The repository, with the folder of the task as the current one."""
    monkeypatch.chdir(made / "work")
    return made


def data(capsys, *arguments: str):
    code = main([*arguments, "--json"])
    out, _ = capsys.readouterr()
    assert code == 0
    return json.loads(out)


def score(folder: Path, *arguments: str) -> float:
    command = [sys.executable, "score.py", "--seed", "1", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])["score"]


def test_a_patch_applies_on_the_users_tree(top, tmp_path, capsys):
    before = git(top, "status", "--short")
    found = data(capsys, "export", "--patch", str(tmp_path / "out" / "win.patch"))
    assert found["changed"] == ["part.py", "score.py"]
    assert found["command"] == ["python3 score.py --seed {seed} --lift 0.1"]
    papers = (tmp_path / "out" / "win.OUTLAY.md").read_text()
    assert "--lift 0.1" in papers
    assert "beats the baseline" in papers
    assert "# Plan: real" in papers
    assert git(top, "status", "--short") == before
    copy = tmp_path / "copy"
    shutil.copytree(top, copy)
    git(copy, "apply", str(tmp_path / "out" / "win.patch"))
    assert (copy / "work" / "part.py").read_text() == "BONUS = 0.2\n"
    gained = score(copy / "work", "--lift", "0.1") - score(top / "work")
    assert gained == pytest.approx(0.4)


def test_a_branch_leaves_working_tree_index_and_head_alone(top, capsys):
    before = (git(top, "status", "--short"), git(top, "rev-parse", "HEAD"), git(top, "branch"))
    index = (top / ".git" / "index").read_bytes()
    assert main(["export", "--branch", "win/all", "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert "node 1 did not change them: new.txt; `git add`" in err
    assert (top / ".git" / "index").read_bytes() == index
    assert (git(top, "status", "--short"), git(top, "rev-parse", "HEAD")) == before[:2]
    assert git(top, "rev-parse", "win/all").strip() == found["commit"]
    changed = git(top, "diff", "--name-only", "win/all~1", "win/all").split()
    assert changed == ["work/part.py", "work/score.py"]
    start = git(top, "diff", "--name-only", "HEAD", "win/all~1").split()
    assert start == ["work/part.py"]
    kept = git(top, "ls-tree", "-r", "--name-only", "win/all").split()
    assert {"README", "work/outlay.toml", "work/better.py"} <= set(kept)
    assert "work/new.txt" not in kept
    message = git(top, "log", "-1", "--format=%B", "win/all")
    assert message.startswith("real: all=on\n\n")
    assert "--lift 0.1" in message


def changed_by_hand(top: Path, tmp_path: Path, monkeypatch, change) -> None:
    """Go to a copy of the task whose champion's files are those that `change` makes of them."""
    copy, laid = tmp_path / "copy", tmp_path / "laid"
    shutil.copytree(top, copy, symlinks=True)
    monkeypatch.chdir(copy / "work")
    objects = copy / "work" / ".outlay" / "runs" / "real" / "objects"
    found = read_run(None, None)
    champion = found.state.contest.champion
    snapshot.lay(found.state.files[champion], objects, laid)
    change(laid)
    made = snapshot.take(laid, objects, plain=True)
    monkeypatch.setattr(
        export, "files_of", lambda state, n: made if n == champion else state.start
    )
    monkeypatch.setattr(diff, "files_of", lambda state, n: made if n == champion else state.start)


def test_a_branch_holds_what_the_node_changed_tracked_or_not(top, tmp_path, monkeypatch, capsys):
    def change(laid: Path) -> None:
        (laid / "new.txt").write_text("better\n")
        (laid / "more.txt").write_text("added\n")
        (laid / "better.py").unlink()

    changed_by_hand(top, tmp_path, monkeypatch, change)
    data(capsys, "export", "--branch", "won")
    kept = git(top, "ls-tree", "-r", "--name-only", "won").split()
    assert {"work/new.txt", "work/more.txt"} <= set(kept)
    assert "work/better.py" not in kept
    assert git(top, "show", "won:work/new.txt") == "better\n"


def test_links_that_lead_outside_are_named(top, tmp_path, monkeypatch, capsys):
    def change(laid: Path) -> None:
        (laid / "deep" / "er").mkdir(parents=True)
        links = {
            "inside": "part.py",
            "far": "/etc/passwd",
            "up": "deep/../../secret",
            "deep/er/top": "../..",
            "through": "deep/er/top/../x",
            "circle": "circle",
            "deep/back": "../part.py",
        }
        for name, target in links.items():
            (laid / name).symlink_to(target)

    changed_by_hand(top, tmp_path, monkeypatch, change)
    named = [["circle", "circle"], ["far", "/etc/passwd"], ["through", "deep/er/top/../x"]]
    named += [["up", "deep/../../secret"]]
    for asked in (["export", "--folder", str(tmp_path / "out")], ["diff", "baseline", "champion"]):
        assert main(asked) == 0
        said = [line for line in capsys.readouterr().err.splitlines() if "symbolic" in line]
        parted = [
            line.split(": a symbolic link that leads out of the program, to ") for line in said
        ]
        assert parted == named


def test_a_patch_goes_to_standard_output(top, capsys):
    before = set((top / "work").iterdir())
    assert main(["export", "--patch", "-"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("diff --git a/work/part.py b/work/part.py\n")
    assert (err, set((top / "work").iterdir())) == ("", before)
    assert main(["export", "--node", "baseline", "--patch", "-"]) == 0
    out, err = capsys.readouterr()
    assert (out, err[:16]) == ("", "no file changes,")
    assert main(["export", "--patch", "-", "--json"]) == 2
    assert "--patch - and --json: found both" in capsys.readouterr().err


def test_a_branch_that_is_there_is_refused(top, capsys):
    git(top, "branch", "taken")
    at = git(top, "rev-parse", "taken")
    assert main(["export", "--branch", "taken"]) == 2
    assert "'taken' is there already" in capsys.readouterr().err
    assert git(top, "rev-parse", "taken") == at
    assert main(["export", "--branch", "no..good"]) == 2
    assert "git takes for no name" in capsys.readouterr().err


def test_a_folder_holds_the_whole_program(top, tmp_path, capsys):
    results = top / "work" / ".outlay" / "runs" / "real" / RESULTS
    results.write_text("commit\n")
    found = data(capsys, "export", "--folder", str(tmp_path / "dir"))
    results.unlink()
    assert str(tmp_path / "dir" / RESULTS) in found["wrote"]
    names = {path.name for path in (tmp_path / "dir").iterdir()}
    assert {"score.py", "part.py", "new.txt", "OUTLAY.md", RESULTS} <= names
    assert score(tmp_path / "dir") == pytest.approx(score(top / "work") + 0.3)
    assert main(["export", "--folder", str(tmp_path / "dir")]) == 2
    assert "is not empty" in capsys.readouterr().err


def test_nothing_is_overwritten(top, tmp_path, capsys):
    (tmp_path / "w.OUTLAY.md").write_text("mine")
    assert main(["export", "--patch", str(tmp_path / "w.patch")]) == 2
    assert "w.OUTLAY.md: is there already" in capsys.readouterr().err
    assert not (tmp_path / "w.patch").exists()
    assert (tmp_path / "w.OUTLAY.md").read_text() == "mine"
    assert main(["export", "--patch", str(tmp_path / "w2.patch")]) == 0


def test_a_program_without_changed_files_has_no_patch(top, tmp_path, capsys):
    target = tmp_path / "base.patch"
    assert main(["export", "--node", "baseline", "--patch", str(target), "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["patch"], found["environment"]) == (None, {})
    assert found["command"] == ["python3 score.py --seed {seed}"]
    assert not target.exists()
    assert "no file changes, so there is no patch; the program is run as: python3" in err
    papers = (tmp_path / "base.OUTLAY.md").read_text()
    assert "It changes nothing" in papers
    assert "the change is in" not in papers
    assert "these chose it" not in papers


def test_a_target_inside_the_workspace_is_warned_of(top, tmp_path, capsys):
    target = top / "work" / "inside.patch"
    assert main(["export", "--patch", str(target)]) == 0
    for path in (target, target.with_name("inside.OUTLAY.md")):
        path.unlink()
    assert "the run cannot be continued while they are there" in capsys.readouterr().err
    assert main(["export", "--patch", str(tmp_path / "out.patch")]) == 0
    assert capsys.readouterr().err == ""


def test_stored_files_that_are_gone_are_one_line(top, tmp_path, capsys, monkeypatch):
    copy = tmp_path / "copy"
    shutil.copytree(top / "work", copy)
    monkeypatch.chdir(copy)
    shutil.rmtree(copy / ".outlay" / "runs" / "real" / "objects")
    for asked in (["export", "--folder", "out"], ["export", "--patch", "o"], ["diff", "0", "1"]):
        assert main(asked) == 1
        err = capsys.readouterr().err
        assert err.startswith("outlay: run 'real': a stored file is gone or damaged: object ")
        assert err.count("\n") == 1
    assert not (copy / "out").exists()


def test_a_diff_of_files_is_a_patch_for_git(top, tmp_path, capsys):
    assert main(["diff", "baseline", "champion"]) == 0
    text = capsys.readouterr().out
    assert "# all: off → on" in text
    copy = tmp_path / "copy"
    shutil.copytree(top / "work", copy)
    (tmp_path / "d.patch").write_text(text)
    git(copy, "apply", str(tmp_path / "d.patch"))
    assert (copy / "part.py").read_text() == "BONUS = 0.2\n"
    back = data(capsys, "diff", "champion", "baseline")
    assert "+BONUS = 0.0  # not committed" in back["patch"]
    assert data(capsys, "diff", "1", "1")["patch"] == ""


def test_show_has_the_end_of_the_log(top, capsys):
    found = data(capsys, "show", "--attempt", "1")
    assert "on seed 1" in found["log"]
    assert found["command"] == ["python3 score.py --seed {seed} --lift 0.1"]


def test_clean_keeps_what_is_needed(top, tmp_path, capsys, monkeypatch):
    copy = tmp_path / "copy"
    shutil.copytree(top / "work", copy)
    monkeypatch.chdir(copy)
    folder = copy / ".outlay" / "runs" / "real"
    waste = folder / "jobs" / "a1.1" / "work" / "0"
    waste.mkdir(parents=True)
    (waste / "big").write_bytes(b"x" * 5000)
    (folder / "objects" / "ab").mkdir(exist_ok=True)
    (folder / "objects" / "ab" / "cdef").write_bytes(b"y" * 100)
    (folder.parent / "gone").mkdir()
    assert main(["clean"]) == 2
    said = capsys.readouterr().err
    assert "1 workspace of a finished job\n" in said
    assert "add --yes" in said
    assert waste.exists()
    found = data(capsys, "clean", "--yes")
    assert found["removed"] is True
    assert found["bytes"] >= 5100
    assert not waste.exists()
    assert not (folder / "objects" / "ab" / "cdef").exists()
    assert not (folder.parent / "gone").exists()
    assert data(capsys, "diff", "baseline", "champion")["patch"]
    assert "on seed 1" in data(capsys, "show", "--attempt", "1")["log"]
    assert data(capsys, "clean", "--yes")["removed"] is False


def test_clean_all_forgets_the_run(top, tmp_path, capsys, monkeypatch):
    copy = tmp_path / "copy"
    shutil.copytree(top / "work", copy)
    monkeypatch.chdir(copy)
    assert data(capsys, "clean", "real", "--all", "--yes")["runs"] == ["real"]
    assert data(capsys, "runs") == []
    assert not (copy / ".outlay" / "runs" / "real").exists()


@pytest.mark.parametrize("name", ["..", ".", "../../victim", "deep/name", "real/objects"])
def test_clean_removes_nothing_outside_the_folder_of_runs(
    top, tmp_path, capsys, monkeypatch, name
):
    copy = tmp_path / "copy"
    shutil.copytree(top / "work", copy)
    monkeypatch.chdir(copy)
    victim = copy / "victim" / "jobs" / "a1.1" / "work"
    victim.mkdir(parents=True)
    deep = copy / ".outlay" / "runs" / "deep" / "name"
    deep.mkdir(parents=True)
    with SqliteStore(default_store(copy), "write") as store:
        store.create(name)
        store.append(name, [started()[0].event], at=1.0, elapsed=0.0)
    assert main(["clean", "--yes"]) == 0
    assert deep.exists() == (name in (".", "..", "deep/name"))
    if name != ".":  # which is the current folder, and that has a store
        assert main(["clean", name, "--all", "--yes"]) == 2
    assert (copy / ".outlay" / "runs" / "real" / "objects").exists()
    assert main(["clean", "--all", "--yes"]) == 0
    capsys.readouterr()
    assert data(capsys, "runs") == []
    assert victim.exists()
    assert (copy / "score.py").exists()
    assert default_store(copy).exists()


def test_clean_follows_no_link(top, tmp_path, capsys, monkeypatch):
    copy, far = tmp_path / "copy", tmp_path / "far"
    shutil.copytree(top / "work", copy)
    monkeypatch.chdir(copy)
    (far / "kept").mkdir(parents=True)
    runs = copy / ".outlay" / "runs"
    (runs / "link").symlink_to(far)
    (runs / "real" / "jobs" / "a1.1" / "tmp").symlink_to(far)
    assert main(["clean", "--yes"]) == 0
    assert "left alone, since it lies outside" in capsys.readouterr().err
    assert (far / "kept").exists()


AGENT = """
from pathlib import Path
part = Path("part.py")
part.write_text(f"BONUS = {float(part.read_text().split('=')[1].split('#')[0]) + 0.2}\\n")
"""


def test_the_work_of_a_command_agent_is_handed_back(tmp_path, capsys, monkeypatch):
    work = repository(tmp_path / "top")
    (work / "agent.py").write_text(AGENT)
    research = replace(
        program_task(work), levers=(), search=Search(policy="linear"), budget=Budget(attempts=2)
    )
    settings = Settings(agent="command:python3 agent.py")
    store = default_store(work)
    with sitting(research, "real", settings, store=store) as driver:
        driver.drive()
        PlanFiles(run_folder(store, "real"), driver.state, driver.store.read("real"))
    monkeypatch.chdir(work)
    found = data(capsys, "diff", "baseline", "champion")
    assert "+BONUS = 0." in found["patch"]
    assert "self-reported" in data(capsys, "show")["finding"]
    (changes,) = (work / ".outlay" / "runs" / "real" / "tree").glob("0001-*/changes.md")
    assert "+BONUS = 0.4" in changes.read_text()
    assert data(capsys, "export", "--branch", "won")["changed"] == ["part.py"]
    assert "BONUS = 0.4" in git(work, "show", "won:work/part.py")
