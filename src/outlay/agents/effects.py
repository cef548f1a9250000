"""What the recorded scores say about the effect of every change of levers.

A Bayesian linear model: a score is a level, plus one effect for each lever off its default, plus
one for each pair of them, plus noise. Effects are shrunk towards their common mean and
interactions towards 0; how strongly is estimated. The state is a handful of sums, so recording
one score and asking for an estimate cost the same after 10 scores and after 10,000
(`outlay.agents._shrinkage` has the formulas).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from outlay.agents._shrinkage import Estimate, Fit, solve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from outlay.task import Lever

    Configuration = tuple[str, ...]

__all__ = ["MAX_PAIRS", "Direction", "Effects", "Estimate"]

MAX_PAIRS = 150
"""Above this many pairs of options the model has no interactions."""

_LEVEL, _COMMON, _EFFECT, _INTERACTION = 5.0, 0.5, 1.0, 0.8
"""Prior standard deviations, in units of the typical effect."""
_KEPT = 16


class Direction(NamedTuple):
    """Outcomes of setting one lever to one option: how many, and their mean signed change."""

    tried: int
    scored: int
    mean: float


class Effects:
    """Sums over all recorded scores of one task.

    Args:
        levers: The task's levers.
        sign: +1 where larger scores are better, -1 where smaller are; estimates are signed so that
            positive is better.
        noise: Standard deviation of one score where it is known; it then weighs like ten scores.
    """

    def __init__(self, levers: Sequence[Lever], sign: float, noise: float | None = None) -> None:
        self.levers = tuple(levers)
        self._sign = sign
        self._noise = noise
        self._index = [{o.name: k for k, o in enumerate(lever.options)} for lever in levers]
        self._place = {lever.name: i for i, lever in enumerate(levers)}
        starts = np.cumsum([2, *(len(lever.options) - 1 for lever in levers)])
        self._first = [int(start) for start in starts[:-1]]
        self._pairs = _pair_columns(self._first, int(starts[-1]))
        width = int(starts[-1]) + len(self._pairs)
        self._scale = np.full(width, _EFFECT)
        self._scale[:2] = _LEVEL, _COMMON
        self._scale[int(starts[-1]) :] = _INTERACTION
        self._gram = np.zeros((width, width))
        self._moment = np.zeros(width)
        self._square = self._sum = self._origin = 0.0
        self._count = 0
        self._directions: dict[tuple[str, str], Direction] = {}
        self._best: list[tuple[float, Configuration]] = []
        self._fit: Fit | None = None

    def record(
        self,
        config: Mapping[str, str],
        score: float | None,
        parent: Mapping[str, str] | None = None,
        parent_score: float | None = None,
    ) -> None:
        """Add one outcome; `score` is `None` for a failure, `parent` is `None` for the root."""
        changed = [k for k, v in config.items() if parent is not None and parent[k] != v]
        if len(changed) == 1:
            direction = (changed[0], config[changed[0]])
            self._record_direction(direction, score, parent_score)
        if score is None:
            return
        if self._count == 0:
            self._origin = score
        y = self._sign * (score - self._origin)
        columns, values = self._row(config)
        self._gram[np.ix_(columns, columns)] += np.outer(values, values)
        self._moment[columns] += values * y
        self._square += y * y
        self._sum += y
        self._count += 1
        self._keep(y, tuple(config[lever.name] for lever in self.levers))
        self._fit = None

    def direction(self, lever: str, option: str) -> Direction:
        """Return the outcomes of setting this lever, alone, to this option."""
        return self._directions.get((lever, option), Direction(0, 0, 0.0))

    def differences(
        self, config: Mapping[str, str], others: Sequence[Mapping[str, str]]
    ) -> list[Estimate]:
        """Return the estimate of how much better each other configuration is than this one."""
        base = self._dense(config)
        rows = [self._dense(other) - base for other in others]
        return self._estimates(np.array(rows)) if rows else []

    def interaction(self, first: tuple[str, str], second: tuple[str, str]) -> Estimate | None:
        """Return what two options, as (lever, option), add together beyond the sum of both.

        `None` where the model has no such term or no score that tells about it.
        """
        a, b = sorted((self._column(*first), self._column(*second)))
        column = self._pairs.get((a, b))
        if column is None or self._gram[column, column] == 0:
            return None
        fit, unit = self._fitted(), float(self._scale[column])
        scale = unit * math.sqrt(fit.covariance[column, column])
        return Estimate(unit * float(fit.mean[column]), scale, fit.df, unit * fit.prior)

    def best(self) -> dict[str, str] | None:
        """Return the scored configuration with the highest estimate, among the best-scored 16."""
        if not self._best:
            return None
        configs = [self._named(names) for _, names in self._best]
        estimates = self.differences(configs[0], configs)
        return configs[max(range(len(configs)), key=lambda i: estimates[i].mean)]

    def _record_direction(
        self, direction: tuple[str, str], score: float | None, parent_score: float | None
    ) -> None:
        tried, scored, mean = self._directions.get(direction, Direction(0, 0, 0.0))
        if score is not None and parent_score is not None:
            scored += 1
            mean += (self._sign * (score - parent_score) - mean) / scored
        self._directions[direction] = Direction(tried + 1, scored, mean)

    def _keep(self, y: float, config: Configuration) -> None:
        self._best.append((y, config))
        self._best.sort(key=lambda entry: -entry[0])
        del self._best[_KEPT:]

    def _named(self, config: Configuration) -> dict[str, str]:
        return {lever.name: name for lever, name in zip(self.levers, config, strict=True)}

    def _off_default(self, config: Mapping[str, str]) -> list[int]:
        options = [self._index[i][config[lever.name]] for i, lever in enumerate(self.levers)]
        return [self._first[i] + k - 1 for i, k in enumerate(options) if k > 0]

    def _row(self, config: Mapping[str, str]) -> tuple[list[int], NDArray[np.float64]]:
        """Return the columns that are not 0 in the row of a configuration, and their values."""
        off = self._off_default(config)
        pairs = [self._pairs[a, b] for i, a in enumerate(off) for b in off[i + 1 :] if self._pairs]
        columns = [0, 1, *off, *pairs]
        values = self._scale[columns]
        values[1] *= len(off)
        return columns, values

    def _dense(self, config: Mapping[str, str]) -> NDArray[np.float64]:
        columns, values = self._row(config)
        row = np.zeros(len(self._scale))
        row[columns] = values
        return row

    def _column(self, lever: str, option: str) -> int:
        """Return the column of an option, -1 for a default."""
        i = self._place[lever]
        k = self._index[i][option]
        return self._first[i] + k - 1 if k > 0 else -1

    def _estimates(self, rows: NDArray[np.float64]) -> list[Estimate]:
        fit = self._fitted()
        means = rows @ fit.mean
        scales = np.sqrt(np.maximum(((rows @ fit.covariance) * rows).sum(axis=1), 1e-300))
        priors = np.linalg.norm(rows, axis=1) * fit.prior
        columns = zip(means.tolist(), scales.tolist(), priors.tolist(), strict=True)
        return [Estimate(mean, scale, fit.df, prior) for mean, scale, prior in columns]

    def _fitted(self) -> Fit:
        if self._fit is None:
            self._fit = solve(
                self._gram, self._moment, self._square, self._count, self._noise_prior()
            )
        return self._fit

    def _noise_prior(self) -> tuple[float, float]:
        """Return shape and rate of the inverse gamma prior of the noise variance."""
        if self._noise is not None:
            return 5.0, 5.0 * max(self._noise, 1e-12) ** 2
        spread = self._square - self._sum**2 / self._count if self._count else 0.0
        return 1.0, 0.1 * spread / max(self._count - 1, 1) + 1e-24


def _pair_columns(first: Sequence[int], end: int) -> dict[tuple[int, int], int]:
    """Return (column of one option, column of another lever's) to the column of both."""
    ends = [*first[1:], end]
    spans = [range(a, b) for a, b in zip(first, ends, strict=True)] if first else []
    pairs = [
        (a, b)
        for i, span in enumerate(spans)
        for a in span
        for other in spans[i + 1 :]
        for b in other
    ]
    if len(pairs) > MAX_PAIRS:
        return {}
    return {pair: end + k for k, pair in enumerate(pairs)}
