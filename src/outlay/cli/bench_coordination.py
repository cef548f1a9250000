"""`outlay bench coordination`: which coordination mechanism earns what, and where."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outlay.errors import InputError

if TYPE_CHECKING:
    from outlay.bench.coordination.improved import Improvement
    from outlay.bench.coordination.published import Row
    from outlay.bench.coordination.study import Line


@click.command("coordination")
@click.option("--check", is_flag=True, help="Exit 1 if a published value differs by over 1e-12.")
@click.option("--extended", is_flag=True, help="Add the improved rules and harder landscapes.")
@click.option(
    "--seeds", type=click.IntRange(min=2), default=200, show_default=True, help="Per landscape."
)
@click.option(
    "--draws",
    type=click.IntRange(min=2),
    default=1000,
    show_default=True,
    help="Of the noise, for the improved rules.",
)
@click.option("--workers", type=click.IntRange(min=1), help="Processes.  [cores]")
@click.option("--out", type=click.Path(path_type=Path), help="Write tables and figures there.")
@click.option("--url", help="Let a model at this address propose, such as http://host:11434/v1.")
@click.option("--model", help="Model, as the endpoint calls it.")
@click.option("--key-env", metavar="NAME", help="Environment variable that holds the key.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    check: bool,
    extended: bool,
    seeds: int,
    draws: int,
    workers: int | None,
    out: Path | None,
    url: str | None,
    model: str | None,
    key_env: str | None,
    as_json: bool,
) -> int:
    """Run the coordination testbed with the mechanisms of `outlay search`.

    Prints the published comparison and ablation. With --url and --model a language model proposes
    in the full configuration instead, and refused replies are listed.
    """
    from outlay.bench.coordination import published

    if (url is None) != (model is None):
        raise InputError("bench coordination: found one of --url and --model, allowed: both")
    if url is not None and model is not None:
        return _ask_model(url, model, os.environ.get(key_env or "", ""), as_json)
    began = time.perf_counter()
    rows = published.rows()
    _say(f"published part: {time.perf_counter() - began:.2f} s")
    improvement, table = _extended(seeds, draws, workers) if extended else (None, [])
    if out is not None:
        _write(out, rows, improvement, table, seeds)
    if as_json:
        click.echo(json.dumps(_data(rows, improvement, table), allow_nan=False))
    elif not check:
        click.echo(_markdown(rows, improvement, table, seeds), nl=False)
    return _compare(rows) if check else 0


def _compare(rows: list[Row]) -> int:
    from outlay.bench.coordination.published import deviations

    wrong = deviations(rows)
    for line in wrong:
        _say(line)
    if not wrong:
        _say("all published values match to 1e-12")
    return 1 if wrong else 0


def _extended(seeds: int, draws: int, workers: int | None) -> tuple[Improvement, list[Line]]:
    from outlay.bench.coordination import improved, study

    began = time.perf_counter()

    def progress(name: str) -> None:
        _say(f"{name}: done after {time.perf_counter() - began:.0f} s")

    improvement = improved.compare(draws)
    progress(f"improved rules, {draws} draws")
    return improvement, study.lines(seeds, workers or os.cpu_count() or 1, progress)


def _data(rows: list[Row], improvement: Improvement | None, table: list[Line]) -> dict[str, Any]:
    from outlay.bench.coordination import tables

    data = tables.published_data(rows)
    if improvement is not None:
        data["improved"] = tables.improved_data(improvement)
        data["landscapes"] = tables.study_data(table)
    return data


def _markdown(
    rows: list[Row], improvement: Improvement | None, table: list[Line], seeds: int
) -> str:
    from outlay.bench.coordination import tables

    lines = ["## Published objective", "", *tables.published_markdown(rows)]
    if improvement is not None:
        lines += ["", "## Improved rules on it", "", *tables.improved_markdown(improvement)]
        lines += ["", "## Landscapes", "", *tables.study_markdown(table, seeds)]
    return "\n".join(lines) + "\n"


def _write(
    folder: Path,
    rows: list[Row],
    improvement: Improvement | None,
    table: list[Line],
    seeds: int,
) -> None:
    from outlay.bench.coordination import figures

    try:
        folder.mkdir(parents=True, exist_ok=True)
        text = _markdown(rows, improvement, table, seeds)
        (folder / "tables.md").write_text("# Coordination benchmark: tables\n\n" + text)
        data = json.dumps(_data(rows, improvement, table), indent=1, allow_nan=False)
        (folder / "results.json").write_text(data + "\n")
        figures.draw(folder, rows)
    except ImportError as error:
        raise InputError("figures need matplotlib: install outlay[plot]") from error
    except OSError as error:
        raise InputError(
            f"{folder}: found {error.strerror}, allowed: a writable folder"
        ) from error


def _ask_model(url: str, model: str, key: str, as_json: bool) -> int:
    from outlay.bench.coordination.model import LanguageModel
    from outlay.bench.coordination.published import FULL, row, run_published

    trace, referee = run_published(FULL, LanguageModel(url, model, key))
    line = row(f"full coordination, {model}", trace, referee)
    fallbacks = [o.proposal.fallback for o in trace.board.outcomes if o.proposal.fallback]
    if as_json:
        from dataclasses import asdict

        click.echo(json.dumps({"rows": [asdict(line)], "fallbacks": fallbacks}))
        return 0
    for reason in fallbacks:
        _say(f"the rule proposed instead: {reason}")
    click.echo(
        f"{line.configuration}: reported {line.reported:.6g}, clean {line.clean:.6g}, "
        f"{line.used} experiments, {line.confirmed} promotions, "
        f"{len(fallbacks)} proposals by the rule"
    )
    return 0


def _say(text: str) -> None:
    click.echo(text, err=True)
