from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from outlay.cli.audit import command
from outlay.errors import InputError

SHARED = Path(
    os.environ.get("OUTLAY_SHARED", Path(__file__).resolve().parents[2] / ".." / "shared")
)
REAL = SHARED / "data" / "autoresearch" / "results.tsv"

LOG = """\
commit\tval_bpb\tmemory_gb\tstatus\tdescription
baseline\t0.90\t1.0\tkeep\tbaseline
aaaaaaa\t0.91\t1.0\tdiscard\trandom seed 1 to 2
bbbbbbb\t0.60\t1.0\tkeep\t[red]wider\x1b[31m $x$
ccccccc\t0.000000\t0.0\tcrash\tout of memory
ddddddd\t0.595\t1.0\tkeep\tsmaller rate
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "results.tsv"
    path.write_text(LOG)
    return path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [str(a) for a in arguments])


def error_of(*arguments: str | Path) -> str:
    result = run(*arguments)
    assert isinstance(result.exception, InputError), result.output
    assert result.stdout == ""
    assert "\n" not in str(result.exception)
    return str(result.exception)


def test_json_of_the_shared_log() -> None:
    if not REAL.exists():
        pytest.skip("the shared log is not here")
    printed = json.loads(run(REAL, "--json").stdout)
    assert (printed["accepted"], printed["unconfirmed"]) == (22, 14)
    assert printed["noise"]["source"] == "repeats in the log: seed in the description"
    assert len(printed["gains"]) == 22
    assert sum(gain["unconfirmed"] for gain in printed["gains"]) == 14
    assert [link["line"] for link in printed["confirmed_chain"]] == [3, 10]


def test_json_says_what_was_used(log: Path) -> None:
    printed = json.loads(run(log, "--json").stdout)
    assert printed["accepted"] == 2
    assert printed["unconfirmed"] == 1
    assert printed["failed"] == 1
    assert printed["noise"]["difference"] == pytest.approx(0.01)
    assert [row["line"] for row in printed["noise"]["repeats"][0]["rows"]] == [2, 3]
    assert [link["line"] for link in printed["confirmed_chain"]] == [4]
    assert printed["gains"][1]["anchor"] == 4


def test_the_table_has_one_row_a_gain_and_prints_the_repeats(log: Path) -> None:
    shown = run(log).stdout
    assert "baseline" in shown
    assert re.search(r"^ *4 +\[red\]wid.*confirmed", shown, re.MULTILINE)
    assert re.search(r"^ *6 +smaller rate .*unconfirmed", shown, re.MULTILINE)
    assert "line 3 0.91 (random seed 1 to 2)" in " ".join(shown.split())
    assert "\x1b[31m" not in shown


def test_without_repeats_it_says_so_and_offers_noise(tmp_path: Path) -> None:
    path = tmp_path / "log.tsv"
    path.write_text(LOG.replace("random seed 1 to 2", "warmup"))
    result = run(path)
    assert result.exit_code == 0
    assert "--noise SD" in result.stdout
    printed = json.loads(run(path, "--json").stdout)
    assert printed["unconfirmed"] is None
    assert printed["noise"] is None
    assert printed["confirmed_chain"] is None
    given = json.loads(run(path, "--json", "--noise", "0.01").stdout)
    assert given["noise"]["degrees"] is None
    assert given["unconfirmed"] == 1


def test_other_columns_and_the_other_direction(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("points,done,what,setup\n1,y,a,p\n1.1,y,b,p\n9,y,c,q\n2,n,d,r\n")
    named = ("--metric", "points", "--direction", "maximize", "--status", "done")
    more = ("--accepted", "y", "--failed", "x", "--description", "what", "--repeats", "setup")
    printed = json.loads(run(path, *named, *more, "--json").stdout)
    assert printed["direction"] == "maximize"
    assert printed["gains"][0]["description"] == "c"
    assert printed["gains"][0]["gain"] == pytest.approx(9 - 1.05)
    assert printed["gains"][0]["confirmed"] is True


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_the_plot_is_written(log: Path, tmp_path: Path, ending: str) -> None:
    picture = tmp_path / f"plot.{ending}"
    assert run(log, "--plot", picture).exit_code == 0
    start = picture.read_bytes()[:200]
    assert b"<?xml" in start if ending == "svg" else start.startswith(b"\x89PNG")


def test_bad_input_is_one_line_with_what_is_allowed(log: Path, tmp_path: Path) -> None:
    assert "found No such file" in error_of(tmp_path / "none.tsv")
    assert "found Is a directory" in error_of(tmp_path)
    assert "allowed: a path that ends in .svg or .png" in error_of(log, "--plot", "x.pdf")
    assert "--noise: found nan" in error_of(log, "--noise", "nan")
    assert "column for --metric: found 'loss'" in error_of(
        log, "--metric", "loss", "--direction", "minimize"
    )
    assert "--repeats: found 'seed', allowed: commit" in error_of(log, "--repeats", "seed")
    assert "give a writable path" in error_of(log, "--plot", tmp_path / "no" / "x.svg")
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    assert "--metric: found nothing, allowed: a, b" in error_of(other)
    assert "--direction: found nothing, allowed: maximize, minimize" in error_of(
        other, "--metric", "a"
    )
    other.write_bytes(b"a,\xff\n")
    assert "byte 0xff at offset 2" in error_of(other)
    other.write_text(LOG.partition("\n")[0] + "\nx\t0.0\t0.0\tcrash\tx\n")
    assert "found 'no row with a result', allowed: at least one" in error_of(other)


def test_the_example_of_the_documentation_is_what_the_command_prints() -> None:
    root = Path(__file__).resolve().parents[2]
    page = (root / "docs" / "audit.md").read_text()
    shown = re.findall(
        r"```sh\n(outlay audit examples.*?)```\n\n```text\n(.*?)```", page, re.DOTALL
    )
    assert len(shown) == 1
    arguments = shown[0][0].replace("\\\n", " ").split()[2:]
    arguments[0] = str(root / arguments[0])
    printed = CliRunner(env={"COLUMNS": "96"}).invoke(command, arguments).stdout
    assert [line.rstrip() for line in printed.splitlines()] == shown[0][1].splitlines()
