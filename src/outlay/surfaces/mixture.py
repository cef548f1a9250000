"""A mixture of Gaussian processes with one relevance per factor and, in some, inactive factors.

Model m has the product kernel `prod_i rho_mi ** [x_i != x'_i]` on the levels that are left when
the model's gates have set inactive factors to level 0. The level of the surface and its scale are
integrated out, and models are weighted by their marginal likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlay.surfaces.cube import FloatArray, IntArray

NEGLIGIBLE = 1e-4
SCALE_FLOOR = 1e-12
LARGEST_AVERAGE = 96


class Gate(NamedTuple):
    """While factor `guard` is at `level`, factor `inactive` changes nothing (guard -1: never)."""

    guard: int
    level: int
    inactive: int


Gates = tuple[Gate, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observations:
    """What was measured: distinct rows of levels, mean value, and how many times.

    Attributes:
        rows: Levels, shape (n, d).
        values: Mean measured value, shape (n,).
        repeats: Number of measurements behind each value.
    """

    rows: IntArray
    values: FloatArray
    repeats: IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Models:
    """Candidate models, all with the same gates.

    Attributes:
        log_correlation: Log correlation of two different levels by model and factor, (m, d) <= 0.
        nugget: Noise variance of one measurement relative to the scale, shape (m,).
        log_prior: Log prior weight, shape (m,).
        gates: Gates of all these models.
    """

    log_correlation: FloatArray
    nugget: FloatArray
    log_prior: FloatArray
    gates: Gates


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


def effective(rows: IntArray, gates: Gates) -> IntArray:
    """Return the rows with every factor that a gate makes inactive at level 0."""
    if not gates:
        return rows
    levels = rows.copy()
    for gate in gates:
        closed = slice(None) if gate.guard < 0 else rows[:, gate.guard] == gate.level
        levels[closed, gate.inactive] = 0
    return levels


def kernel(log_correlation: FloatArray, left: IntArray, right: IntArray) -> FloatArray:
    """Return the prior correlation of rows `left` and `right` in each model, (m, a, b)."""
    powers = 1 << np.arange(left.shape[1])
    place = (left[:, None, :] != right[None, :, :]) @ powers
    codes = np.arange(2 * powers[-1])
    if len(codes) > place.size:
        codes, place = np.unique(place, return_inverse=True)
        place = place.reshape(len(left), len(right))
    patterns = (codes[:, None] & powers) > 0
    return np.exp(log_correlation @ patterns.T)[:, place]


def evidence(models: Models, seen: Observations) -> Evidence:
    """Return how well each model explains what was seen, level and scale integrated out.

    Restricted marginal likelihood with a flat prior on the level and 1/scale on the scale.
    """
    count = len(seen.values)
    rows = effective(seen.rows, models.gates)
    gram = kernel(models.log_correlation, rows, rows)
    gram += (models.nugget[:, None] / seen.repeats)[:, :, None] * np.eye(count)
    log_root, moments = _whitened_moments(gram, np.stack([seen.values, np.ones(count)]))
    total = moments[:, 1, 1]
    squares = np.maximum(moments[:, 0, 0] - moments[:, 0, 1] ** 2 / total, 0.0) + SCALE_FLOOR
    free = max(count - 1, 1)
    log_likelihood = -log_root - 0.5 * np.log(total)
    log_likelihood -= 0.5 * free * np.log(squares)
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
    groups: Sequence[tuple[Models, Evidence]], seen: Observations, wanted: IntArray
) -> Posterior:
    """Return the posterior of the `wanted` rows, averaged over the models of all groups.

    Models of negligible weight are left out.
    """
    log_weight = np.concatenate([found.log_weight for _, found in groups])
    weight = np.exp(log_weight - log_weight.max())
    smallest = max(NEGLIGIBLE, np.sort(weight)[-min(len(weight), LARGEST_AVERAGE)])
    weight[weight < smallest] = 0.0
    weight /= weight.sum()
    size = len(wanted)
    within, means, shares, noise = np.zeros((size, size)), [], [], 0.0
    start = 0
    for models, found in groups:
        share = weight[start : start + len(found.scale)]
        start += len(share)
        kept = np.flatnonzero(share)
        if len(kept):
            scaled = share[kept] * found.scale[kept]
            mean, covariance = _condition(models, kept, scaled, seen, wanted)
            within += covariance
            means.append(mean)
            shares.append(share[kept])
            noise += float(scaled @ models.nugget[kept])
    mean_of_models = np.concatenate(means)
    share_of_models = np.concatenate(shares)
    mean = share_of_models @ mean_of_models
    apart = mean_of_models - mean
    return Posterior(mean, within + (apart * share_of_models[:, None]).T @ apart, noise)


def _condition(
    models: Models, kept: IntArray, scaled: FloatArray, seen: Observations, wanted: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return each kept model's mean (m, k), and the sum of covariances weighted by `scaled`."""
    log_correlation = models.log_correlation[kept]
    rows, targets = effective(seen.rows, models.gates), effective(wanted, models.gates)
    gram = kernel(log_correlation, rows, rows)
    gram += (models.nugget[kept, None] / seen.repeats)[:, :, None] * np.eye(len(rows))
    precision = np.linalg.inv(gram)
    cross = kernel(log_correlation, targets, rows)
    gain = cross @ precision
    total = precision.sum(axis=(1, 2))
    level = (precision.sum(axis=1) @ seen.values) / total
    mean = level[:, None] + np.einsum("mkn,mn->mk", gain, seen.values - level[:, None])
    unexplained = 1.0 - gain.sum(axis=2)
    covariance = np.tensordot(scaled, kernel(log_correlation, targets, targets), 1)
    weighted = gain * scaled[:, None, None]
    covariance -= np.einsum("mkn,mln->kl", weighted, cross, optimize=True)
    covariance += (unexplained * (scaled / total)[:, None]).T @ unexplained
    return mean, (covariance + covariance.T) / 2
