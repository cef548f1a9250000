"""Surfaces in JSON files: written whole, read with every field checked, held by one writer."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outlay.errors import InputError, bad_value
from outlay.locks import take_lock, unwritable
from outlay.surfaces.factors import Inactive, read_factors
from outlay.surfaces.measurements import Measurement, Noise, read_metrics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FORMAT = 2
FIELDS = {
    *("factors", "metric", "direction", "noise"),
    *("equalities", "earlier", "seed", "measurements"),
}
DIRECTIONS = (None, "maximize", "minimize")


@contextmanager
def held(path: str | Path) -> Iterator[None]:
    """Keep a file to this process, by a lock beside it.

    Raises:
        StoreError: If another process has it, or its folder cannot be written.
    """
    place = Path(path).resolve()
    handle = take_lock(place.with_name(place.name + ".lock"), "save=")
    try:
        yield
    finally:
        os.close(handle)


def write(path: str | Path, content: Mapping[str, Any]) -> None:
    """Write the fields of a surface; the file is the old or the new one at any time.

    Raises:
        InputError: If it is no path.
        StoreError: If the file cannot be written.
    """
    if not isinstance(path, str | Path):
        raise bad_value("surface", "path", path, "the path of a file")
    target = Path(path)
    beside = target.with_name(target.name + ".part")
    try:
        beside.write_text(json.dumps({"format": FORMAT} | dict(content), indent=1))
        beside.replace(target)
    except OSError as error:
        raise unwritable(target, error, "save=") from None


def read(path: str | Path) -> dict[str, Any]:
    """Return the fields of a saved surface, as `Surface` takes them.

    Raises:
        InputError: If the file is not one, of another version, or a field is wrong.
    """
    try:
        content: dict[str, Any] = json.loads(Path(path).read_text())
        if content.pop("format") != FORMAT:
            raise InputError(f"allowed format: {FORMAT}")
        noise = content.pop("noise")
        fields = content | {
            "factors": read_factors(dict(content["factors"])),
            "measurements": [Measurement(**taken) for taken in content["measurements"]],
            "equalities": [Inactive(**entry) for entry in content["equalities"]],
            "earlier": [np.array(values, dtype=np.float64) for values in content["earlier"]],
            "noise": None if noise is None else Noise(*noise),
        }
        _check(fields)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: cannot load a surface: {error}") from error
    return fields


def _check(fields: Mapping[str, Any]) -> None:
    if unknown := FIELDS ^ fields.keys():
        raise bad_value("surface", "fields", sorted(unknown), "those of `Surface.save`")
    seed, metric, noise = fields["seed"], fields["metric"], fields["noise"]
    if not is_seed(seed):
        raise bad_value("surface", "seed", seed, "a whole number, at least 0")
    if metric is not None and not isinstance(metric, str):
        raise bad_value("surface", "metric", metric, "the name of one")
    if fields["direction"] not in DIRECTIONS:
        raise bad_value("surface", "direction", fields["direction"], "maximize or minimize")
    if noise is not None and not all(map(is_amount, noise)):
        raise bad_value("surface", "noise", list(noise), "a standard deviation and its freedom")
    for taken in fields["measurements"]:
        fields["factors"].cell(taken.config)
        if not isinstance(taken.reason, str) or bool(taken.reason) == bool(taken.metrics):
            raise bad_value("measurement", "reason", taken.reason, "a text if it failed only")
        if taken.metrics:
            read_metrics(taken.metrics)
        for name in ("seconds", "usd"):
            if not is_amount(getattr(taken, name)):
                raise bad_value("measurement", name, getattr(taken, name), "at least 0")


def is_seed(found: object) -> bool:
    """Return whether something is a whole number of at least 0."""
    return isinstance(found, int) and not isinstance(found, bool) and found >= 0


def is_amount(found: object) -> bool:
    """Return whether something is a finite number of at least 0."""
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return is_number and isfinite(found) and found >= 0  # type: ignore[arg-type, operator]
