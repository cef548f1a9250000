from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

from outlay import events
from outlay.budget import Charge
from outlay.planfiles import PlanFiles, folder_name, plan_text, results, write_new
from outlay.state import State
from outlay.task import Workspace
from tests.agents.reflections.samples import ROOT, child, searched
from tests.report.samples import accuracy, drive, log, started, task


def test_a_childs_plan_is_rebuilt_by_its_own_program(tmp_path):
    state, _ = drive(task(6))
    write_new(state, tmp_path, 0)
    places = {node.id: tmp_path / "tree" / folder_name(node) for node in state.tree.nodes}
    for node in state.tree.nodes[1:8]:
        parent, child = places[node.parent.id], places[node.id]
        command = [sys.executable, str(child / "diff.py"), str(parent / "plan.md")]
        made = subprocess.run(command, capture_output=True, check=True).stdout
        assert made == (child / "plan.md").read_bytes()


def test_the_files_of_a_node(tmp_path):
    state, _ = drive(task(4))
    assert write_new(state, tmp_path, 0) == len(state.tree.nodes)
    names = sorted(place.name for place in (tmp_path / "tree").iterdir())
    assert names[:2] == ["0000-root", "0001-depth-o1"]
    root, child = (tmp_path / "tree" / name for name in names[:2])
    assert [p.name for p in root.iterdir()] == ["plan.md"]
    files = {p.name for p in child.iterdir()}
    assert files == {"plan.md", "diff.py", "changes.md", "prior.json"}
    prior = json.loads((child / "prior.json").read_text())
    assert prior["changes"] == {"depth": "o1"}
    assert 0 < prior["estimate"] < 1
    assert "depth: o0 to o1" in (child / "changes.md").read_text()


def test_what_is_missing_is_written_again_and_the_rest_stays(tmp_path):
    state, _ = drive(task(4))
    write_new(state, tmp_path, 0)
    plan = tmp_path / "tree" / "0001-depth-o1" / "plan.md"
    other = tmp_path / "tree" / "0002-depth-o2" / "plan.md"
    text, stamp = plan.read_text(), other.stat().st_mtime_ns
    plan.unlink()
    write_new(state, tmp_path, 0)
    assert plan.read_text() == text
    assert other.stat().st_mtime_ns == stamp


def test_the_files_follow_a_run_as_it_goes_on(tmp_path):
    research = task(4)
    state = State()
    files = PlanFiles(tmp_path, state)
    final, _ = drive(research, on_step=files.step)
    assert len(list((tmp_path / "tree").iterdir())) == len(final.tree.nodes)
    assert not (tmp_path / "results.tsv").exists()


def test_names_cannot_leave_the_folder(tmp_path):
    state, _ = drive(task(1))
    child = events.Child(node=len(state.tree.nodes), changes={"../../x": "/etc\n"})
    node = state.tree.add(state.tree.root, child)
    assert folder_name(node) == f"{node.id:04d}-x-etc"


def test_a_continued_node_keeps_its_parents_plan(tmp_path):
    research = replace(task(), levers=())
    entries = started(research, agent="command:./agent")
    entries += log(
        events.Reflected(node=0, asked=1, children=(events.Child(node=1, kind="continue"),)),
        after=1,
    )
    state = State.of(entries)
    write_new(state, tmp_path, 0)
    child = tmp_path / "tree" / "0001-continue"
    assert (child / "plan.md").read_text() == plan_text(state, state.tree.root)
    assert "Goes on from node 0" in (child / "changes.md").read_text()


def test_results_in_autoresearch_format(tmp_path):
    for name in ("program.md", "train.py", "prepare.py"):
        (tmp_path / name).write_text("")
    research = task(12, workspace=Workspace(path=str(tmp_path)))
    folder = tmp_path / "run"
    folder.mkdir()
    files = PlanFiles(folder, State())

    def call(configuration: dict[str, str], seed: int | None) -> float:
        if configuration["depth"] == "o1":
            raise RuntimeError("out of\tmemory")
        return accuracy(configuration, seed)

    state, entries = drive(research, call, on_step=files.step)
    lines = (folder / "results.tsv").read_text().splitlines()
    assert lines[0] == "commit\taccuracy\tmemory_gb\tstatus\tdescription"
    rows = [line.split("\t") for line in lines[1:]]
    assert rows[0][3:] == ["keep", "baseline"]
    assert len(rows) == 1 + state.attempts
    verdicts = [row[3] for row in rows]
    assert verdicts.count("keep") == 1 + sum(j.event.promoted for j in state.judgements)
    assert set(verdicts) == {"keep", "discard", "crash"}
    crash = next(row for row in rows if row[3] == "crash")
    assert crash[1:3] == ["0.000000", "0.0"]
    again = tmp_path / "again"
    again.mkdir()
    PlanFiles(again, state, entries)
    assert (again / "results.tsv").read_text() == "\n".join(lines) + "\n"


def test_memory_is_in_gigabytes():
    state, entries = drive(task(1))
    settled = next(e.event for e in entries if isinstance(e.event, events.AttemptSettled))
    evaluation = events.Evaluation(node=1, seed=1, value=0.5, metrics={"peak_vram_mb": 2048.0})
    told = events.AttemptSettled(
        attempt=settled.attempt,
        trial=1,
        outcome="scored",
        evaluations=(evaluation,),
        files="abcdefghij",
        charge=Charge(attempts=1),
    )
    row = results(state, [told]).splitlines()[-1].split("\t")
    assert (row[0], row[2]) == ("abcdefg", "2.0")


def test_a_models_plan_is_rebuilt_by_its_own_edits(tmp_path):
    state = searched(5)
    write_new(state, tmp_path, 0)
    names = sorted(place.name for place in (tmp_path / "tree").iterdir())
    assert names[0] == "0000-root"
    assert (tmp_path / "tree" / "0000-root" / "plan.md").read_text() == ROOT
    for node in state.tree.nodes[1:]:
        parent = tmp_path / "tree" / folder_name(node.parent)
        place = tmp_path / "tree" / folder_name(node)
        assert place.name == f"{node.id:04d}-{node.proposal.axis}-{node.proposal.direction}"
        command = [sys.executable, str(place / "diff.py"), str(parent / "plan.md")]
        made = subprocess.run(command, capture_output=True, check=True).stdout
        assert made == (place / "plan.md").read_bytes()
        assert made.decode() == plan_text(state, node)
        search, replacement = node.proposal.edits[0]
        assert f"({search!a}, {replacement!a})," in (place / "diff.py").read_text()
        assert (place / "changes.md").read_text() == node.proposal.summary
        assert json.loads((place / "prior.json").read_text())["changes"] == (
            node.proposal.summary.strip()
        )


def test_a_models_child_without_an_axis_is_named_plan(tmp_path):
    state = searched(1, 0)
    node = state.tree.add(state.tree.root, child(state, 0, 0, axis=None, direction=None))
    assert folder_name(node) == "0001-plan"
