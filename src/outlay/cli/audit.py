"""`outlay audit`: which accepted gains of a log are larger than its own noise."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from outlay import auditlog
from outlay.audit import CONFIDENCE, TEST, audit
from outlay.auditlog import AUTORESEARCH, Columns
from outlay.errors import InputError, OutlayError, bad_value
from outlay.task import Direction

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from outlay.audit import Audit, Gain, Noise
    from outlay.auditlog import Row

_PICTURES = (".svg", ".png")
_USUAL = {"hash": "commit", "description": "description"}
_WIDTH = 110
_UNKNOWN = (
    "unconfirmed: unknown, the log evaluates nothing twice; run its champion again with another "
    "seed and log it (description: seed), name a --repeats column, or give --noise SD"
)
_SINGLE = "one repeat is a rough guide to noise: the intervals are wide because of it"


@click.command("audit")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--metric", metavar="COLUMN", help="Column of the number.")
@click.option("--direction", type=click.Choice(get_args(Direction)), help="Which way is better.")
@click.option("--status", metavar="COLUMN", help="Column of the decision.  [status]")
@click.option("--accepted", metavar="TEXT", help="Status of a kept row.  [keep]")
@click.option("--failed", metavar="TEXT", help="Status of a row without a result.  [crash]")
@click.option(
    "--repeats", metavar="COLUMN", help="Column that is equal for runs of one configuration."
)
@click.option("--hash", metavar="COLUMN", help="Column of the code's hash.  [commit]")
@click.option("--description", metavar="COLUMN", help="Column of the change.  [description]")
@click.option("--noise", type=float, metavar="SD", help="Standard deviation of one evaluation.")
@click.option("--plot", "picture", type=click.Path(path_type=Path), help="Write a .svg or .png.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    file: Path, noise: float | None, picture: Path | None, as_json: bool, **given: str | None
) -> None:
    """Say which accepted gains of a log are larger than its own noise.

    FILE is the results.tsv of an autoresearch workspace, or a CSV or TSV file with a header; then
    name the columns. Noise is estimated from repeats in the log.
    """
    _check(noise, picture)
    text = _read(file)
    columns = _columns(auditlog.header(text, str(file)), str(file), given)
    rows = auditlog.read_rows(text, str(file), columns)
    if all(row.value is None for row in rows):
        raise bad_value(str(file), columns.metric, "no row with a result", "at least one")
    found = audit(rows, columns.direction, noise)
    if picture is not None:
        _draw(found, columns, picture)
    if as_json:
        click.echo(json.dumps(_as_json(found, file, columns), indent=2, allow_nan=False))
    else:
        _show(found, columns)


def _check(noise: float | None, picture: Path | None) -> None:
    if noise is not None and not (math.isfinite(noise) and noise > 0):
        raise bad_value("outlay audit", "--noise", noise, "a finite number above 0")
    if picture is not None and picture.suffix not in _PICTURES:
        raise bad_value("outlay audit", "--plot", str(picture), "a path that ends in .svg or .png")


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{file}: found {error.strerror}, allowed: a readable file") from None
    except UnicodeDecodeError as error:
        found = f"byte 0x{error.object[error.start]:02x} at offset {error.start}"
        raise InputError(f"{file}: found {found}, allowed: UTF-8 text") from None


def _columns(names: tuple[str, ...], where: str, given: dict[str, Any]) -> Columns:
    known = {"metric": "val_bpb", "direction": "minimize"} if names == AUTORESEARCH else {}
    known |= {name: column for name, column in _USUAL.items() if column in names}
    chosen = known | {name: value for name, value in given.items() if value is not None}
    for option, allowed in (("metric", names), ("direction", get_args(Direction))):
        if option not in chosen:
            raise InputError(f"{where}: --{option}: found nothing, allowed: {', '.join(allowed)}")
    return Columns(**chosen)


def _draw(found: Audit, columns: Columns, picture: Path) -> None:
    try:
        from outlay.report.audit import plot

        plot(found, columns.metric, columns.direction, picture)
    except ImportError:
        raise OutlayError("--plot needs matplotlib: pip install 'outlay[plot]'") from None
    except OSError as error:
        raise InputError(f"--plot: {picture}: {error.strerror}, give a writable path") from None


def _as_json(found: Audit, file: Path, columns: Columns) -> dict[str, Any]:
    noise, chain = found.noise, found.confirmed_chain
    return {
        "file": str(file),
        "metric": columns.metric,
        "direction": columns.direction,
        "results": len(found.entries),
        "failed": found.failed,
        "accepted": len(found.gains),
        "unconfirmed": found.unconfirmed,
        "noise": noise
        and {
            "source": noise.source,
            "difference": noise.difference,
            "sd": noise.sd,
            "degrees": noise.degrees if math.isfinite(noise.degrees) else None,
            "repeats": [
                {"source": group.source, "rows": [_place(row) for row in group.rows]}
                for group in noise.repeats
            ],
        },
        "test": TEST,
        "confidence": CONFIDENCE,
        "confirmed_chain": None if chain is None else [_link(gain) for gain in chain],
        "baseline": _place(found.entries[0].row),
        "gains": [
            {**_link(gain), "unconfirmed": gain.unconfirmed, "confirmed": gain.confirmed}
            for gain in found.gains
        ],
    }


def _place(row: Row) -> dict[str, Any]:
    return {
        "line": row.line,
        "hash": row.hash,
        "description": row.description,
        "value": row.value,
    }


def _link(gain: Gain) -> dict[str, Any]:
    return {
        **_place(gain.entry.row),
        "value": gain.entry.value,
        "n": gain.entry.n,
        "gain": gain.gain,
        "anchor": gain.anchor and gain.anchor.row.line,
        "over_anchor": gain.over_anchor,
        "low": gain.low,
        "high": gain.high,
    }


def _show(found: Audit, columns: Columns) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    console.width = min(console.width, _WIDTH)
    console.print(_table(found, columns))
    for line in _words(found):
        console.print(line, markup=False)


def _table(found: Audit, columns: Columns) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False, expand=True)
    table.add_column("line", justify="right")
    table.add_column("accepted change", overflow="ellipsis", no_wrap=True, ratio=1)
    for title in (columns.metric, "gain", "over confirmed, 95 %"):
        table.add_column(Text(auditlog.printable(title)), justify="right", no_wrap=True)
    table.add_column("")
    first = found.entries[0]
    table.add_row(
        str(first.row.line), Text(first.row.label), f"{first.value:.6g}", "", "", "baseline"
    )
    for gain in found.gains:
        table.add_row(*_cells(gain))
    return table


def _cells(gain: Gain) -> tuple[str | Text, ...]:
    from rich.text import Text

    entry = gain.entry
    interval = "" if gain.low is None else f"{gain.low:+.2g} to {gain.high:+.2g}"
    verdict = "confirmed" if gain.confirmed else "unconfirmed" if gain.unconfirmed else ""
    value, change = f"{entry.value:.6g}", f"{gain.gain:+.2g}"
    return (str(entry.row.line), Text(entry.row.label), value, change, interval, verdict)


def _words(found: Audit) -> list[str]:
    noise, chain = found.noise, found.confirmed_chain
    accepted = f"accepted gains: {len(found.gains)} of {len(found.entries) - 1} results"
    if found.failed:
        accepted += f", and {found.failed} without a result"
    if noise is None or chain is None:
        return ["", accepted, _UNKNOWN]
    small = (
        f"unconfirmed: {found.unconfirmed} are not above one seed difference, "
        f"{noise.difference:.3g} (standard deviation of one evaluation {noise.sd:.3g}, "
        f"{noise.source})"
    )
    return ["", accepted, small, f"confirmed chain: {len(chain)}; {TEST}", *_repeats(noise)]


def _repeats(noise: Noise) -> list[str]:
    lines = []
    for group in noise.repeats:
        rows = (f"line {row.line} {row.value:.6g} ({row.label})" for row in group.rows)
        lines.append(f"repeats by {group.source}: {', '.join(rows)}")
    if noise.degrees == 1:
        lines.append(_SINGLE)
    return lines
