"""Information under normal outcomes: quadrature in up to three directions, else sampling."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FINEST_STEP = {1: 0.02, 2: 0.06, 3: 0.25}
_FIRST_STEP = 0.8
_PRECISION = 1e-8
_REACH = 8.3  # standard deviations; the tail beyond is below 1e-16


class Estimate(NamedTuple):
    """A value and how far off it may be.

    Attributes:
        value: In nats.
        error: Half-width: the change between two step widths, or 1.96 standard errors.
    """

    value: float
    error: float


def gaussian_information(
    prior: NDArray[np.float64],
    means: NDArray[np.float64],
    sd: float,
    rng: np.random.Generator,
    samples: int,
) -> Estimate:
    """Return the information gain of observing all the given arms once, in nats.

    Only the differences of the means matter, and they span at most H - 1 directions: the outcome
    is projected on those, which loses nothing. In up to three directions the trapezoid rule is
    used, which converges geometrically for a smooth function times a normal density; above, the
    outer expectation of the nested estimator is sampled and the inner one, over finitely many
    hypotheses, is exact.

    Args:
        prior: Shape (H,).
        means: Shape (H, A).
        sd: Standard deviation of each arm's outcome.
        rng: Used above three directions only.
        samples: Draws for each hypothesis above three directions, at least 2.
    """
    centred = (means - prior @ means) / sd
    left, singular, _ = np.linalg.svd(centred, full_matrices=False)
    centres = (left * singular)[:, singular > 1e-12 * max(1.0, float(singular[0]))]
    directions = centres.shape[1]
    if directions == 0:
        return Estimate(0.0, 0.0)
    if directions in _FINEST_STEP:
        return _refined(prior, centres, _FINEST_STEP[directions])
    return _sampled(prior, centres, rng, samples)


def _refined(prior: NDArray[np.float64], centres: NDArray[np.float64], finest: float) -> Estimate:
    """Return the quadrature with the step made smaller until it no longer matters."""
    step, error = _FIRST_STEP, float("inf")
    value = _quadrature(prior, centres, step)
    while error > _PRECISION and step > finest:
        step /= 1.4
        before, value = value, _quadrature(prior, centres, step)
        error = abs(value - before)
    return Estimate(value, error + 1e-14)


def _quadrature(prior: NDArray[np.float64], centres: NDArray[np.float64], step: float) -> float:
    """Return the expectation by a tensor product of trapezoid rules of this step."""
    half = np.arange(step, _REACH + step, step)
    nodes = np.concatenate([-half[::-1], [0.0], half])
    weights = np.exp(-0.5 * np.square(nodes))
    weights /= weights.sum()
    d = centres.shape[1]
    grid = np.stack(np.meshgrid(*[nodes] * d, indexing="ij"), axis=-1).reshape(-1, d)
    tensor = weights
    for _ in range(d - 1):
        tensor = np.multiply.outer(tensor, weights)
    inside = np.square(grid).sum(axis=1) <= _REACH**2
    grid, flat = grid[inside], tensor.reshape(-1)[inside]
    return float(
        sum(
            p * float(flat @ _surprise(prior, centres, h, grid))
            for h, p in enumerate(prior)
            if p > 0
        )
    )


def _surprise(
    prior: NDArray[np.float64],
    centres: NDArray[np.float64],
    h: int,
    noise: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return ln p(y | h) - ln p(y) at y = centre of h + noise, shape (points,)."""
    shift = centres[h] - centres
    exponent = -noise @ shift.T - 0.5 * np.square(shift).sum(axis=1)
    with np.errstate(divide="ignore"):
        exponent = exponent + np.log(prior)
    top = exponent.max(axis=1)
    return np.asarray(-(top + np.log(np.exp(exponent - top[:, None]).sum(axis=1))))


def _sampled(
    prior: NDArray[np.float64],
    centres: NDArray[np.float64],
    rng: np.random.Generator,
    samples: int,
) -> Estimate:
    """Return the expectation by antithetic draws within each hypothesis, with its error."""
    value = variance = 0.0
    pairs = max(2, samples // 2)
    for h, p in enumerate(prior):
        if p == 0:
            continue
        noise = rng.standard_normal((pairs, centres.shape[1]))
        both = _surprise(prior, centres, h, noise) + _surprise(prior, centres, h, -noise)
        value += p * float(both.mean()) / 2
        variance += p**2 * float(both.var(ddof=1)) / 4 / pairs
    return Estimate(float(value), float(1.96 * variance**0.5))
