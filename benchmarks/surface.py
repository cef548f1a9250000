"""Time of one whole ablation (choices and predictions, not the program) and how it grows.

    OMP_NUM_THREADS=1 python benchmarks/surface.py [--rounds 3]

Every line is the median of the rounds, on a synthetic program that costs nothing to call; CPU
seconds are those of this process, which other work on the machine inflates less. Spaces
of up to 256 configurations list every candidate and effect, and up to 6 binary factors every
combination of relevances; beyond that candidates, effects and models are sampled.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

from outlay.surfaces.calling import ablate

CASES = ((4, 8, 0.1), (6, 32, 2.0), (8, 32, None), (10, 48, None), (12, 64, 60.0), (20, 64, None))


def program(d, seed):
    """Return a program with strong and weak factors, some interactions and one gated factor."""
    rng = np.random.default_rng(seed)
    main = rng.normal(size=d) * (rng.random(d) < 0.6)
    pairs = [(i, j, rng.normal()) for i in range(d) for j in range(i) if rng.random() < 2 / d]

    def call(config):
        x = np.array(list(config.values()), dtype=float)
        x[1] *= x[0]
        return float(main @ x + sum(size * x[i] * x[j] for i, j, size in pairs))

    return call


def seconds(d, budget, seed):
    names = [f"factor{i}" for i in range(d)]
    wall, cpu = time.perf_counter(), time.process_time()
    surface = ablate(program(d, seed), names, budget, direction="maximize", seed=seed)
    surface.best()
    return time.perf_counter() - wall, time.process_time() - cpu


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    seconds(3, 4, 0)
    print(f"{'factors':>8}{'budget':>8}{'wall s':>10}{'CPU s':>10}{'CPU range':>18}{'limit s':>9}")
    for d, budget, limit in CASES:
        walls, cpus = zip(*(seconds(d, budget, seed) for seed in range(rounds)), strict=True)
        spread = f"{min(cpus):.2f} to {max(cpus):.2f}"
        bound = "" if limit is None else f"{limit:g}"
        medians = f"{statistics.median(walls):>10.3f}{statistics.median(cpus):>10.3f}"
        print(f"{d:>8}{budget:>8}{medians}{spread:>18}{bound:>9}", flush=True)


if __name__ == "__main__":
    main()
