"""Squared distances by one matrix product: |a - b|^2 = |a|^2 - 2 a.b + |b|^2."""

from __future__ import annotations

import numpy as np


def squared_distances(some: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the squared distance from each row of `some` to each of `points`, shape (m, n)."""
    lengths = (some**2).sum(axis=1)[:, None] + (points**2).sum(axis=1)[None, :]
    return np.maximum(lengths - 2 * some @ points.T, 0)
