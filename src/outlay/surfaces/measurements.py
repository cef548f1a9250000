"""What was bought: one record per measurement, failed ones with their reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from outlay.errors import InputError
from outlay.surfaces.mixture import Observations

if TYPE_CHECKING:
    from outlay.surfaces.factors import Config, Factors


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One run of the program.

    Attributes:
        config: Every factor with its level.
        metrics: What it returned; empty if it failed.
        reason: Why it failed; empty if it did not.
        seconds: Wall clock that it took.
        usd: What it cost.
    """

    config: Config
    metrics: dict[str, float] = field(default_factory=dict)
    reason: str = ""
    seconds: float = 0.0
    usd: float = 0.0


def read_metrics(value: object) -> dict[str, float]:
    """Return finite metrics from what a program returned: a number, or names with numbers.

    Raises:
        InputError: If it is something else, or not finite.
    """
    named: dict[object, object] = {"value": value}
    if isinstance(value, Mapping):
        named = dict(value)
    if not named:
        raise InputError("metrics: found none, allowed: a number or names with numbers")
    return {str(name): _finite(name, number) for name, number in named.items()}


def _finite(name: object, number: object) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float | np.floating | np.integer):
        raise InputError(f"metric {name}: found {number!r}, allowed: a number")
    if not isfinite(number):
        raise InputError(f"metric {name}: found {number}, allowed: a finite number")
    return float(number)


def metric_name(measurements: Sequence[Measurement], wanted: str | None) -> str:
    """Return the metric to look at: the wanted one, or the only one that there is.

    Raises:
        InputError: If it is missing from a measurement, or there are several to choose from.
    """
    found = {name for taken in measurements for name in taken.metrics}
    if wanted is None and len(found) > 1:
        raise InputError(f"metric: found none, allowed: one of {', '.join(sorted(found))}")
    name = wanted or next(iter(found), "value")
    for taken in measurements:
        if taken.metrics and name not in taken.metrics:
            raise InputError(f"metric: {name!r} is missing at {taken.config}")
    return name


def observations(
    factors: Factors, measurements: Sequence[Measurement], metric: str
) -> Observations:
    """Return the mean value of each measured configuration, in order of first measurement."""
    values: dict[int, list[float]] = {}
    for taken in measurements:
        if not taken.reason:
            values.setdefault(factors.cell(taken.config), []).append(taken.metrics[metric])
    return Observations(
        rows=factors.space.rows(np.array(list(values), dtype=np.int64)),
        values=np.array([np.mean(found) for found in values.values()]),
        repeats=np.array([len(found) for found in values.values()], dtype=np.int64),
    )


def failures(factors: Factors, measurements: Sequence[Measurement]) -> dict[int, str]:
    """Return the reason of the last failure of every cell that never gave a value."""
    good = {factors.cell(taken.config) for taken in measurements if not taken.reason}
    return {
        cell: taken.reason
        for taken in measurements
        if taken.reason and (cell := factors.cell(taken.config)) not in good
    }
