"""A mixture of Gaussian processes with one relevance per factor, and its exact posterior.

Model m has the kernel

    (1 - trust) a(x) a(x') prod_i rho_mi ** [x_i != x'_i]  +  trust t(x) . t(x')

on the levels that its gates leave active. `a(x) = decay ** (factors away from their default)` lets
effects fade once others have worked; `t` are the standardised shapes of earlier surfaces. The
level and the scale are integrated out, and models are weighted by marginal likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from outlay.surfaces.equalities import Gates, effective

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from outlay.surfaces.cube import FloatArray, IntArray

NEGLIGIBLE = 1e-4
SCALE_FLOOR = 1e-12
LARGEST_WORK = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observations:
    """What was measured: distinct rows of levels, mean value, and how many times.

    Measurements of one row that differ tell how large the noise is; so may the caller.

    Attributes:
        rows: Levels, shape (n, d).
        values: Mean measured value, shape (n,).
        repeats: Number of measurements behind each value.
        noise_squares: Sum of squares that tells the noise variance of one measurement.
        noise_df: Degrees of freedom of that sum; 0 where nothing tells.
    """

    rows: IntArray
    values: FloatArray
    repeats: IntArray
    noise_squares: float = 0.0
    noise_df: float = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Models:
    """Candidate models that share their gates.

    Attributes:
        log_correlation: Log correlation of two different levels by model and factor, (m, d) <= 0.
        log_decay: Log of the amplitude left per factor away from its default, shape (m,) <= 0.
        trust: Share of the prior variance that follows earlier surfaces, shape (m,), in [0, 1).
        nugget: Noise variance of one measurement relative to the scale, shape (m,).
        log_prior: Log prior weight, shape (m,).
        gates: Gates of all these models.
        shapes: Earlier surfaces at rows of levels, (k, d) to (k, s), divided by the root of s.
    """

    log_correlation: FloatArray
    log_decay: FloatArray
    trust: FloatArray
    nugget: FloatArray
    log_prior: FloatArray
    gates: Gates = ()
    shapes: Callable[[IntArray], FloatArray] | None = None

    def pick(self, which: IntArray) -> Models:
        """Return the models at the given positions."""
        return replace(
            self,
            log_correlation=self.log_correlation[which],
            log_decay=self.log_decay[which],
            trust=self.trust[which],
            nugget=self.nugget[which],
            log_prior=self.log_prior[which],
        )


class Evidence(NamedTuple):
    """Log weight of each model (prior times marginal likelihood) and its estimated scale."""

    log_weight: FloatArray
    scale: FloatArray


class Posterior(NamedTuple):
    """Beliefs about some configurations, averaged over models.

    Attributes:
        mean: Shape (k,).
        covariance: Shape (k, k); within models plus between them.
        noise: Variance of one further measurement around the surface.
    """

    mean: FloatArray
    covariance: FloatArray
    noise: float


def kernel(models: Models, left: IntArray, right: IntArray) -> FloatArray:
    """Return the prior covariance of rows `left` and `right` in each model, (m, a, b)."""
    near, far = effective(left, models.gates), effective(right, models.gates)
    found = _product_kernel(models.log_correlation, near, far)
    if models.log_decay.any():
        away = (near != 0).sum(axis=1)[:, None] + (far != 0).sum(axis=1)
        found *= np.exp(models.log_decay[:, None] * np.arange(away.max() + 1))[:, away]
    if models.shapes is not None:
        trust = models.trust[:, None, None]
        found = (1 - trust) * found + trust * (models.shapes(left) @ models.shapes(right).T)
    return found


def _product_kernel(log_correlation: FloatArray, left: IntArray, right: IntArray) -> FloatArray:
    """Return `exp` of the summed log correlations, computed once per pattern of differences."""
    powers = 1 << np.arange(left.shape[1])
    place = (left[:, None, :] != right[None, :, :]) @ powers
    if 2 * powers[-1] > place.size:
        codes, place = np.unique(place, return_inverse=True)
        place = place.reshape(len(left), len(right))
    else:
        codes = np.arange(2 * powers[-1])
    patterns = (codes[:, None] & powers) > 0
    found: FloatArray = np.exp(log_correlation @ patterns.T)[:, place]
    return found


def _gram(models: Models, seen: Observations) -> FloatArray:
    noise = models.nugget[:, None] / seen.repeats
    return kernel(models, seen.rows, seen.rows) + noise[:, :, None] * np.eye(len(seen.rows))


def evidence(models: Models, seen: Observations) -> Evidence:
    """Return how well each model explains what was seen, level and scale integrated out.

    Restricted marginal likelihood with a flat prior on the level and 1/scale on the scale. What
    repeats tell of the noise is part of it: the noise variance is the nugget times the scale.
    """
    count = len(seen.values)
    sides = np.stack([seen.values, np.ones(count)])
    log_root, moments = _whitened_moments(_gram(models, seen), sides)
    total = moments[:, 1, 1]
    squares = np.maximum(moments[:, 0, 0] - moments[:, 0, 1] ** 2 / total, 0.0) + SCALE_FLOOR
    squares += seen.noise_squares / models.nugget
    free = max(count - 1, 1) + seen.noise_df
    log_likelihood = -log_root - 0.5 * np.log(total) - 0.5 * free * np.log(squares)
    log_likelihood -= 0.5 * seen.noise_df * np.log(models.nugget)
    return Evidence(models.log_prior + log_likelihood, squares / free)


def _whitened_moments(gram: FloatArray, sides: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return half the log determinant of each matrix, and `sides @ inv(gram) @ sides.T`.

    One Cholesky factor of the bordered matrix holds both, where a solve would factor again.
    """
    count = gram.shape[1]
    bordered = np.zeros((len(gram), count + len(sides), count + len(sides)))
    bordered[:, :count, :count] = gram
    bordered[:, count:, :count] = sides
    bordered[:, count:, count:] = 1e30 * np.eye(len(sides))
    root = np.linalg.cholesky(bordered)
    white = root[:, count:, :count]
    diagonal = np.diagonal(root[:, :count, :count], axis1=1, axis2=2)
    return np.log(diagonal).sum(axis=1), white @ white.transpose(0, 2, 1)


def average(
    groups: Sequence[tuple[Models, Evidence]],
    seen: Observations,
    wanted: IntArray,
    together: int = 1,
) -> Posterior:
    """Return the posterior of the `wanted` rows, averaged over the models of all groups.

    Models of negligible weight are left out, and the lightest ones where the work would not fit.

    Args:
        groups: Models with their evidence.
        seen: What was measured.
        wanted: Rows of levels, shape (k, d).
        together: Rows that others ask for at once: up to so many, the number does not decide
            which models are left out.
    """
    most = LARGEST_WORK // max(len(wanted), together) ** 2
    weights = _split([found.log_weight for _, found in groups], most)
    size = len(wanted)
    within, means, shares, noise = np.zeros((size, size)), [], [], 0.0
    for (models, found), share in zip(groups, weights, strict=True):
        kept = np.flatnonzero(share)
        if len(kept):
            scaled = share[kept] * found.scale[kept]
            mean, covariance = _condition(models.pick(kept), scaled, seen, wanted)
            within += covariance
            means.append(mean)
            shares.append(share[kept])
            noise += float(scaled @ models.nugget[kept])
    mean_of_models, share_of_models = np.concatenate(means), np.concatenate(shares)
    mean = share_of_models @ mean_of_models
    apart = mean_of_models - mean
    return Posterior(mean, within + (apart * share_of_models[:, None]).T @ apart, noise)


def _split(log_weights: list[FloatArray], most: int) -> list[FloatArray]:
    """Return normalised weights in the same groups, all but the `most` heaviest set to 0."""
    joined = np.concatenate(log_weights)
    weight = np.exp(joined - joined.max())
    keep = min(len(weight), max(most, 8))
    weight[weight < max(NEGLIGIBLE, np.sort(weight)[-keep])] = 0.0
    ends = np.cumsum([len(group) for group in log_weights])[:-1]
    return np.split(weight / weight.sum(), ends)


def _condition(
    models: Models, scaled: FloatArray, seen: Observations, wanted: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return each model's mean (m, k), and the sum of covariances weighted by `scaled`."""
    precision = np.linalg.inv(_gram(models, seen))
    cross = kernel(models, wanted, seen.rows)
    gain = cross @ precision
    total = precision.sum(axis=(1, 2))
    level = (precision.sum(axis=1) @ seen.values) / total
    mean = level[:, None] + np.einsum("mkn,mn->mk", gain, seen.values - level[:, None])
    unexplained = 1.0 - gain.sum(axis=2)
    covariance = np.tensordot(scaled, kernel(models, wanted, wanted), 1)
    covariance -= np.tensordot(gain * scaled[:, None, None], cross, ((0, 2), (0, 2)))
    covariance += (unexplained * (scaled / total)[:, None]).T @ unexplained
    return mean, (covariance + covariance.T) / 2
