"""The published Gaussian process controls GP-G and GP-E of WhatWorkedBench.

Exponential kernel on the Hamming distance, constant mean by generalised least squares, length and
nugget from a small grid by leaving one observation out. GP-G buys the cell that lowers the total
variance of the cells most, GP-E that of the conditional effects.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from outlay.surfaces.cube import Edges, FloatArray, IntArray, hamming

if TYPE_CHECKING:
    from collections.abc import Sequence

LENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
NUGGETS = (1e-6, 1e-3, 0.03, 0.3)
LOSS_DECIMALS = 14
GAIN_DECIMALS = 8


class GaussianFit(NamedTuple):
    """Posterior mean of every cell (not clipped), posterior covariance, length and nugget."""

    mean: FloatArray
    covariance: FloatArray
    length: float
    nugget: float


@lru_cache
def _grid() -> tuple[FloatArray, FloatArray]:
    """Return all lengths and nuggets, shape (24,), preferred ones last."""
    length, nugget = np.meshgrid(LENGTHS, NUGGETS, indexing="ij")
    return length.ravel(), nugget.ravel()


def fit_gaussian(distance: IntArray, observed: Sequence[int], values: FloatArray) -> GaussianFit:
    """Return the posterior of all cells, given `values` at the `observed` cells.

    Args:
        distance: Distance of every two cells, shape (cells, cells).
        observed: Distinct measured cells.
        values: Their values.
    """
    cells = list(observed)
    length, nugget = _choose(distance[np.ix_(cells, cells)], values)
    kernel = np.exp(-distance / length)
    precision = np.linalg.inv(kernel[np.ix_(cells, cells)] + nugget * np.eye(len(cells)))
    weight = precision.sum(axis=1)
    level = float(weight @ values / weight.sum())
    gain = kernel[:, cells] @ precision
    unexplained = 1.0 - gain.sum(axis=1)
    covariance = kernel - gain @ kernel[cells, :]
    covariance += np.outer(unexplained, unexplained) / weight.sum()
    mean = level + gain @ (values - level)
    return GaussianFit(mean, (covariance + covariance.T) / 2, length, nugget)


def _choose(distance: FloatArray | IntArray, values: FloatArray) -> tuple[float, float]:
    """Return the length and nugget of the smallest leave-one-out loss, ties to larger ones."""
    lengths, nuggets = _grid()
    kernel = np.exp(-distance[None] / lengths[:, None, None])
    precision = np.linalg.inv(kernel + nuggets[:, None, None] * np.eye(len(values)))
    weight = precision.sum(axis=2)
    total = weight.sum(axis=1)
    projected = precision - weight[:, :, None] * weight[:, None, :] / total[:, None, None]
    residuals = (projected @ values) / np.diagonal(projected, axis1=1, axis2=2)
    losses = np.round(np.mean(residuals**2, axis=1), LOSS_DECIMALS)
    best = int(np.flatnonzero(losses == losses.min())[-1])
    return float(lengths[best]), float(nuggets[best])


def next_cell(
    fit: GaussianFit, candidates: Sequence[int], target: Literal["grid", "effect"], pairs: Edges
) -> int:
    """Return the candidate whose measurement lowers the total variance most; ties to the first.

    Args:
        fit: Current posterior.
        candidates: Cells that can be bought, rising.
        target: Sum over all cells (GP-G) or over all conditional effects (GP-E).
        pairs: The conditional effects.
    """
    cells = list(candidates)
    column = fit.covariance[:, cells]
    if target == "effect":
        column = column[pairs.high] - column[pairs.low]
    own = np.maximum(np.diagonal(fit.covariance)[cells] + fit.nugget, 1e-12)
    gain = np.round((column**2).sum(axis=0) / own, GAIN_DECIMALS)
    return cells[int(np.argmax(gain))]


def cube_distance(d: int, representatives: IntArray | None = None) -> IntArray:
    """Return the Hamming distance of all cells, or of their representatives."""
    if representatives is None:
        return hamming(d)
    return hamming(d)[np.ix_(representatives, representatives)]
