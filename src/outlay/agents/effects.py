"""What the recorded scores say about the effect of every change of levers.

A Bayesian linear model: a score is a level, plus one effect for each lever off its default, plus
one for each pair of them, plus noise. Effects are shrunk towards their common mean and
interactions towards 0; how strongly is estimated. The state is a handful of sums, so recording
one score and asking for an estimate cost the same after 10 scores and after 10,000.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from outlay.task import Lever

    Configuration = tuple[str, ...]

MAX_PAIRS = 300
"""Above this many pairs of options the model has no interactions."""

NULL = 0.4
"""Share of changes that are taken to have no effect at all."""

_LEVEL, _COMMON, _EFFECT, _INTERACTION = 5.0, 0.5, 1.0, 0.5
"""Prior standard deviations, in units of the typical effect."""
_RATIOS = np.array([0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0])
"""Candidates for the typical effect, in units of the noise of one score."""
_KEPT = 16


class Direction(NamedTuple):
    """Outcomes of setting one lever to one option: how many, and their mean signed change."""

    tried: int
    scored: int
    mean: float


class Estimate(NamedTuple):
    """A Student t distribution of a difference; positive is better.

    Attributes:
        mean: Its centre, in metric units.
        scale: Its scale, likewise.
        df: Its degrees of freedom.
        prior: The scale that it had, around 0, before any score.
    """

    mean: float
    scale: float
    df: float
    prior: float

    def probability_better(self) -> float:
        """Return the probability of a difference above 0, where exactly 0 is possible.

        Before any score the difference is 0 with probability `NULL`. The Bayes factor of 0 is the
        density there over the prior density there (Dickey, Annals of Statistics 42, 1971).
        """
        from scipy.special import stdtr

        z = self.mean / self.scale
        density = -(self.df + 1) / 2 * math.log1p(z * z / self.df)
        null = NULL * math.exp(density) * self.prior / self.scale
        return float(stdtr(self.df, z)) * (1 - NULL) / (1 - NULL + null)

    def excludes_zero(self, level: float = 0.9) -> bool:
        """Return whether the central interval of this level leaves out 0."""
        from scipy.special import stdtr

        return bool(stdtr(self.df, -abs(self.mean) / self.scale) < (1 - level) / 2)


class _Fit(NamedTuple):
    mean: NDArray[np.float64]
    """Effects in scaled columns, metric units."""
    covariance: NDArray[np.float64]
    df: float
    prior: float
    """Prior scale of one scaled column, metric units."""


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
        self._fit: _Fit | None = None

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
        (column,) = self._pair_of(first, second) or (-1,)
        if column < 0 or self._gram[column, column] == 0:
            return None
        row = np.zeros((1, len(self._scale)))
        row[0, column] = self._scale[column]
        return self._estimates(row)[0]

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

    def _pair_of(self, first: tuple[str, str], second: tuple[str, str]) -> tuple[int] | None:
        defaults = {lever.name: lever.options[0].name for lever in self.levers}
        off = self._off_default({**defaults, first[0]: first[1], second[0]: second[1]})
        column = self._pairs.get((off[0], off[1])) if len(off) == 2 else None
        return None if column is None else (column,)

    def _estimates(self, rows: NDArray[np.float64]) -> list[Estimate]:
        fit = self._fitted()
        means = rows @ fit.mean
        scales = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", rows, fit.covariance, rows), 1e-300))
        priors = np.linalg.norm(rows, axis=1) * fit.prior
        columns = zip(means.tolist(), scales.tolist(), priors.tolist(), strict=True)
        return [Estimate(mean, scale, fit.df, prior) for mean, scale, prior in columns]

    def _fitted(self) -> _Fit:
        if self._fit is None:
            self._fit = _solve(
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


def _solve(
    gram: NDArray[np.float64],
    moment: NDArray[np.float64],
    square: float,
    count: int,
    noise: tuple[float, float],
) -> _Fit:
    """Return the posterior at the ratio of effect to noise that the scores make most likely.

    With `A = I / r^2 + G` and `m = A^-1 X'y`, the log evidence of ratio `r` is
    `-log|r^2 A| / 2 - a log(b + (y'y - m'X'y) / 2)`, with `a` the shape plus half the count
    (Bishop, Pattern Recognition and Machine Learning, 2006, equation 3.118, noise integrated out).
    """
    shape = noise[0] + count / 2
    found: list[tuple[float, float, float, NDArray[np.float64]]] = []
    values, vectors = np.linalg.eigh(gram)
    projected = vectors.T @ moment
    for ratio in _RATIOS:
        weights = 1.0 / (np.maximum(values, 0.0) + 1.0 / ratio**2)
        rate = noise[1] + max(square - float(projected**2 @ weights), 0.0) / 2
        evidence = float(np.log(weights / ratio**2).sum()) / 2 - shape * math.log(rate)
        evidence -= math.log(ratio / 2) ** 2 / 4
        found.append((evidence, float(ratio), rate, weights))
    _, ratio, rate, weights = max(found, key=lambda entry: entry[0])
    variance = rate / shape
    return _Fit(
        mean=vectors @ (weights * projected),
        covariance=(vectors * weights) @ vectors.T * variance,
        df=2 * shape,
        prior=ratio * math.sqrt(variance),
    )
