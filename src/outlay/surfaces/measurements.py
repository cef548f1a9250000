"""What was bought: one record per measurement, failed ones with their reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from outlay.errors import InputError, bad_value
from outlay.surfaces.mixture import Observations

if TYPE_CHECKING:
    from collections.abc import Iterable

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
        seed: What it shares with measurements of other configurations, if anything.
    """

    config: Config
    metrics: dict[str, float] = field(default_factory=dict)
    reason: str = ""
    seconds: float = 0.0
    usd: float = 0.0
    seed: int | None = None


class Noise(NamedTuple):
    """What is known of the noise of one measurement beforehand.

    Attributes:
        sd: Its standard deviation, in units of the metric.
        df: Degrees of freedom behind that; 0 if nothing is known.
    """

    sd: float = 0.0
    df: float = 0


LARGEST = 1e70
"""Size of a value at most, so that fourth powers stay finite."""

KNOWN_DF = 100
"""Degrees of freedom of a standard deviation that is given as known."""


def read_noise(noisy: bool, sd: float | None) -> Noise | None:
    """Return what is known of the noise; `None` if a measured value is exact.

    Raises:
        InputError: If the standard deviation is not a finite number of at least 0.
    """
    if sd is None:
        return Noise() if noisy else None
    if isinstance(sd, bool) or not isinstance(sd, int | float) or not 0 <= sd <= LARGEST:
        raise bad_value("ablate", "noise", sd, "a standard deviation, at least 0")
    return Noise(float(sd), KNOWN_DF)


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
    if getattr(number, "ndim", None) == 0 and hasattr(number, "item"):
        number = number.item()
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise InputError(f"metric {name}: found {number!r}, allowed: a number")
    if isinstance(number, float) and not isfinite(number):
        raise InputError(f"metric {name}: found {number}, allowed: a finite number")
    if abs(number) > LARGEST:
        found = f"{number:g}" if isinstance(number, float) else "a larger whole number"
        raise InputError(f"metric {name}: found {found}, allowed: at most {LARGEST:g} in size")
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


def one_value_each(measurements: Iterable[Measurement]) -> None:
    """Refuse measurements of one configuration that differ, where values are taken as exact.

    Raises:
        InputError: If there are two.
    """
    known: dict[tuple[object, ...], float] = {}
    for taken in measurements:
        for name, value in taken.metrics.items():
            key = (name, *taken.config.items())
            if known.setdefault(key, value) != value:
                raise two_values(taken.config, name, known[key], value)


def two_values(config: Config, metric: str, first: float, second: float) -> InputError:
    """Return the error for an exact value that another contradicts."""
    return InputError(
        f"metric {metric}: found {second:g} after {first:g} at {config}, allowed: one value, as "
        "noise was not spoken of; set noisy=True"
    )


def observations(
    factors: Factors,
    measurements: Sequence[Measurement],
    metric: str,
    noise: Noise | None = None,
) -> Observations:
    """Return the mean value of each measured configuration, in order of first measurement.

    Args:
        factors: All factors.
        measurements: What was bought.
        metric: Which of its metrics.
        noise: What is known of the noise, to which repeats add; `None` if there is none.
    """
    good = [taken for taken in measurements if not taken.reason]
    values: dict[int, list[float]] = {}
    for taken in good:
        values.setdefault(factors.cell(taken.config), []).append(taken.metrics[metric])
    found = Observations(
        rows=factors.space.rows(np.array(list(values), dtype=np.int64)),
        values=np.array([np.mean(repeats) for repeats in values.values()]),
        repeats=np.array([len(repeats) for repeats in values.values()], dtype=np.int64),
    )
    if noise is None:
        return found
    means = dict(zip(values, found.values.tolist(), strict=True))
    apart = [taken.metrics[metric] - means[factors.cell(taken.config)] for taken in good]
    squares, df = _within(apart, [taken.seed for taken in good], len(values))
    return replace(
        found,
        noise_squares=squares + noise.df * noise.sd**2,
        noise_df=df + noise.df,
    )


def _within(apart: list[float], seeds: list[int | None], cells: int) -> tuple[float, int]:
    """Return sum of squares and degrees of freedom of repeats around their configuration's mean.

    What a seed does to all configurations is no noise: it cancels in effects.
    """
    shared: dict[int, list[float]] = {}
    for seed, value in zip(seeds, apart, strict=True):
        if seed is not None:
            shared.setdefault(seed, []).append(value)
    squares = sum(value**2 for value in apart)
    squares -= sum(sum(values) ** 2 / len(values) for values in shared.values())
    df = len(apart) - cells - max(len(shared) - 1, 0)
    return (max(squares, 0.0), df) if df > 0 else (0.0, 0)


def failures(factors: Factors, measurements: Sequence[Measurement]) -> dict[int, str]:
    """Return the reason of the last failure of every cell that never gave a value."""
    good = {factors.cell(taken.config) for taken in measurements if not taken.reason}
    return {
        cell: taken.reason
        for taken in measurements
        if taken.reason and (cell := factors.cell(taken.config)) not in good
    }
