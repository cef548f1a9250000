"""A Bayesian linear model from its sums: effects shrunk towards 0, the strength estimated."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

NULL = 0.4
"""Share of changes that are taken to have no effect at all."""

_RATIOS = np.array([0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0])
"""Candidates for the typical effect, in units of the noise of one score."""


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


class Fit(NamedTuple):
    """The posterior of all effects, a multivariate t distribution in metric units.

    Attributes:
        mean: Centre, one number a column.
        covariance: Scale matrix.
        df: Degrees of freedom.
        prior: Scale of every column before any score.
    """

    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]
    df: float
    prior: float


def solve(
    gram: NDArray[np.float64],
    moment: NDArray[np.float64],
    square: float,
    count: int,
    noise: tuple[float, float],
) -> Fit:
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
    return Fit(
        mean=vectors @ (weights * projected),
        covariance=(vectors * weights) @ vectors.T * variance,
        df=2 * shape,
        prior=ratio * math.sqrt(variance),
    )
