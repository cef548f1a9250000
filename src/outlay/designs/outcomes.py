"""What an arm shows if a hypothesis holds: a mean, and noise that shrinks with the seeds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import exp, fsum, sqrt
from typing import TYPE_CHECKING

import numpy as np

from outlay.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

PAPER_NOISE = 0.55 * sqrt(5)
"""Standard deviation of one seed in the reading-set paper: 0.55 at five seeds."""

LARGEST_MEAN = 1e50
_LEAST_NOISE, _MOST_NOISE = 1e-100, 1e100  # squares of ratios stay within a float

# Below this standard deviation the kernel on the quarter grid is a point mass in double precision
# for means 0 and 1, and the likelihood ratio exp(1 / (2 sd^2)) still fits in a float.
_SMALLEST_SD = sqrt(1 / 1200)


@dataclass(frozen=True, slots=True, kw_only=True)
class GridOutcomes:
    """Outcomes on a grid, with a Gaussian kernel normalised over it (Eq. 2 of the paper).

    Attributes:
        values: The outcomes that can be observed, ascending.
        noise: Standard deviation of one seed, in units of the outcome.
    """

    values: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)
    noise: float = PAPER_NOISE

    def __post_init__(self) -> None:
        _check_noise(self.noise)
        ascending = all(a < b for a, b in pairwise(self.values))
        if len(self.values) < 2 or not ascending or not all(map(is_mean, self.values)):
            raise InputError(
                f"outcomes: values: found {self.values}, allowed: two or more numbers within "
                f"{LARGEST_MEAN:g}, ascending"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianOutcomes:
    """Outcomes on the real line: normal around the mean.

    Attributes:
        noise: Standard deviation of one seed, in units of the outcome.
    """

    noise: float = PAPER_NOISE

    def __post_init__(self) -> None:
        _check_noise(self.noise)


Outcomes = GridOutcomes | GaussianOutcomes


def _check_noise(noise: float) -> None:
    if not _LEAST_NOISE <= noise <= _MOST_NOISE:
        raise InputError(
            f"outcomes: noise: found {noise}, allowed: {_LEAST_NOISE:g} to {_MOST_NOISE:g}"
        )


def is_mean(value: float) -> bool:
    """Return whether a number may be a mean or an outcome: finite, and squares stay so."""
    return abs(value) <= LARGEST_MEAN


def noise_after(noise: float, seeds: ArrayLike) -> NDArray[np.float64]:
    """Return the standard deviation of a mean over `seeds` seeds: noise / sqrt(seeds)."""
    return np.asarray(noise / np.sqrt(np.asarray(seeds, dtype=np.float64)))


def grid_likelihood(means: ArrayLike, values: ArrayLike, sd: float) -> NDArray[np.float64]:
    """Return p(outcome | mean), normalised over the grid, with the outcomes on a new last axis.

    Args:
        means: Means, of any shape.
        values: Grid of outcomes, shape (Y,).
        sd: Standard deviation of the kernel, above 0.

    Returns:
        Probabilities, shape (*means.shape, Y), summing to 1 along the last axis.
    """
    distance = (
        np.asarray(values, dtype=np.float64) - np.asarray(means, dtype=np.float64)[..., None]
    )
    exponent = -0.5 * np.square(distance / sd)
    kernel = np.exp(exponent - exponent.max(axis=-1, keepdims=True))
    return np.asarray(kernel / kernel.sum(axis=-1, keepdims=True))


def binary_kernel(sd: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return p(y | mean 0) on the five-point grid and the ratios p(y | 1) / p(y | 0).

    The ratio is exp((2y - 1) / (2 sd^2)); it is exactly 1 at y = 0.5, which is why an arm that
    shows 0.5 tells as little as an arm that was not run.
    """
    sd = max(sd, _SMALLEST_SD)
    weights = [exp(-0.5 * (y / 4 / sd) ** 2) for y in range(5)]
    total = fsum(weights)
    half = 0.25 / sd**2
    ratios = np.exp(half * np.arange(-2.0, 3.0))
    return np.array([weight / total for weight in weights]), ratios
