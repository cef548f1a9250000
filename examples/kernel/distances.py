"""Squared distances by taking differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def squared_distances(some: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the squared distance from each row of `some` to each of `points`, shape (m, n)."""
    differences = some[:, None, :] - points[None, :, :]
    return (differences**2).sum(axis=2)
