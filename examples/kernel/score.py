"""Time nearest() on 600 points in 16 dimensions and print the milliseconds of one call."""

from __future__ import annotations

import argparse
import json
import statistics
import time

import numpy as np
from nearest import nearest

CALLS = 5


def main() -> None:
    """Print the median of a few calls, after one that warms up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--order", choices=["C", "F"], default="C", help="layout of the points")
    order = parser.parse_args().order
    points = np.random.default_rng(1).normal(size=(600, 16)).copy(order=order)
    nearest(points)
    milliseconds = []
    for _ in range(CALLS):
        start = time.perf_counter()
        nearest(points)
        milliseconds.append(1000 * (time.perf_counter() - start))
    print(json.dumps({"milliseconds": statistics.median(milliseconds)}))


if __name__ == "__main__":
    main()
