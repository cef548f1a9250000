"""`outlay runs`: the runs of a store."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from outlay.cli._reading import answer, common_options, store_path
from outlay.report.words import interval, signed
from outlay.runs import load_state
from outlay.sqlite_store import SqliteStore
from outlay.summary import Estimate, summarise


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the list; `difference` is as in the summary."""

    run: str
    status: str
    attempts: int
    champion: int | str | None
    difference: Estimate | None
    events: int
    last_written: float


@click.command()
@click.argument("directory", required=False)
@common_options
def command(directory: str | None, store: Path | None, as_json: bool) -> None:
    """List the runs of a store, the latest first.

    DIRECTORY is a task's folder; without it, the current one.
    """
    path, _ = store_path(Path(directory) if directory and store is None else store)
    lines = []
    with SqliteStore(path) as opened:
        for run in opened.runs():
            state = load_state(opened, run.name)
            if state.started is not None:
                found = summarise(state, run.name)
                lines.append(
                    Line(
                        run=run.name,
                        status=found.status,
                        attempts=found.attempts,
                        champion=found.champion.node if found.champion else None,
                        difference=found.difference,
                        events=run.events,
                        last_written=run.last_written,
                    )
                )
    text = "\n".join(_text(line) for line in lines) or f"no runs in {path}"
    answer(lines, text, as_json=as_json)


def _text(line: Line) -> str:
    at = datetime.fromtimestamp(line.last_written, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
    found = line.difference
    gain = f"gain {signed(found.mean)} ({interval(found.low, found.high)})" if found else ""
    champion = f"champion {line.champion}" if line.champion is not None else "no baseline"
    return f"{line.run:20} {line.status:12} {line.attempts:>5} attempts  {at}  {champion}  {gain}"
