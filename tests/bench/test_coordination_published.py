"""The published table, the loop behind it, and the command that prints it."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from outlay.bench.coordination import improved, published, tables
from outlay.bench.coordination.landscapes import LANDSCAPES
from outlay.bench.coordination.loop import Plan, search
from outlay.bench.coordination.objective import Published, unit_draw
from outlay.bench.coordination.proposers import Proposal, RuleBased
from outlay.bench.coordination.published import CONFIGURATIONS, FULL, run_published
from outlay.bench.coordination.referees import FixedSeeds, FreshSeeds, Meter
from outlay.cli.app import main
from outlay.coordination.confirmation import Band
from outlay.task import Coordination


def test_every_published_value_comes_out():
    assert published.deviations(published.rows()) == []


def test_a_changed_value_is_named():
    rows = published.rows()
    rows[2] = replace(rows[2], reported=rows[2].reported + 2e-12, used=35)
    found = published.deviations(rows)
    assert [line.split(": found")[0] for line in found] == [
        "no confirmation: reported",
        "no confirmation: used",
        "inflation ratio",
    ]


def test_the_objective_from_its_definition():
    objective = Published()
    point = (0.5, -0.25, 0.0, 1.0)
    wanted = -sum(g**2 + 0.15 * (1 - math.cos(2 * math.pi * g)) for g in point)
    assert objective.clean(point) == pytest.approx(wanted, abs=1e-15)
    text = "101:0.500000,-0.250000,0.000000,1.000000"
    draw = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64
    assert unit_draw(point, 101) == draw
    assert objective.observe(point, 101) == pytest.approx(wanted + (draw - 0.5) * 0.04)
    assert objective.clean((0.0,) * 4) == 0.0
    assert math.copysign(1, objective.clean((0.0,) * 4)) == 1.0


def test_the_loop_agrees_with_a_slow_twin():
    """The full configuration, written again from the specification without any mechanism."""
    objective, seeds = Published(), (101, 202, 303)
    point = objective.start
    metric = sum(objective.observe(point, s) for s in seeds) / 3
    failures: dict[tuple[int, int], int] = {}
    retired: set[tuple[int, int]] = set()
    log: list[tuple[int, int, bool]] = []
    deltas: list[list[float]] = [[], [], [], []]
    hands = [[0, 3], [1], [2]]
    for t in range(60):
        live = [i for i in range(4) if not {(i, 1), (i, -1)} <= retired]
        axes = [i for i in hands[t % 3] if i in live] or live
        if not axes:
            break
        axis = axes[t % len(axes)]
        improving = [sign for a, sign, ok in log if a == axis and ok]
        sign = improving[-1] if improving else (-1 if point[axis] > 0 else 1)
        if (axis, sign) in retired and (axis, -sign) not in retired:
            sign = -sign
        candidate = tuple(x + 0.5 * sign * (i == axis) for i, x in enumerate(point))
        mean = sum(objective.observe(candidate, s) for s in seeds) / 3
        deltas[axis].append(abs(mean - metric))
        ok = mean - metric > 2 * 0.02 / math.sqrt(3)
        log.append((axis, sign, ok))
        if ok:
            point, metric = candidate, mean
        failures[axis, sign] = 0 if ok else failures.get((axis, sign), 0) + 1
        if failures[axis, sign] >= 3:
            retired.add((axis, sign))
        if len(log) >= 10 and not any(ok for _, _, ok in log[-10:]):
            live = [i for i in range(4) if not {(i, 1), (i, -1)} <= retired]
            live.sort(key=lambda i: (deltas[i] != [], -sum(deltas[i]) / max(1, len(deltas[i]))))
            hands = [live[0::3], live[1::3], live[2::3]]
    trace, _ = run_published(FULL)
    ours = [
        (int(o.proposal.axis[1]), 1 if o.proposal.direction == "+" else -1, o.improved)
        for o in trace.board.outcomes
    ]
    assert ours == log
    assert trace.board.champion.point == point
    assert trace.board.champion.metric == pytest.approx(metric, abs=1e-15)


def test_counting_both_errors_promotes_the_same_steps_here():
    objective = Published()
    referee = FixedSeeds(
        Meter(objective, keeps=False), Band(scale=0.02), (101, 202, 303), both=True
    )
    trace = search(objective, RuleBased(), referee, FULL, Plan(experiments=60))
    assert trace.board.champion.metric == pytest.approx(0.0012065640438283457, abs=1e-12)
    assert trace.confirmed == 12


def test_the_search_stops_at_its_limits():
    objective = Published()
    for plan, used in ((Plan(experiments=5), 5), (Plan(experiments=60, evaluations=30), 9)):
        referee = FixedSeeds(Meter(objective, keeps=False), Band(scale=0.02), (1, 2, 3))
        trace = search(objective, RuleBased(), referee, CONFIGURATIONS["no ranking"], plan)
        assert len(trace.board.outcomes) == used


def test_any_proposer_can_be_plugged_in():
    class Stubborn:
        """Always wants the same step."""

        def propose(self, board, axes, proposer, avoid=frozenset()):
            return Proposal(axis=axes[0], direction="+")

    trace, _ = run_published(CONFIGURATIONS["single-thread baseline"], Stubborn())
    assert trace.confirmed == 0
    assert trace.redundant == 57
    assert trace.first_at(0.0) is None


def test_a_kept_value_costs_nothing():
    meter = Meter(Published(), keeps=True)
    first = meter.observe((1.0,) * 4, 1, 0)
    assert meter.observe((1.0,) * 4, 1, 5) == first
    assert meter.evaluations == 1
    meter.observe((1.0,) * 4, 2, 0)
    assert meter.evaluations == 2


def test_the_final_estimate_uses_seeds_that_nothing_else_used():
    used = []

    class Spy(Published):
        def observe(self, point, seed, time=0):
            used.append(seed)
            return super().observe(point, seed, time)

    settings = Coordination()
    referee = FreshSeeds(Meter(Spy(), keeps=True), settings, 100)
    search(Spy(), RuleBased(), referee, settings, Plan(experiments=20))
    before = set(used)
    referee.final((0.0,) * 4, 10, 20)
    assert len(used[-10:]) == 10
    assert before.isdisjoint(used[-10:])


def test_the_improved_rules_stay_within_the_papers_evaluations():
    found = improved.compare(25)
    assert found.evaluations <= improved.EVALUATIONS == found.published_evaluations == 111
    assert found.optimum == found.published_optimum == 25
    assert found.inflation.low < 0.0 < found.inflation.high
    assert found.searching < 80


def run(capsys, *arguments):
    code = main(["bench", "coordination", *arguments])
    return code, capsys.readouterr()


def test_check_passes(capsys):
    code, output = run(capsys, "--check")
    assert code == 0
    assert output.out == ""
    assert "match to 1e-12" in output.err


def test_check_fails_with_what_differs(capsys, monkeypatch):
    monkeypatch.setattr(published, "INFLATION_RATIO", 13.0)
    code, output = run(capsys, "--check")
    assert code == 1
    assert "inflation ratio" in output.err


def test_json_has_rows_and_ratio_and_is_the_same_every_time(capsys):
    code, output = run(capsys, "--json")
    again = run(capsys, "--json")[1].out
    assert (code, output.out) == (0, again)
    data = json.loads(output.out)
    assert data["inflation_ratio"] == pytest.approx(12.967265309358583, abs=1e-12)
    assert len(data["rows"]) == 6
    wanted = {
        "configuration", "reported", "clean", "used", "redundant", "confirmed",
        "first_at_optimum", "retired",
    }  # fmt: skip
    assert all(wanted <= row.keys() for row in data["rows"])


def test_markdown_and_figures_are_the_same_bytes_every_time(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    for name in ("one", "two"):
        assert run(capsys, "--out", str(tmp_path / name))[0] == 0
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == ["effort.svg", "inflation.svg", "results.json", "tables.md", "trajectory.svg"]
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert "12.967265309358583" in (tmp_path / "one" / "tables.md").read_text()


def test_a_url_without_a_model_is_bad_usage(capsys):
    code, output = run(capsys, "--url", "http://127.0.0.1:1/v1")
    assert code == 2
    assert output.err.count("\n") == 1


def test_a_folder_that_cannot_be_written_is_bad_input(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    code, output = run(capsys, "--out", str(tmp_path / "file"))
    assert code == 2
    assert "a writable folder" in output.err


def test_a_model_proposes_in_the_full_configuration(capsys):
    from tests.bench.scripted_server import Script, serving

    with serving(Script(lambda request: '{"axis": "x0", "step": -0.5}')) as url:
        code, output = run(capsys, "--url", url, "--model", "tiny", "--json")
    data = json.loads(output.out)
    assert code == 0
    assert data["rows"][0]["configuration"] == "full coordination, tiny"
    assert any("was not offered" in reason for reason in data["fallbacks"])


def test_the_documents_hold_what_the_command_prints():
    docs = Path(__file__).parents[2] / "docs"
    table = "\n".join(tables.published_markdown(published.rows()))
    assert table in (docs / "coordination" / "tables.md").read_text()
    data = json.loads((docs / "coordination" / "results.json").read_text())
    assert data["rows"] == tables.published_data(published.rows())["rows"]
    landscapes = [line["landscape"] for line in data["landscapes"]]
    assert list(dict.fromkeys(landscapes)) == [landscape.name for landscape in LANDSCAPES]


def test_the_example_of_the_confirmation_page_runs(capsys):
    page = (Path(__file__).parents[2] / "docs" / "confirmation.md").read_text()
    code = page.split("```python\n")[1].split("```")[0]
    exec(compile(code, "docs/confirmation.md", "exec"), {})
    assert capsys.readouterr().out == "promote\n"
