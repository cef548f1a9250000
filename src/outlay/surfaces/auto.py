"""The default method on the cube of binary factors, as the benchmark uses it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from outlay.surfaces.beliefs import Assumptions, Beliefs, believe
from outlay.surfaces.cube import FloatArray, bits, edges
from outlay.surfaces.mixture import Observations
from outlay.surfaces.purchase import remaining_uncertainty, smallest


@dataclass(frozen=True, slots=True, kw_only=True)
class Auto:
    """Purchases and predictions of the default, for cubes small enough to list every cell.

    Attributes:
        given: What is taken as given; every factor has two levels.
        bounds: Predictions are clipped to these.
        seed: Seed of the sample of models that large cubes need.
    """

    given: Assumptions
    bounds: tuple[float, float]
    seed: int = 0

    def next(self, known: dict[int, float]) -> int | None:
        """Return the cell that leaves the conditional effects least uncertain in sum."""
        d = self.given.space.d
        candidates = np.setdiff1d(np.arange(2**d), list(known))
        if not len(candidates):
            return None
        found = self.beliefs(known, fading=False).posterior(bits(d))
        pairs = edges(d)
        remaining = remaining_uncertainty(
            found.covariance, found.noise, pairs.low, pairs.high, candidates
        )
        return int(candidates[smallest(remaining)])

    def predict(self, known: dict[int, float]) -> FloatArray:
        """Return the posterior mean, clipped to the bounds, with the measured values in place."""
        posterior = self.beliefs(known, fading=True).posterior(bits(self.given.space.d))
        prediction = np.clip(posterior.mean, *self.bounds)
        prediction[list(known)] = list(known.values())
        return prediction

    def beliefs(self, known: dict[int, float], *, fading: bool) -> Beliefs:
        """Return the plausible models, given measured cells."""
        cells = np.array(list(known))
        seen = Observations(
            rows=bits(self.given.space.d)[cells],
            values=np.array(list(known.values())),
            repeats=np.ones(len(cells), dtype=np.int64),
        )
        rng = np.random.default_rng([self.seed, len(cells)])
        return believe(self.given, seen, rng, fading=fading)
