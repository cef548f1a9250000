"""Exit 0 if nearest() agrees with a slow and obvious version to ten digits, else 1."""

from __future__ import annotations

import math
import sys

import numpy as np
from nearest import nearest

TOLERANCE = 1e-10


def obvious(points: np.ndarray) -> list[float]:
    """Return the same distances by comparing every pair in Python."""
    rows = points.tolist()
    return [
        min(math.dist(row, other) for j, other in enumerate(rows) if j != i)
        for i, row in enumerate(rows)
    ]


def main() -> int:
    """Compare on a few sizes, one of them no multiple of any block."""
    for seed, size in enumerate((2, 97, 256)):
        points = np.random.default_rng(seed).normal(size=(size, 16))
        expected = np.array(obvious(points))
        error = float(np.abs(nearest(points) / expected - 1).max())
        if not error <= TOLERANCE:
            print(f"{size} points: relative error {error:.1e}, allowed {TOLERANCE:.0e}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
