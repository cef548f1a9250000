from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from outlay import taskfile

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "digits"
ONE_PICTURE = 1 / 1397


@pytest.fixture(scope="module")
def table() -> Iterator[Any]:
    pytest.importorskip("sklearn")
    sys.path.insert(0, str(FOLDER))
    import table

    yield table
    sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def cube(table: Any) -> np.ndarray:
    return table.cube(table.read(table.SHIPPED)[1])


def test_the_task_file_and_the_table_name_the_same_options(table: Any) -> None:
    task = taskfile.load(FOLDER)
    assert {lever.name: tuple(o.name for o in lever.options) for lever in task.levers} == (
        table.LEVERS
    )
    for names in itertools.product(*table.LEVERS.values()):
        chosen = zip(task.levers, names, strict=True)
        arguments = [
            argument
            for lever, name in chosen
            for option in lever.options
            if option.name == name
            for argument in option.args
        ]
        parsed, seed = table.train.parse(["--seed", "3", *arguments])
        assert seed == 3
        assert parsed == table.options(names)


def test_the_table_is_complete(table: Any) -> None:
    seeds, rows = table.read(table.SHIPPED)
    assert seeds == list(range(1, len(seeds) + 1))
    assert len(seeds) >= 20
    assert list(rows) == table.CONFIGURATIONS
    assert len(rows) == 128
    assert all(0 < value < 1 for row in rows.values() for value in row)


@pytest.mark.parametrize(("index", "seed"), [(0, 1), (37, 2), (96, 5)])
def test_a_cell_comes_out_again(table: Any, index: int, seed: int) -> None:
    configuration = table.CONFIGURATIONS[index]
    shipped = table.read(table.SHIPPED)[1][configuration][seed - 1]
    again = table.measure(configuration, [seed])[0]
    # Equal on the machine that measured it; other libraries round sums in another way, which may
    # move a few pictures over the border between two digits.
    assert abs(again - shipped) <= 10 * ONE_PICTURE


def test_what_the_example_promises_holds_in_its_table(table: Any, cube: np.ndarray) -> None:
    effects = [table.effect(cube, axis) for axis in range(len(table.LEVERS))]
    kinds = {
        lever: table.kind(table.estimate(values), values)
        for lever, values in zip(table.LEVERS, effects, strict=True)
    }
    assert kinds["features"] == "helps"
    assert kinds["mirror"] == "harms"
    assert kinds["shuffle"].startswith("no effect: below")
    assert kinds["patience"] == "no effect: every value is the same"
    levers = list(table.LEVERS)
    pair = table.interaction(cube, levers.index("optimizer"), levers.index("rate"))
    assert table.estimate(pair).high < -0.01


def test_effects_and_interactions_agree_with_sums_by_hand(table: Any) -> None:
    shape = [2] * len(table.LEVERS)
    codes = np.indices(shape)
    made = (3.0 * codes[0] + 5.0 * codes[0] * codes[2])[..., None] + np.array([0.0, 1.0])
    assert table.effect(made, 0) == pytest.approx([5.5, 5.5])
    assert table.effect(made, 2) == pytest.approx([2.5, 2.5])
    assert table.interaction(made, 0, 2) == pytest.approx([5.0, 5.0])
    assert table.interaction(made, 0, 1) == pytest.approx([0.0, 0.0])


def test_an_interval_is_students(table: Any) -> None:
    found = table.estimate(np.array([1.0, 2.0, 3.0]))
    assert found.mean == 2.0
    assert found.high - 2.0 == pytest.approx(4.302652730 / math.sqrt(3))


def test_a_stopped_measurement_goes_on_without_its_cut_row(
    table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table.csv"
    configurations = table.CONFIGURATIONS[:3]
    monkeypatch.setattr(table, "CONFIGURATIONS", configurations)
    table.write(path, [1], {configurations[2]: [0.5]})
    with path.open("a") as file:
        file.write(",".join([*configurations[0], "0.9"]))
    table.complete(path, [1])
    seeds, rows = table.read(path)
    assert seeds == [1]
    assert list(rows) == configurations
    assert rows[configurations[2]] == [0.5]
    assert rows[configurations[0]][0] != 0.9
    with pytest.raises(SystemExit, match="holds other seeds"):
        table.complete(path, [1, 2])


def test_the_command_prints_its_metric_on_the_last_line(table: Any) -> None:
    command = [sys.executable, "train.py", "--seed", "1", "--features", "strokes"]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=True)
    printed = json.loads(done.stdout.splitlines()[-1])
    configuration = ("strokes", *(names[0] for names in list(table.LEVERS.values())[1:]))
    shipped = table.read(table.SHIPPED)[1][configuration][0]
    assert abs(printed["accuracy"] - shipped) <= 10 * ONE_PICTURE


def test_the_summary_prints_every_lever(table: Any, capsys: pytest.CaptureFixture[str]) -> None:
    table.summary(table.SHIPPED)
    printed = capsys.readouterr().out
    assert all(lever in printed for lever in table.LEVERS)
    assert "best on every second seed" in printed
