"""Squared distances by a matrix product in single precision: fast, and not accurate enough."""

from __future__ import annotations

import numpy as np


def squared_distances(some: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the squared distance from each row of `some` to each of `points`, shape (m, n)."""
    some, points = some.astype(np.float32), points.astype(np.float32)
    lengths = (some**2).sum(axis=1)[:, None] + (points**2).sum(axis=1)[None, :]
    return np.maximum(lengths - 2 * some @ points.T, 0)
