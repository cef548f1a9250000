"""A log of experiments from elsewhere, read from the text of a CSV or TSV file."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from outlay.errors import InputError, bad_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from outlay.task import Direction

AUTORESEARCH = ("commit", "val_bpb", "memory_gb", "status", "description")
"""Columns of the `results.tsv` of an autoresearch workspace."""

Outcome = Literal["accepted", "rejected", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Which columns of a log hold what, and how its statuses read.

    Attributes:
        metric: Column of the number.
        direction: Which way is better.
        status: Column of the decision.
        accepted: Status of a row that was kept.
        failed: Status of a row without a result, whatever number it holds.
        repeats: Column that is equal for evaluations of one configuration; `None` for none.
        hash: Column of the code's hash; equal hashes are one configuration; `None` for none.
        description: Column of the change in words; `None` for none.
    """

    metric: str
    direction: Direction
    status: str = "status"
    accepted: str = "keep"
    failed: str = "crash"
    repeats: str | None = None
    hash: str | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of a log. A failed row has no value.

    Attributes:
        line: Line in the file, the header being line 1.
        value: The metric, finite; `None` if and only if the row failed.
        outcome: What the log says happened.
        hash: Hash of the code; empty if the log has none, or says `baseline` in its place.
        description: The change in words; empty if the log has none.
        repeats: Value of the repeats column; empty if there is none.
    """

    line: int
    value: float | None
    outcome: Outcome
    hash: str = ""
    description: str = ""
    repeats: str = ""

    @property
    def label(self) -> str:
        """Return what people call the row, printable."""
        return printable(self.description or self.hash or f"line {self.line}")


def printable(text: str) -> str:
    """Return the text with a dot for each character that could steer a terminal."""
    return "".join(c if c.isprintable() else "·" for c in text)


def header(text: str, where: str) -> tuple[str, ...]:
    """Return the column names of a log; raises `InputError` if there are none, or one twice."""
    first = text.partition("\n")[0].strip()
    if not first:
        raise bad_value(where, "line 1", first, "a header of column names")
    names = next(_reader(text))
    for name in names:
        if names.count(name) > 1:
            raise bad_value(f"{where}: line 1", "header", name, "each column name once")
    return tuple(names)


def read_rows(text: str, where: str, columns: Columns) -> tuple[Row, ...]:
    """Return the rows of a log in its order.

    Args:
        text: The file's text; tab-separated if the header holds a tab, else comma-separated.
        where: What messages call the file.
        columns: What the columns mean.

    Raises:
        InputError: For a missing column, a row of another length, a metric that is no number, or
            an accepted row whose metric is not finite.
    """
    names = header(text, where)
    for use in ("metric", "status", "repeats", "hash", "description"):
        name = getattr(columns, use)
        if name is not None and name not in names:
            raise bad_value(f"{where}: line 1", f"column for --{use}", name, ", ".join(names))
    rows = []
    for line, cells in _numbered(text, where):
        place = f"{where}: line {line}"
        if tuple(cells) == names:
            raise bad_value(place, "row", "the header again", "one header, on line 1")
        if len(cells) != len(names):
            raise bad_value(place, "row", f"{len(cells)} cells", f"{len(names)} cells")
        rows.append(_row(dict(zip(names, cells, strict=True)), columns, place, line))
    return tuple(rows)


def _numbered(text: str, where: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line and the cells of each row after the header that is not blank."""
    reader = _reader(text)
    next(reader)
    line = reader.line_num + 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{where}: line {line}: found {error}, allowed: CSV or TSV") from None


def _reader(text: str) -> csv._reader:  # type: ignore[name-defined]
    lines = io.StringIO(text, newline="")
    if "\t" in text.partition("\n")[0]:
        # Descriptions in these logs are raw text, where a quotation mark is only a mark.
        return csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    return csv.reader(lines, skipinitialspace=True)


def _row(cells: dict[str, str], columns: Columns, place: str, line: int) -> Row:
    status = cells[columns.status].strip()
    value = None
    if status != columns.failed:
        value = _number(cells[columns.metric], f"{place}: {columns.metric}")
    if status == columns.accepted and value is None:
        found = cells[columns.metric]
        raise bad_value(place, columns.metric, found, f"a finite number where it says {status}")
    accepted: Outcome = "accepted" if status == columns.accepted else "rejected"

    def text(column: str | None) -> str:
        return cells[column].strip() if column else ""

    code = text(columns.hash)
    return Row(
        line=line,
        value=value,
        outcome="failed" if value is None else accepted,
        hash="" if code == "baseline" else code,
        description=text(columns.description),
        repeats=text(columns.repeats),
    )


def _number(cell: str, where: str) -> float | None:
    """Return the number, or `None` for an empty cell or one that is not finite."""
    if not cell.strip():
        return None
    try:
        value = float(cell)
    except ValueError:
        found = cell if len(cell) < 80 else cell[:77] + "..."
        raise InputError(f"{where}: found {found!r}, allowed: a number") from None
    return value if math.isfinite(value) else None
