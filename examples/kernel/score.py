"""Time nearest() on 600 points in 16 dimensions and print the logarithm of one call's time.

The noise of a timing grows with the timing. On a logarithmic scale it is the same for slow and
fast variants, so that their gains can be compared; one unit is a factor of two.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time

import numpy as np
from nearest import nearest

CALLS = 5


def main() -> None:
    """Print the median of a few calls, after one that warms up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--order", choices=["C", "F"], default="C", help="layout of the points")
    order = parser.parse_args().order
    points = np.random.default_rng(1).normal(size=(600, 16)).copy(order=order)
    nearest(points)
    milliseconds = []
    for _ in range(CALLS):
        start = time.perf_counter()
        nearest(points)
        milliseconds.append(1000 * (time.perf_counter() - start))
    median = statistics.median(milliseconds)
    print(json.dumps({"log2_milliseconds": math.log2(median), "milliseconds": median}))


if __name__ == "__main__":
    main()
