"""Information over the joint outcome grid, for signatures that overlap in any way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK = 2**18  # joint outcomes held at once; 2 MB


def information_of_sets(
    prior: NDArray[np.float64], likelihood: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the information gain of every arm set for one number of seeds, in nats.

    One pass over a grid that has an outcome "not run" beside each arm's outcomes. An outcome that
    is equally likely under all hypotheses serves as "not run", which saves a column.

    Args:
        prior: Probabilities of the hypotheses, shape (H,).
        likelihood: p(outcome | hypothesis, arm), shape (H, K, Y).

    Returns:
        Information, shape (2^K,), indexed by the bitmask of the arms.
    """
    ratios, reference = _ratios(likelihood)
    arms = likelihood.shape[1]
    neutral = np.flatnonzero((likelihood == likelihood[:1]).all(axis=(0, 1)))
    if neutral.size == 0:
        ratios = np.concatenate([ratios, np.ones((*ratios.shape[:2], 1))], axis=2)
        reference = np.concatenate([reference, np.zeros((arms, 1))], axis=1)
        neutral = np.array([ratios.shape[2] - 1])
    weights = np.zeros((arms, 2, ratios.shape[2]))
    weights[:, 0, neutral[0]] = 1.0
    weights[:, 1] = reference
    bits = np.arange(2**arms)[:, None] >> np.arange(arms) & 1
    gains = bits @ _divergence(prior, likelihood) - _expected_s_log_s(prior, ratios, weights)
    gains[0] = 0.0
    return np.asarray(gains)


def information_of_one(prior: NDArray[np.float64], likelihood: NDArray[np.float64]) -> float:
    """Return the information gain when all the given arms are run, in nats; shapes as above."""
    if likelihood.shape[1] == 0:
        return 0.0
    ratios, reference = _ratios(likelihood)
    spread = _expected_s_log_s(prior, ratios, reference[:, None, :])
    return float(_divergence(prior, likelihood).sum() - spread[0])


def _ratios(
    likelihood: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return likelihood / reference and the reference, the plain mean over hypotheses."""
    reference = likelihood.mean(axis=0)
    ratios = np.divide(
        likelihood, reference, out=np.ones_like(likelihood), where=reference > 1e-300
    )
    ratios[np.broadcast_to((likelihood == likelihood[:1]).all(axis=0), ratios.shape)] = 1.0
    return ratios, reference


def _divergence(
    prior: NDArray[np.float64], likelihood: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return sum_h p_h KL(likelihood_hj || reference_j) for each arm, shape (K,)."""
    ratios, _ = _ratios(likelihood)
    logs = np.log(np.maximum(ratios, 1e-300))
    return np.asarray(np.einsum("h,hky,hky->k", prior, likelihood, logs))


def _expected_s_log_s(
    prior: NDArray[np.float64], ratios: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return E_reference[S ln S], S = sum_h p_h prod_j ratio, contracted arm by arm.

    Args:
        prior: Shape (H,).
        ratios: Shape (H, K, C).
        weights: Shape (K, R, C): each arm's C outcomes are contracted to R numbers.

    Returns:
        Shape (R^K,), arm 0 varying fastest.
    """
    half = ratios.shape[1] // 2
    low, low_weights = _products(ratios[:, :half], weights[:half])
    high, high_weights = _products(ratios[:, half:], weights[half:])
    out = np.zeros((high_weights.shape[0], low_weights.shape[0]))
    rows = max(1, _BLOCK // low.shape[1])
    for start in range(0, high.shape[1], rows):
        block = slice(start, start + rows)
        mixture = (prior[:, None] * high[:, block]).T @ low
        mixture *= np.log(np.maximum(mixture, 1e-300))
        out += high_weights[:, block] @ (mixture @ low_weights.T)
    return out.reshape(-1)


def _products(
    ratios: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the products of ratios over all joint outcomes, and the matching weight matrix."""
    product = np.ones((ratios.shape[0], 1))
    matrix = np.ones((1, 1))
    for j in range(ratios.shape[1]):
        product = (ratios[:, j, :, None] * product[:, None, :]).reshape(len(product), -1)
        matrix = np.kron(weights[j], matrix)
    return product, matrix
