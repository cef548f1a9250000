"""Ridge regression on main effects (degree 1) or main effects and pairs (degree 2), with designs.

The published controls D1 and D2 of WhatWorkedBench: a design that never looks at the values, and a
fit whose penalty is chosen by leaving one observation out.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from outlay.surfaces.cube import FloatArray, IntArray, bits, cell_of

if TYPE_CHECKING:
    from collections.abc import Sequence

ALPHAS = (1e-5, 1e-3, 0.1, 1.0, 10.0)
LOSS_DECIMALS = 14
DESIGN_DECIMALS = 8
INTERCEPT_PRECISION = 1e-8
COEFFICIENT_PRECISION = 0.01

# Mathematically tied candidates differ by about 1e-10 in floating point, and the published orders
# followed that noise on the machine that made them; these are the purchases as published.
_PUBLISHED = {
    (4, 1): "0011 0101 0110 1000 1001 1110 0010 0100 1011 1101 0001 1010 0111 1100",
    (4, 2): "0011 0101 0110 1000 1001 1010 1100 0001 0010 0100 0111 1011 1101 1110",
    (6, 1): (
        "000111 011001 001010 101101 011100 110010 100001 110100 010011 101010 000110 001101 "
        "110001 111110 010100 011011 100111 101000 000001 001110 110111 111000 010010 011101 "
        "100100 101011 000010 010101 101001 001100 110000 011010"
    ),
    (6, 2): (
        "000111 011001 101010 110100 010010 001100 100001 001011 110101 010011 010100 100111 "
        "111011 100010 110000 101101 000101 111100 101110 110110 011111 100100 000110 011010 "
        "101000 001001 011100 110001 000010 010000 010110 110010"
    ),
}


class RidgeFit(NamedTuple):
    """A fitted ridge: predictions for every cell (not clipped), the penalty and its losses."""

    prediction: FloatArray
    alpha: float
    losses: dict[float, float]


@lru_cache
def features(d: int, degree: int) -> FloatArray:
    """Return main columns (-1 or +1) and for degree 2 all their products of two, read-only."""
    signs = 2.0 * bits(d) - 1.0
    columns = [signs[:, i] for i in range(d)]
    if degree == 2:
        columns += [signs[:, i] * signs[:, j] for i, j in combinations(range(d), 2)]
    table = np.stack(columns, axis=1)
    table.setflags(write=False)
    return table


def fit_ridge(design: FloatArray, observed: Sequence[int], values: FloatArray) -> RidgeFit:
    """Return the ridge fit of `values` at the `observed` cells; the intercept is not penalised.

    The penalty has the smallest leave-one-out loss after rounding; ties go to the larger one.

    Args:
        design: Features of every cell, shape (cells, p).
        observed: At least two measured cells.
        values: Their values.
    """
    rows = design[list(observed)]
    others = ~np.eye(len(rows), dtype=bool)
    left_rows = np.stack([rows[keep] for keep in others])
    left_values = np.stack([values[keep] for keep in others])
    losses = {}
    for alpha in ALPHAS:
        slopes, intercepts = _solve(left_rows, left_values, alpha)
        residuals = values - intercepts - (rows * slopes).sum(axis=1)
        losses[alpha] = float(np.mean(residuals**2))
    alpha = min(ALPHAS, key=lambda a: (round(losses[a], LOSS_DECIMALS), -a))
    slopes, intercepts = _solve(rows[None], values[None], alpha)
    return RidgeFit(design @ slopes[0] + intercepts[0], alpha, losses)


def design_order(d: int, degree: int, representatives: IntArray | None = None) -> list[int]:
    """Return all purchases of the sequential D-optimal design that starts from the two anchors.

    Each purchase has the largest predictive variance under a fixed Bayesian linear model, after
    rounding; ties go to the lowest cell. The published orders are used where they exist.

    Args:
        d: Number of factors.
        degree: 1 or 2.
        representatives: Representative of each cell under declared equalities: only
            representatives are bought, and an anchor's class counts as known.
    """
    cells = 2**d
    table = np.column_stack([np.ones(cells), features(d, degree)])
    known = [0, cells - 1]
    wanted = set(range(cells))
    if representatives is not None:
        known = [int(representatives[cell]) for cell in known]
        wanted = {int(cell) for cell in representatives}
    order = [] if representatives is not None else _published(d, degree)
    while open_cells := sorted(wanted - set(known) - set(order)):
        rows = table[known + order]
        precision = np.full(table.shape[1], COEFFICIENT_PRECISION)
        precision[0] = INTERCEPT_PRECISION
        covariance = np.linalg.inv(rows.T @ rows + np.diag(precision))
        candidates = table[open_cells]
        variance = ((candidates @ covariance) * candidates).sum(axis=1)
        order.append(open_cells[int(np.argmax(np.round(variance, DESIGN_DECIMALS)))])
    return order


def _published(d: int, degree: int) -> list[int]:
    return [cell_of(mask) for mask in _PUBLISHED.get((d, degree), "").split()]


def _solve(rows: FloatArray, values: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Return slopes (m, p) and intercepts (m,) of m fits on rows (m, n, p), values (m, n)."""
    row_mean = rows.mean(axis=1)
    value_mean = values.mean(axis=1)
    centred = rows - row_mean[:, None, :]
    gram = centred.transpose(0, 2, 1) @ centred + alpha * np.eye(rows.shape[2])
    moment = (centred * (values - value_mean[:, None])[:, :, None]).sum(axis=1)
    slopes = np.linalg.solve(gram, moment[:, :, None])[:, :, 0]
    return slopes, value_mean - (row_mean * slopes).sum(axis=1)
