from __future__ import annotations

import math
import os
import statistics
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay.audit import audit, estimate_noise, find_repeats
from outlay.auditlog import Columns, Row, header, read_rows
from outlay.errors import InputError

SHARED = Path(
    os.environ.get("OUTLAY_SHARED", Path(__file__).resolve().parents[1] / ".." / "shared")
)
REAL = SHARED / "data" / "autoresearch" / "results.tsv"

AUTORESEARCH = Columns(
    metric="val_bpb", direction="minimize", hash="commit", description="description"
)
HEADER = "commit\tval_bpb\tmemory_gb\tstatus\tdescription\n"

OWN = (Path(__file__).resolve().parents[1] / "examples" / "logs" / "points.csv").read_text()
OWN_COLUMNS = Columns(
    metric="points",
    direction="maximize",
    status="verdict",
    accepted="yes",
    failed="failed",
    repeats="setup",
    description="change",
)


def rows_of(*lines: str) -> tuple[Row, ...]:
    text = HEADER + "".join(line.replace("|", "\t") + "\n" for line in lines)
    return read_rows(text, "log.tsv", AUTORESEARCH)


def test_the_shared_log_has_22_gains_of_which_14_are_not_above_its_seed_difference() -> None:
    if not REAL.exists():
        pytest.skip("the shared log is not here")
    found = audit(read_rows(REAL.read_text(), "results.tsv", AUTORESEARCH), "minimize")
    assert len(found.gains) == 22
    assert found.unconfirmed == 14
    assert found.failed == 1
    assert found.noise is not None
    assert found.noise.difference == pytest.approx(0.000695)
    assert [[row.line for row in group.rows] for group in found.noise.repeats] == [[15, 16]]
    assert found.confirmed_chain is not None
    assert [gain.entry.row.line for gain in found.confirmed_chain] == [3, 10]
    last = found.confirmed_chain[-1]
    assert last.anchor is not None
    assert last.anchor.row.line == 3
    # Student's t with one degree of freedom has the quantile tan(pi (p - 1/2)).
    half = math.tan(math.pi * 0.475) * 0.000695
    assert (last.low, last.high) == pytest.approx(
        (0.986041 - 0.975524 - half, 0.986041 - 0.975524 + half)
    )


def test_a_log_with_other_columns_and_the_other_direction() -> None:
    found = audit(read_rows(OWN, "own.csv", OWN_COLUMNS), "maximize")
    assert found.noise is not None
    pairs = [(61.2, 60.4), (64.9, 65.5), (68.8, 69.4)]
    pooled = math.sqrt(sum(statistics.variance(pair) for pair in pairs) / 3)
    assert found.noise.sd == pytest.approx(pooled)
    assert found.noise.degrees == 3
    assert [g.entry.value for g in found.gains] == pytest.approx([65.2, 65.3, 69.1])
    assert [g.gain for g in found.gains] == pytest.approx([4.4, 0.1, 3.8])
    assert [g.unconfirmed for g in found.gains] == [False, True, False]
    assert [g.confirmed for g in found.gains] == [True, False, True]
    # The last gain is over the last confirmed row, not over the unconfirmed one between.
    assert found.gains[2].over_anchor == pytest.approx(69.1 - 65.2)
    half = 3.182446305 * pooled  # sqrt(1/2 + 1/2) = 1
    assert found.gains[2].low == pytest.approx(69.1 - 65.2 - half)
    assert found.failed == 1


def test_a_gain_equal_to_the_seed_difference_is_unconfirmed() -> None:
    rows = rows_of(
        "a|0.9|1|keep|start",
        "b|1.0|1|discard|other seed",
        "c|0.8|1|keep|change",
        "d|0.699|1|keep|more",
    )
    assert [g.unconfirmed for g in audit(rows, "minimize").gains] == [True, False]


def test_equal_descriptions_are_repeats_only_under_the_same_champion() -> None:
    rows = rows_of(
        "a|0.9|1|keep|start",
        "b|0.95|1|discard|warmup",
        "c|0.8|1|keep|depth",
        "d|0.81|1|discard|warmup",
        "e|0.83|1|discard|warmup",
    )
    groups = find_repeats(rows)
    assert [[row.line for row in group.rows] for group in groups] == [[5, 6]]
    assert groups[0].source == "equal description, same champion"


def test_equal_hashes_are_repeats_and_baseline_is_no_hash() -> None:
    rows = rows_of(
        "baseline|0.9|1|keep|start",
        "baseline|0.8|1|keep|depth",
        "abc|0.7|1|keep|rate",
        "abc|0.72|1|discard|rate once more",
    )
    groups = find_repeats(rows)
    assert [[row.line for row in group.rows] for group in groups] == [[4, 5]]
    assert groups[0].source == "equal hash"


def test_seed_rows_of_one_champion_are_one_group() -> None:
    rows = rows_of(
        "a|0.9|1|keep|start",
        "b|0.92|1|discard|seed 2",
        "c|0.95|1|discard|worse",
        "d|0.88|1|discard|Seed 3",
        "e|0.5|1|discard|seeded shuffling",
    )
    noise = estimate_noise(rows)
    assert noise is not None
    assert noise.sd == pytest.approx(statistics.stdev([0.9, 0.92, 0.88]))
    assert noise.degrees == 2


def test_a_crash_is_a_failure_and_never_a_number() -> None:
    rows = rows_of("a|0.9|1|keep|start", "b|0.000000|0.0|crash|seed 2", "c|nan|1|discard|odd")
    found = audit(rows, "minimize")
    assert found.failed == 2
    assert found.noise is None
    assert [entry.value for entry in found.entries] == [0.9]


def test_without_repeats_nothing_is_called_confirmed() -> None:
    rows = rows_of("a|0.9|1|keep|start", "b|0.2|1|keep|better")
    found = audit(rows, "minimize")
    assert found.unconfirmed is None
    assert found.confirmed_chain is None
    assert found.gains[0].gain == pytest.approx(0.7)


def test_given_noise_takes_the_place_of_repeats_and_has_normal_intervals() -> None:
    rows = rows_of("a|0.9|1|keep|start", "b|0.91|1|discard|seed", "c|0.8|1|keep|better")
    found = audit(rows, "minimize", noise_sd=0.05)
    assert found.noise is not None
    assert found.noise.source == "given"
    gain = found.gains[0]
    assert gain.high == pytest.approx(0.1 + 1.959963985 * 0.05 * math.sqrt(2))
    assert gain.confirmed is False
    assert gain.unconfirmed is False


def test_identical_repeats_confirm_every_gain() -> None:
    rows = rows_of("a|0.9|1|keep|start", "b|0.9|1|discard|seed", "c|0.899|1|keep|better")
    assert audit(rows, "minimize").gains[0].confirmed is True


def test_an_accepted_loss_is_unconfirmed() -> None:
    rows = rows_of("a|0.9|1|keep|start", "b|0.9|1|discard|seed", "c|0.95|1|keep|worse")
    assert audit(rows, "minimize").unconfirmed == 1


def test_no_value_at_all_is_an_error() -> None:
    with pytest.raises(ValueError, match="no row has a value"):
        audit(rows_of("a|0|0|crash|start"), "minimize")


values = st.floats(-100, 100, allow_nan=False)


@given(st.lists(st.tuples(values, st.booleans()), min_size=1, max_size=20))
def test_directions_mirror_each_other(log: list[tuple[float, bool]]) -> None:
    def rows(sign: float) -> list[Row]:
        return [
            Row(line=i + 2, value=sign * v, outcome="accepted" if kept else "rejected")
            for i, (v, kept) in enumerate(log)
        ]

    up, down = audit(rows(1), "maximize", 1.0), audit(rows(-1), "minimize", 1.0)
    assert [g.gain for g in up.gains] == [g.gain for g in down.gains]
    assert [g.confirmed for g in up.gains] == [g.confirmed for g in down.gains]


@given(st.lists(values, min_size=2, max_size=10))
def test_noise_of_one_group_is_its_standard_deviation(group: list[float]) -> None:
    rows = [Row(line=i + 2, value=v, outcome="rejected", repeats="x") for i, v in enumerate(group)]
    noise = estimate_noise(rows)
    assert noise is not None
    assert noise.sd == pytest.approx(statistics.stdev(group), abs=1e-9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "log.tsv: line 1: found '', allowed: a header of column names"),
        ("commit\tcommit\n", "log.tsv: line 1: header: found 'commit', allowed: each column"),
        ("commit\tloss\tstatus\n", "log.tsv: line 1: column for --metric: found 'val_bpb'"),
        (HEADER + "a\t0.9\n", "log.tsv: line 2: row: found '2 cells', allowed: 5 cells"),
        (HEADER + "a\t0.9\t1\tkeep\tx\n" + HEADER, "line 3: row: found 'the header again'"),
        (HEADER + "a\tbest\t1\tdiscard\tx\n", "line 2: val_bpb: found 'best', allowed: a number"),
        (HEADER + "a\tnan\t1\tkeep\tx\n", "line 2: val_bpb: found 'nan', allowed: a finite"),
        (HEADER + "a\t1\t1\tkeep\tx\ry\n", "line 3: row: found '1 cells'"),
        (HEADER + "a\t1\t1\tkeep\t" + "x" * 200_000, "line 2: found field larger than"),
        (HEADER + "\na\tinf\t1\tkeep\tx\n", "line 3: val_bpb: found 'inf', allowed: a finite"),
    ],
)
def test_a_bad_log_is_named_by_line_column_found_and_allowed(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        read_rows(text, "log.tsv", AUTORESEARCH)
    assert message in str(error.value)


def test_quotation_marks_in_a_tab_separated_log_are_text() -> None:
    rows = rows_of('a|0.9|1|keep|say "more', "b|0.8|1|keep|depth")
    assert [row.description for row in rows] == ['say "more', "depth"]


def test_a_comma_separated_cell_may_hold_commas_and_lines() -> None:
    text = 'score,status,description\n1,keep,"a, b\nc"\n2,keep,d\n'
    columns = Columns(metric="score", direction="maximize", description="description")
    rows = read_rows(text, "log.csv", columns)
    assert [(row.line, row.description) for row in rows] == [(2, "a, b\nc"), (4, "d")]


def test_the_header_of_an_empty_first_line_is_refused() -> None:
    with pytest.raises(InputError, match="a header of column names"):
        header("\na,b\n", "log.csv")
