"""A line of customers before some counters: prints the mean and the longest wait, in minutes.

    python3 queue_model.py --counters 2 --order shortest --load 0.9

`load` is how many counters would be busy all the time if nobody ever waited.
"""

from __future__ import annotations

import argparse
import random

CUSTOMERS = 4000
MEAN_SERVICE = 3.0


def waits(counters: int, order: str, load: float, seed: int) -> list[float]:
    """Return the customers' waits, in the order in which they are served."""
    rng = random.Random(seed)
    now, arrivals = 0.0, []
    for _ in range(CUSTOMERS):
        now += rng.expovariate(load / MEAN_SERVICE)
        arrivals.append((now, rng.expovariate(1 / MEAN_SERVICE)))
    free, line, out, clock = [0.0] * counters, [], [], 0.0
    while arrivals or line:
        clock = max(clock, min(free))
        if not line:
            clock = max(clock, arrivals[0][0])
        while arrivals and arrivals[0][0] <= clock:
            line.append(arrivals.pop(0))
        served = min(line, key=(lambda one: one[1]) if order == "shortest" else None)
        line.remove(served)
        out.append(clock - served[0])
        free[free.index(min(free))] = clock + served[1]
    return out


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--counters", type=int, default=1)
    parser.add_argument("--order", choices=["arrival", "shortest"], default="arrival")
    parser.add_argument("--load", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    found = waits(given.counters, given.order, given.load, given.seed)
    print(f"mean_wait: {sum(found) / len(found):.2f}")
    print(f"longest_wait: {max(found):.1f}")


if __name__ == "__main__":
    main()
