import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from outlay.cli.design import command
from outlay.designs.statefile import read_state, state_to_json
from outlay.errors import BudgetError, InputError

EXAMPLE = str(Path(__file__).resolve().parents[2] / "examples" / "design" / "state.toml")


def run(*arguments):
    return CliRunner().invoke(command, list(arguments))


def test_json_is_the_plan():
    result = run(EXAMPLE, "--json")
    assert result.exit_code == 0
    data = json.loads(result.stdout)
    assert data["best"][0]["arms"] == ["augmentation", "longer_schedule"]
    assert data["unit"] == "GPU hours"


def test_tables_and_picture(tmp_path):
    figure = tmp_path / "frontier.svg"
    result = run(EXAMPLE, "--figure", str(figure))
    assert result.exit_code == 0
    assert result.stdout.startswith("Run augmentation, longer_schedule with 6 seeds")
    for part in ("frontier", "What each arm adds", "if the prior were"):
        assert part in result.stdout
    assert figure.read_text().lstrip().startswith("<?xml")


def test_a_score_says_what_to_add():
    result = run(EXAMPLE, "--score", "Ablate augmentation", "--json")
    data = json.loads(result.stdout)
    assert data["ambiguity"] == 0.5
    assert "SEEDS" in data["missing"][0]
    assert "To make it one design" in run("plan", EXAMPLE, "--score", "Ablate ema").stdout


def test_a_score_says_what_it_did_not_read(tmp_path):
    result = run(EXAMPLE, "--score", "Do not ablate ema; run warmup with two seeds")
    assert result.stdout.startswith("Note: read as negated, so not run: ema")
    vague = json.loads(run(EXAMPLE, "--score", "Do something", "--json").stdout)
    assert "no arm or seeds recognised" in vague["notes"][0]


def test_a_score_reads_a_file(tmp_path):
    path = tmp_path / "proposal.txt"
    path.write_text("ARMS: ema\nSEEDS: 4\n")
    data = json.loads(run(EXAMPLE, "--score", f"@{path}", "--json").stdout)
    assert data["readings"][0]["arms"] == ["ema"]
    assert f"a text, or @{path} to read it" in str(run(EXAMPLE, "--score", str(path)).exception)
    assert "No such file" in str(run(EXAMPLE, "--score", f"@{path}.none").exception)
    path.write_bytes(b"\xff\xfe")
    assert "no UTF-8 text" in str(run(EXAMPLE, "--score", f"@{path}").exception)


def test_update_returns_and_saves_the_posterior(tmp_path):
    saved = tmp_path / "next.json"
    arguments = ["--arms", "longer_schedule,augmentation", "--seeds", "5", "--outcome", "0,0.75"]
    result = run("update", EXAMPLE, *arguments, "--write", str(saved), "--json")
    rows = json.loads(result.stdout)["posterior"]
    assert sum(row["posterior"] for row in rows) == pytest.approx(1)
    assert max(rows, key=lambda row: row["posterior"])["name"] == "augmentation carries it"
    again = json.loads(run(str(saved), "--json").stdout)
    assert again["uncertainty"] < json.loads(run(EXAMPLE, "--json").stdout)["uncertainty"]
    assert "after" in run("update", EXAMPLE, *arguments).stdout


def test_nothing_to_learn_is_said_and_is_no_failure(tmp_path):
    path = tmp_path / "state.json"
    data = state_to_json(read_state(EXAMPLE))
    for number, hypothesis in enumerate(data["hypotheses"]):
        hypothesis["prior"] = float(number == 2)
    path.write_text(json.dumps(data))
    result = run(str(path))
    assert result.exit_code == 0
    assert result.stdout.startswith("Nothing to learn: 'augmentation needs the longer schedule'")
    assert "Run " not in result.stdout
    assert "nothing to learn" in result.stdout
    assert json.loads(run(str(path), "--json").stdout)["nothing_to_learn"] is True
    scored = run(str(path), "--score", "run ema with 4 seeds").stdout
    assert "Nothing to learn" in scored
    assert "-0.0000" not in scored


def test_a_chain_of_updates_plans_with_what_is_left(tmp_path):
    path = tmp_path / "state.json"
    path.write_text(json.dumps(state_to_json(read_state(EXAMPLE))))
    once = ["update", str(path), "--arms", "augmentation", "--seeds", "5", "--outcome", "0.75"]
    first = run(*once, "--write", str(path))
    assert "Budget: 32.75 of 48 GPU hours left, the design cost 15.25." in first.stdout
    assert f"Wrote {path}" in first.stdout
    budgets = json.loads(run(*once, "--write", str(path), "--json").stdout)["budgets"]
    assert budgets[0] == {"unit": "GPU hours", "before": 32.75, "cost": 15.25, "left": 17.5}
    assert budgets[1] == {"unit": "usd", "before": 81, "cost": 29, "left": 52}
    after = read_state(path)
    assert after.observations[-2:] == ("with 5 seeds: augmentation 0.75",) * 2
    assert [limit.budget for limit in after.limits] == [17.5, 52]
    assert all(row["cost"] <= 17.5 for row in json.loads(run(str(path), "--json").stdout)["best"])
    over = run(*once, "--write", str(path)).stdout + run(*once).stdout
    assert "Budget: 0 of 2.25 GPU hours left, the design cost 15.25; 13 more than" in over
    assert [file.name for file in tmp_path.iterdir()] == ["state.json"]


def test_an_update_never_writes_over_toml(tmp_path):
    path = tmp_path / "state.toml"
    path.write_text(Path(EXAMPLE).read_text())
    arguments = ["--arms", "ema", "--seeds", "5", "--outcome", "1", "--write", str(path)]
    result = run("update", str(path), *arguments)
    assert isinstance(result.exception, InputError)
    assert "ends in .json, such as state.json" in str(result.exception)
    assert path.read_text() == Path(EXAMPLE).read_text()
    nowhere = run("update", EXAMPLE, *arguments[:-1], str(tmp_path / "none" / "s.json"))
    assert "cannot be written: No such file" in str(nowhere.exception)


def test_a_design_without_a_price_takes_nothing(tmp_path):
    data = state_to_json(read_state(EXAMPLE))
    data["cost"] = {"designs": [{"arms": ["ema"], "seeds": 4, "cost": 9}]}
    path = tmp_path / "state.json"
    path.write_text(json.dumps(data | {"limits": []}))
    result = run("update", str(path), "--arms", "warmup", "--seeds", "4", "--outcome", "0")
    assert "the design has no price in units; 48 are left as before" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--arms", "wings", "--seeds", "5", "--outcome", "1"], "found 'wings'"),
        (["--arms", "ema", "--seeds", "9", "--outcome", "1"], "found 9, allowed: 2 to 8"),
        (["--arms", "ema", "--seeds", "5", "--outcome", "0.3"], "found 0.3, allowed: 0, 0.25"),
        (["--arms", "ema", "--seeds", "5", "--outcome", "one"], "numbers between commas"),
        (["--arms", "ema", "--seeds", "5", "--outcome", "1,0"], "found 2 numbers"),
        (["--arms", "ema,ema", "--seeds", "5", "--outcome", "1,0"], "each arm once"),
    ],
)
def test_wrong_updates(arguments, message):
    result = run("update", EXAMPLE, *arguments)
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)


def test_wrong_action_and_figure():
    assert isinstance(run(EXAMPLE, "--score", "ARMS: wings").exception, InputError)
    assert isinstance(run(EXAMPLE, "--figure", "f.doc").exception, InputError)


def test_nothing_affordable_is_exit_3(tmp_path):
    path = tmp_path / "poor.toml"
    path.write_text(Path(EXAMPLE).read_text().replace("budget = 48", "budget = 2"))
    result = run(str(path))
    assert isinstance(result.exception, BudgetError)
    assert result.exception.exit_code == 3
    assert "cheapest costs 6.25 GPU hours" in str(result.exception)


def test_help_lists_the_subcommands():
    assert "update" in run("--help").stdout
