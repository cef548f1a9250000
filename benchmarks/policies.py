"""How good the champion of each policy really is, on the digits example as a simulation.

A search on the simulation is thousands of times faster than on the program, and its champion can
be ranked, since the exhaustive table knows the mean of every configuration. Every search is a
whole run through the driver: baseline, confirmation against noise and final estimate included.

    uv run python benchmarks/policies.py --seeds 50
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import outlay

if TYPE_CHECKING:
    from collections.abc import Mapping

    from outlay import Task

TABLE = Path(__file__).resolve().parents[1] / "examples" / "digits" / "table.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """An exhaustive table, resampled for any seed.

    Attributes:
        levers: Names of the levers, in the order of the table.
        rows: Configuration (one option a lever) to its row of `values`.
        values: Measured metric, shape (configurations, seeds).
    """

    levers: tuple[str, ...]
    rows: dict[tuple[str, ...], int]
    values: np.ndarray

    def value(self, config: Mapping[str, str], seed: int) -> float:
        """Return the metric of a configuration for any seed, the same on every call.

        The residuals of two measured seeds are mixed: `mean + c (cos(t) r_i + sin(t) r_j)`, with
        i, j and t drawn from the seed alone and c = sqrt(K / (K - 1)) for K measured seeds. So
        the mean is the table's, the covariance of any two configurations is the table's
        unbiased estimate, and configurations compared on one seed are paired as in the program.
        """
        found = self.values[self._row(config)]
        residuals = found - found.mean()
        rng = np.random.default_rng([20, seed])
        first, second = rng.choice(len(found), size=2, replace=True)
        angle = rng.uniform(0, 2 * math.pi)
        scale = math.sqrt(len(found) / (len(found) - 1))
        mixed = math.cos(angle) * residuals[first] + math.sin(angle) * residuals[second]
        return float(found.mean() + scale * mixed)

    def mean(self, config: Mapping[str, str]) -> float:
        """Return the true mean of a configuration, the one of all measured seeds."""
        return float(self.values[self._row(config)].mean())

    def rank(self, config: Mapping[str, str]) -> int:
        """Return 1 plus the number of configurations with a larger true mean."""
        means = self.values.mean(axis=1)
        # Configurations of an idle lever have equal rows; rounding must not order them.
        return 1 + int((means > means[self._row(config)] + 1e-12).sum())

    def _row(self, config: Mapping[str, str]) -> int:
        return self.rows[tuple(config[lever] for lever in self.levers)]


def load(path: Path = TABLE) -> Simulation:
    """Return the simulation of a table: columns of levers, then one a seed, named by it."""
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    levers = tuple(name for name in header if not name.isdigit())
    return Simulation(
        levers=levers,
        rows={tuple(row[: len(levers)]): i for i, row in enumerate(rows)},
        values=np.array([[float(cell) for cell in row[len(levers) :]] for row in rows]),
    )


POLICIES = ("adaptive", "greedy", "uct", "random", "fixed:3", "linear", "single")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one search ended with: the champion's true rank and true gain, and attempts used."""

    rank: int
    gain: float
    attempts: int


def search(simulation: Simulation, task: Task, run: int) -> Found:
    """Return what the search of run number `run` finds; each run has noise of its own."""

    def evaluate(config: Mapping[str, str], seed: int | None) -> float:
        return simulation.value(config, (seed or 0) + 10_000_000 * (run + 1))

    summary = outlay.search(task, evaluate, seed=run).summary()
    champion, baseline = summary.champion, summary.baseline
    assert champion is not None
    assert baseline is not None
    gain = simulation.mean(champion.configuration) - simulation.mean(baseline.configuration)
    return Found(
        rank=simulation.rank(champion.configuration), gain=gain, attempts=summary.attempts
    )


def row(simulation: Simulation, task: Task, seeds: int) -> str:
    """Return one line of the table: a policy at a budget, over all seeds."""
    found = [search(simulation, task, run) for run in range(seeds)]
    ranks = np.array([one.rank for one in found])
    gains = np.array([one.gain for one in found])
    half = 1.96 * gains.std(ddof=1) / math.sqrt(seeds)
    attempts = np.mean([one.attempts for one in found])
    low, middle, high = np.quantile(ranks, [0.25, 0.5, 0.75])
    return (
        f"{task.search.policy:<10} {task.budget.attempts:>8} {attempts:>6.1f} "
        f"{middle:>7.0f} ({low:.0f} to {high:.0f}) {np.mean(ranks <= 4):>10.0%} "
        f"{gains.mean():>10.4f} [{gains.mean() - half:.4f}, {gains.mean() + half:.4f}]"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--attempts", type=int, nargs="+", default=[12, 24])
    arguments = parser.parse_args()
    simulation = load()
    base = outlay.load(TABLE.parent)
    best = max(simulation.rows, key=lambda c: simulation.values[simulation.rows[c]].mean())
    named = dict(zip(simulation.levers, best, strict=True))
    default = {lever.name: lever.options[0].name for lever in base.levers}
    print(
        f"{len(simulation.rows)} configurations; the default has rank {simulation.rank(default)}, "
        f"the best gains {simulation.mean(named) - simulation.mean(default):.4f}"
    )
    print("policy     attempts   used  rank: median (quartiles)  rank <= 4  true gain [95 %]")
    for attempts in arguments.attempts:
        for policy in POLICIES:
            task = replace(
                base,
                budget=outlay.Budget(attempts=attempts),
                search=replace(base.search, policy=policy),
            )
            print(row(simulation, task, arguments.seeds))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
