"""Complete response surfaces read from JSON files that the user names."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from outlay.errors import InputError, bad_value
from outlay.surfaces.cube import FloatArray, dimension, mask_of

if TYPE_CHECKING:
    from pathlib import Path

LARGEST_DIMENSION = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """The value of every configuration of one condition.

    Attributes:
        name: Name of the condition, such as `glass` or `wine__d6`.
        family: Workflow family; empty if unknown.
        truth: Values in [0, 1] by cell, larger is better.
    """

    name: str
    family: str
    truth: FloatArray

    @property
    def d(self) -> int:
        """Number of factors."""
        return dimension(self.truth)

    @property
    def source(self) -> str:
        """Name of the data behind the condition: its name without the `__d6` of a variant."""
        return self.name.split("__")[0]


def load_tables(path: Path) -> list[Table]:
    """Return the tables of a file (one table, or several by name) or of all files of a folder.

    Raises:
        InputError: If a file cannot be read, is not strict JSON, or a table is not complete.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise InputError(f"{path}: found no .json file, allowed: a folder with truth tables")
    tables = [table for file in files for table in _load_file(file)]
    names = [table.name for table in tables]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise InputError(f"{path}: condition {min(repeated)} appears more than once")
    return sorted(tables, key=lambda table: table.name)


def _load_file(file: Path) -> list[Table]:
    try:
        content = json.loads(
            file.read_text(), object_pairs_hook=_unique_keys, parse_constant=_no_constant
        )
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: cannot read tables: {error}") from error
    if not isinstance(content, dict):
        raise InputError(f"{file}: found {type(content).__name__}, allowed: a JSON object")
    if "truth" in content:
        return [_table(str(file), content.get("instance", file.stem), content)]
    return [_table(f"{file}: {name}", name, entry) for name, entry in content.items()]


def _table(where: str, name: object, entry: object) -> Table:
    if not isinstance(name, str) or not isinstance(entry, dict) or "truth" not in entry:
        raise InputError(f"{where}: allowed: an object with `truth` (mask to value)")
    return Table(
        name=name,
        family=str(entry.get("family", "")),
        truth=_truth(where, entry["truth"]),
    )


def _truth(where: str, cells: object) -> FloatArray:
    if not isinstance(cells, dict) or not cells:
        raise bad_value(where, "truth", cells, "an object, mask to value")
    d = len(next(iter(cells)))
    masks = [mask_of(cell, d) for cell in range(2**d)] if 2 <= d <= LARGEST_DIMENSION else []
    if sorted(cells) != masks:
        raise bad_value(
            where, "truth", sorted(cells)[:4], f"all masks of 2 to {LARGEST_DIMENSION} factors"
        )
    for mask in masks:
        value = cells[mask]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise bad_value(where, mask, value, "a number")
        if not (isfinite(value) and 0 <= value <= 1):
            raise bad_value(where, mask, value, "a number in [0, 1]")
    return np.array([float(cells[mask]) for mask in masks])


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {repeated!r} appears more than once")
    return found


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number in JSON")
