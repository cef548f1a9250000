"""How often 90 % intervals hold the truth where all is measured, with noise.

    OMP_NUM_THREADS=1 python benchmarks/noisy_intervals.py [--seeds 200]

Programs of two and three switches have random main effects and pairs; a call adds normal noise
with a standard deviation of 0.3, which the ablation is told (`noise=`) or must find (`noisy=`).
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np

from outlay.surfaces.calling import ablate

SD = 0.3
CASES = ((2, 8), (2, 20), (3, 8), (3, 24))


def held(d: int, budget: int, how: dict[str, object], seed: int) -> tuple[list[bool], list[bool]]:
    """Return which intervals hold the truth: of average effects, and of interactions."""
    rng = np.random.default_rng(seed)
    names = [f"f{i}" for i in range(d)]
    main, pairs = rng.normal(size=d), np.triu(rng.normal(size=(d, d)) / 2, 1)

    def truth(levels: tuple[int, ...]) -> float:
        row = np.array(levels)
        return float(main @ row + row @ pairs @ row)

    def call(config: dict[str, bool]) -> float:
        return truth(tuple(config.values())) + SD * rng.normal()

    surface = ablate(call, names, budget, seed=seed, **how)
    average, interactions = [], []
    for row in surface.average_rows:
        i = names.index(row["factor"])
        rest = list(product((0, 1), repeat=d - 1))
        effect = np.mean([truth((*r[:i], 1, *r[i:])) - truth((*r[:i], 0, *r[i:])) for r in rest])
        average.append(row["effect_low"] <= effect <= row["effect_high"])
    for row in surface.interaction_rows:
        both = pairs[names.index(row["first"]), names.index(row["second"])]
        interactions.append(row["low"] <= both <= row["high"])
    return average, interactions


def main() -> None:
    """Print one line for each case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=200)
    seeds = range(parser.parse_args().seeds)
    print("switches  budget  told   average  interactions")
    for d, budget in CASES:
        for told, how in (("noise", {"noise": SD}), ("noisy", {"noisy": True})):
            found = [held(d, budget, how, seed) for seed in seeds]
            average, pairs = (100 * np.mean([f[k] for f in found]) for k in (0, 1))
            print(f"{d:8}  {budget:6}  {told}  {average:7.1f}  {pairs:12.1f}", flush=True)


if __name__ == "__main__":
    main()
