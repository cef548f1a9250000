"""The digits example as a simulated evaluator, and the true rank of each configuration.

A search on the simulation is thousands of times faster than on the program, and its champion can
be ranked, since the table knows the mean of every configuration.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

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
