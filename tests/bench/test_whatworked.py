from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from outlay.bench.whatworked import METHODS, rules_of, run_controls
from outlay.bench.whatworked_noise import noise_rows
from outlay.bench.whatworked_peers import Curve, peer_curves, plot_peers
from outlay.bench.whatworked_report import bootstrap, groups, report_rows
from outlay.cli import bench_whatworked
from outlay.errors import InputError
from outlay.surfaces.cube import bits, mask_of
from outlay.surfaces.tables import Table, load_tables


def table(name, family, d, seed):
    """Return a surface with decaying interactions, in [0, 1]."""
    rng = np.random.default_rng(seed)
    x, value = bits(d), np.zeros(2**d)
    for i in range(d):
        value += rng.normal() * x[:, i]
        value += 0.4 * rng.normal() * x[:, i] * x[:, (i + 1) % d]
    return Table(name=name, family=family, truth=(value - value.min()) / np.ptp(value))


TABLES = [
    table("one", "regression", 4, 1),
    table("two", "regression", 4, 2),
    table("three", "clustering", 4, 3),
    table("odd", "beat_detection", 6, 4),
]


@pytest.fixture
def file(tmp_path):
    content = {
        t.name: {
            "family": t.family,
            "truth": {mask_of(c, t.d): float(v) for c, v in enumerate(t.truth)},
        }
        for t in TABLES
    }
    path = tmp_path / "tables.json"
    path.write_text(json.dumps(content))
    return path


def run(*arguments):
    return CliRunner().invoke(bench_whatworked.command, [str(a) for a in arguments])


@pytest.mark.parametrize("method", METHODS)
def test_every_method_runs_and_full_budget_recovers_everything(method):
    four = [t for t in TABLES if t.d == 4]
    found = run_controls(four, method, 14)
    if method != "one-at-a-time":
        assert found.macro_recovery == 1
        assert found.macro_regret == 0
    assert all(o.orders == (20 if method == "random" else 1) for o in found.outcomes)


def test_conditions_that_do_not_fit_are_left_out_with_the_reason(file):
    found = run_controls(TABLES, "code-gp-effect", 20)
    assert found.outcomes == ()
    assert found.left_out["one"] == "budget 20 exceeds the 14 cells that can be bought"
    assert found.left_out["odd"] == "no equalities are registered for beat_detection"
    assert run_controls(TABLES, "d1", 4, 6).left_out["one"] == "4 factors, asked for 6"
    assert rules_of(TABLES[0]) == ()


def test_controls_print_json_and_people_read_a_table(file):
    result = run("controls", "--tables", file, "--method", "random", "--budget", 8, "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert set(found["conditions"]) == {t.name for t in TABLES}
    assert 0 <= found["conditions"]["one"]["exact"] <= 20
    single = run("controls", "--tables", file, "--method", "auto", "--budget", 8, "--json")
    entry = json.loads(single.stdout)["conditions"]["two"]
    assert isinstance(entry["exact"], bool)
    assert entry["recovery"] == pytest.approx(1 - entry["effect_mae"] / entry["mean_effect"])
    people = run("controls", "--tables", file, "--method", "d1", "--budget", 20)
    assert "odd" in people.stdout
    assert "left out" in people.stderr
    assert "left out" not in people.stdout


@pytest.mark.parametrize("command", ["report", "noise", "peers"])
def test_studies_name_what_is_missing(file, command):
    result = run(command, "--tables", file)
    assert isinstance(result.exception, InputError)
    assert "--source" in str(result.exception)


def test_an_unreadable_file_is_refused(tmp_path):
    result = run("controls", "--tables", tmp_path / "no", "--method", "d1", "--budget", 4)
    assert isinstance(result.exception, InputError)
    assert "cannot read" in str(result.exception)


def test_report_has_rows_groups_and_coverage(file):
    sources = ("--source", "one", "--source", "three")
    result = run("report", "--tables", file, *sources, "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert [(row["name"], row["budget"]) for row in found["rows"]] == [
        ("one", 4),
        ("one", 8),
        ("three", 4),
        ("three", 8),
    ]
    assert [group["budget"] for group in found["groups"]] == [4, 8]
    assert all(0 <= size["coverage"] <= 1 for size in found["sizes"])
    text = run("report", "--tables", file, *sources).stdout
    assert "gain over gp-effect" in text
    every = json.loads(run("report", "--tables", file, "--source", "all", "--json").stdout)
    assert {row["name"] for row in every["rows"]} == {table.name for table in TABLES}


def test_transfer_learns_from_other_sources_only():
    twin = Table(name="twin", family="regression", truth=TABLES[0].truth)
    plain = report_rows([TABLES[0], twin], ["one"], transfer=False)
    learned = report_rows([TABLES[0], twin], ["one"], transfer=True)
    alone = report_rows([TABLES[0], TABLES[2]], ["one"], transfer=True)
    assert learned[0].recovery["auto"] > 0.95
    assert alone[0].recovery == plain[0].recovery
    assert groups(plain)[0].name == "four-factor"


def test_the_bootstrap_interval_holds_the_mean_and_shrinks():
    rng = np.random.default_rng(0)
    few, many = bootstrap(rng.normal(size=10)), bootstrap(rng.normal(size=1000))
    assert few.low < few.mean < few.high
    assert many.high - many.low < 0.2 < few.high - few.low


def test_noise_is_scored_against_the_truth_and_hurts(file):
    clean, loud = noise_rows(TABLES[:1], 8, (0.0, 0.5), 3)
    assert loud.ours < clean.ours
    result = run("noise", "--tables", file, "--source", "one", "--seeds", 2, "--json")
    assert {row["share"] for row in json.loads(result.stdout)["rows"]} == {0.05, 0.2}


def test_needed_budget_is_where_recovery_stays_high():
    def needed(*values):
        return Curve(name="x", method="auto", recovery=values).needed

    assert needed(0.1, 0.8, 0.6, 0.9, 1.0) == 3
    assert needed(0.9, 0.9) == 0
    assert needed(0.9, 0.1) is None


def test_peers_draw_and_print(file, tmp_path):
    picture = tmp_path / "peers.png"
    result = run("peers", "--tables", file, "--source", "one", "--plot", picture)
    assert result.exit_code == 0
    assert "full factorial" in result.stdout
    assert picture.stat().st_size > 5000
    curves = peer_curves([t for t in load_tables(file) if t.name == "one"])
    assert all(len(curve.recovery) == 15 for curve in curves)
    assert len(plot_peers(curves).axes) == 1
