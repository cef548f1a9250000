"""The default method on the cube of binary factors, as the benchmark uses it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from outlay.surfaces.beliefs import DEFAULTS, Beliefs, Settings, believe
from outlay.surfaces.cube import FloatArray, edges
from outlay.surfaces.mixture import Observations
from outlay.surfaces.purchase import remaining_uncertainty, smallest
from outlay.surfaces.space import Space


@dataclass(frozen=True, slots=True, kw_only=True)
class Auto:
    """Purchases and predictions of the default, for cubes small enough to list every cell.

    Attributes:
        d: Number of factors.
        bounds: Predictions are clipped to these.
        settings: Constants.
        seed: Seed of the sample of models that large cubes need.
    """

    d: int
    bounds: tuple[float, float]
    settings: Settings = DEFAULTS
    seed: int = 0

    def next(self, known: dict[int, float]) -> int | None:
        """Return the cell that leaves the conditional effects least uncertain in sum."""
        candidates = np.array([cell for cell in range(2**self.d) if cell not in known])
        if not len(candidates):
            return None
        found = self.beliefs(known).posterior(self._rows)
        pairs = edges(self.d)
        remaining = remaining_uncertainty(
            found.covariance, found.noise, pairs.low, pairs.high, candidates
        )
        return int(candidates[smallest(remaining)])

    def predict(self, known: dict[int, float]) -> FloatArray:
        """Return the posterior mean, clipped to the bounds, with the measured values in place."""
        prediction = np.clip(self.beliefs(known).posterior(self._rows).mean, *self.bounds)
        prediction[list(known)] = list(known.values())
        return prediction

    def beliefs(self, known: dict[int, float]) -> Beliefs:
        """Return the plausible models, given measured cells."""
        cells = np.array(list(known))
        seen = Observations(
            rows=self._rows[cells],
            values=np.array(list(known.values())),
            repeats=np.ones(len(cells), dtype=np.int64),
        )
        rng = np.random.default_rng([self.seed, len(cells)])
        return believe(self._space, seen, rng, settings=self.settings)

    @property
    def _space(self) -> Space:
        return Space(levels=(2,) * self.d)

    @property
    def _rows(self) -> FloatArray:
        return self._space.rows(np.arange(2**self.d))
