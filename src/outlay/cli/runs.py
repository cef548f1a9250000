"""`outlay runs`: the runs of a store."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from outlay.cli._reading import answer, common_options, reading, store_path
from outlay.errors import StoreError
from outlay.report.words import interval, many, signed
from outlay.runs import load_state
from outlay.sqlite_store import SqliteStore
from outlay.summary import Estimate, summarise


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the list; `champion` and `difference` are as in the summary.

    `confirmed` says whether the champion is another program than the baseline.
    """

    run: str
    status: str
    attempts: int
    champion: int | str | None
    confirmed: bool
    difference: Estimate | None
    events: int
    last_written: float


@click.command()
@click.argument("directory", required=False)
@common_options
def command(directory: str | None, store: Path | None, as_json: bool) -> None:
    """List the runs of a store, the latest first.

    DIRECTORY is a task's folder; without it, the current one. A run that cannot be read is named
    after the others, and the exit code is 5.
    """
    path, _ = store_path(Path(directory) if directory and store is None else store)
    lines, broken = [], []
    with reading(path), SqliteStore(path) as opened:
        for run in opened.runs():
            try:
                state = load_state(opened, run.name)
            except StoreError as error:
                broken.append(f"{error}; `outlay clean {run.name} --all` removes it")
                continue
            if state.started is not None:
                found = summarise(state, run.name)
                lines.append(
                    Line(
                        run=run.name,
                        status=found.status,
                        attempts=found.attempts,
                        champion=found.champion.node if found.champion else None,
                        confirmed=state.contest.champion != state.baseline,
                        difference=found.difference,
                        events=run.events,
                        last_written=run.last_written,
                    )
                )
    text = "\n".join(_text(line) for line in lines) or f"no runs in {path}"
    if lines or not broken:
        answer(lines, text, as_json=as_json)
    if broken:
        raise StoreError("; ".join(broken))


def _text(line: Line) -> str:
    at = datetime.fromtimestamp(line.last_written, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
    attempts = many(line.attempts, "attempt")
    return f"{line.run:20} {line.status:12} {attempts:>14}  {at}  {_outcome(line)}"


def _outcome(line: Line) -> str:
    if line.champion is None:
        return "no baseline"
    if not line.confirmed:
        return "no gain confirmed"
    found = line.difference
    gain = f"gain {signed(found.mean)} ({interval(found.low, found.high)})" if found else ""
    return f"champion {line.champion}  {gain}".rstrip()
