"""Measure every configuration of the digits example, or say what its table shows.

    python table.py                  # measure what table.csv lacks; goes on after a stop
    python table.py --summary        # effects, interactions and the best configuration

One row a configuration, one column a seed. Rows are added as they are done, so a stopped
measurement goes on where it was.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

import train

# Numpy comes after train.py, which keeps each process to one thread.
# isort: split
import numpy as np
from scipy.special import stdtrit

SHIPPED = Path(__file__).with_name("table.csv")
DECIMALS = 5
NULL_BELOW = 0.002  # three of the 1,397 held-out digits

LEVERS = {
    "features": ("pixels", "strokes"),
    "optimizer": ("sgd", "adam"),
    "rate": ("slow", "fast"),
    "width": ("narrow", "wide"),
    "mirror": ("off", "on"),
    "shuffle": ("on", "off"),
    "patience": ("short", "long"),
}
"""Options of each lever as in outlay.toml, the default first."""

MEANING: dict[str, dict[str, object]] = {
    "rate": {"slow": 0.01, "fast": 0.05},
    "width": {"narrow": 32, "wide": 96},
    "mirror": {"off": False, "on": True},
    "shuffle": {"on": True, "off": False},
    "patience": {"short": 10, "long": 50},
}

Configuration = tuple[str, ...]
CONFIGURATIONS: list[Configuration] = list(itertools.product(*LEVERS.values()))


class Estimate(NamedTuple):
    """A mean over seeds with its 95 % interval (Student's t)."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:+.4f}  [{self.low:+.4f}, {self.high:+.4f}]"


def options(configuration: Configuration) -> train.Options:
    """Return the options of train.py that a configuration stands for."""
    chosen = zip(LEVERS, configuration, strict=True)
    return train.Options(**{k: MEANING.get(k, {}).get(v, v) for k, v in chosen})


def measure(configuration: Configuration, seeds: list[int]) -> list[float]:
    """Return the accuracy of a configuration for each seed, rounded as in the table."""
    chosen = options(configuration)
    return [round(train.accuracy(chosen, seed), DECIMALS) for seed in seeds]


def read(path: Path) -> tuple[list[int], dict[Configuration, list[float]]]:
    """Return the seeds of a table and its finished rows; a row cut short is left out."""
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    header = rows[0]
    if header[: len(LEVERS)] != list(LEVERS):
        raise SystemExit(f"{path}: columns are {header[: len(LEVERS)]}, expected {list(LEVERS)}")
    return [int(seed) for seed in header[len(LEVERS) :]], {
        tuple(row[: len(LEVERS)]): [float(v) for v in row[len(LEVERS) :]]
        for row in rows[1:]
        if len(row) == len(header) and len(row[-1]) == DECIMALS + 2
    }


def write(path: Path, seeds: list[int], rows: dict[Configuration, list[float]]) -> None:
    """Write the table beside its place and rename it, configurations in order."""
    beside = path.with_suffix(".new")
    with beside.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([*LEVERS, *seeds])
        table.writerows(line(c, rows[c]) for c in CONFIGURATIONS if c in rows)
    beside.replace(path)


def line(configuration: Configuration, values: list[float]) -> list[str]:
    """Return one row of the table as texts."""
    return [*configuration, *(f"{value:.{DECIMALS}f}" for value in values)]


def complete(path: Path, seeds: list[int]) -> None:
    """Measure every configuration that the table lacks, one process a core."""
    rows: dict[Configuration, list[float]] = {}
    if path.exists():
        found, rows = read(path)
        if found != seeds:
            raise SystemExit(f"{path}: holds other seeds; give --seeds {len(found)} or --out")
    write(path, seeds, rows)
    missing = [c for c in CONFIGURATIONS if c not in rows]
    with ProcessPoolExecutor(os.cpu_count()) as pool, path.open("a", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        jobs = {pool.submit(measure, c, seeds): c for c in missing}
        for job in as_completed(jobs):
            rows[jobs[job]] = job.result()
            table.writerow(line(jobs[job], rows[jobs[job]]))
            file.flush()
            print(
                f"{len(rows)} of {len(CONFIGURATIONS)} configurations", end="\r", file=sys.stderr
            )
    write(path, seeds, rows)
    print(f"{path}: {len(rows)} configurations, {len(seeds)} seeds")


def cube(rows: dict[Configuration, list[float]]) -> np.ndarray:
    """Return the table as an array: one axis of two options a lever, seeds last."""
    return np.array([rows[c] for c in CONFIGURATIONS]).reshape(*[2] * len(LEVERS), -1)


def estimate(values: np.ndarray) -> Estimate:
    """Return the mean of one value a seed and its interval."""
    half = stdtrit(len(values) - 1, 0.975) * values.std(ddof=1) / math.sqrt(len(values))
    return Estimate(values.mean(), values.mean() - half, values.mean() + half)


def effect(table: np.ndarray, axis: int) -> np.ndarray:
    """Return what a lever's second option changes, averaged over all others, for each seed."""
    low, high = np.moveaxis(table, axis, 0)
    return (high - low).reshape(-1, table.shape[-1]).mean(0)


def interaction(table: np.ndarray, first: int, second: int) -> np.ndarray:
    """Return how much the first lever's effect changes when the second is on, for each seed."""
    both = np.moveaxis(table, (first, second), (0, 1))
    difference = (both[1, 1] - both[0, 1]) - (both[1, 0] - both[0, 0])
    return difference.reshape(-1, table.shape[-1]).mean(0)


def kind(found: Estimate, values: np.ndarray) -> str:
    """Return what the table says about a lever."""
    if not values.any():
        return "no effect: every value is the same"
    if found.low > -NULL_BELOW and found.high < NULL_BELOW:
        return f"no effect: below {NULL_BELOW} with its interval"
    return "helps" if found.low > 0 else "harms" if found.high < 0 else "unknown"


def summary(path: Path) -> None:
    """Print effects, interactions, noise and the best configuration."""
    seeds, rows = read(path)
    table = cube(rows)
    base = table[(0,) * len(LEVERS)]
    print(f"{len(rows)} configurations, {len(seeds)} seeds\n")
    print("lever = second option   over all others, with 95 % interval  alone, from the defaults")
    for axis, (lever, names) in enumerate(LEVERS.items()):
        values = effect(table, axis)
        alone = table[tuple(int(i == axis) for i in range(len(LEVERS)))] - base
        name = f"{lever} = {names[1]}"
        found = estimate(values)
        print(f"  {name:20} {found}   {estimate(alone)}   {kind(found, values)}")
    print(f"\ninteractions of at least {NULL_BELOW}, change of the first lever's effect")
    for first, second in itertools.combinations(range(len(LEVERS)), 2):
        found = estimate(interaction(table, first, second))
        if found.low > NULL_BELOW or found.high < -NULL_BELOW:
            print(f"  {list(LEVERS)[first]:9} x {list(LEVERS)[second]:9} {found}")
    report_best(table, base)


def report_best(table: np.ndarray, base: np.ndarray) -> None:
    """Print the best configuration: chosen on one half of the seeds, measured on the other."""
    flat = table.reshape(-1, table.shape[-1])
    best = int(flat[:, ::2].mean(1).argmax())
    changed = [f"{k}={v}" for k, v in zip(LEVERS, CONFIGURATIONS[best], strict=True)]
    single = np.median([np.std(row - base, ddof=1) for row in flat if (row != base).any()])
    print(f"\nbest on every second seed: {', '.join(changed)}")
    print(f"  against the defaults on the others: {estimate((flat[best] - base)[1::2])}")
    print(f"\ndefaults: mean {base.mean():.4f}")
    print(f"  standard deviation from seed to seed: {base.std(ddof=1):.4f}")
    print(f"  the same of a paired difference to them, median: {single:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="measure seeds 1 to this one")
    parser.add_argument("--out", type=Path, default=SHIPPED, help="the table")
    parser.add_argument("--summary", action="store_true", help="print what the table shows")
    arguments = parser.parse_args()
    if arguments.summary:
        summary(arguments.out)
    else:
        complete(arguments.out, list(range(1, arguments.seeds + 1)))


if __name__ == "__main__":
    main()
