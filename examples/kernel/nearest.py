"""For each point, the distance to its nearest other point."""

from __future__ import annotations

import os

import numpy as np
from distances import squared_distances

BLOCK = int(os.environ.get("KERNEL_BLOCK", "8"))


def nearest(points: np.ndarray) -> np.ndarray:
    """Return the distance from each row of an (n, d) array to its nearest other row."""
    found = np.empty(len(points))
    for start in range(0, len(points), BLOCK):
        squared = squared_distances(points[start : start + BLOCK], points)
        rows = np.arange(len(squared))
        squared[rows, start + rows] = np.inf
        distances = np.sqrt(squared)
        found[start : start + BLOCK] = distances.min(axis=1)
    return found
