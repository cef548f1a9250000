"""What earlier surfaces of the same workflow say about a new one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from outlay.surfaces.mixture import Models, Observations, evidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlay.surfaces.cube import FloatArray, IntArray
    from outlay.surfaces.space import Space

LARGEST_SAMPLE = 64
UNRELATED = 0.2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Earlier:
    """Earlier surfaces over the cells of the new space, each with mean 0 and variance 1.

    Attributes:
        space: The new space.
        table: Standardised values, shape (surfaces, cells).
    """

    space: Space
    table: FloatArray
    _log_priors: dict[bytes, FloatArray] = field(default_factory=dict)

    def shapes(self, rows: IntArray) -> FloatArray:
        """Return the surfaces at rows, shape (k, surfaces), over the root of their number."""
        found: FloatArray = self.table[:, self.space.cells(rows)].T / np.sqrt(len(self.table))
        return found

    def log_prior(self, models: Models) -> FloatArray:
        """Return the log of how plausible each model was on average, mixed with a flat share.

        Computed once for each set of relevances, gates aside, as every purchase asks for it.
        """
        key = models.log_correlation.tobytes()
        if key not in self._log_priors:
            self._log_priors[key] = self._compute_log_prior(models)
        return self._log_priors[key]

    def _compute_log_prior(self, models: Models) -> FloatArray:
        cells = np.arange(self.space.size)
        if len(cells) > LARGEST_SAMPLE:
            cells = np.random.default_rng(0).choice(cells, LARGEST_SAMPLE, replace=False)
        rows, repeats = self.space.rows(cells), np.ones(len(cells), dtype=np.int64)
        flat = np.full(len(models.trust), 1 / len(models.trust))
        mean = np.zeros(len(flat))
        for values in self.table[:, cells]:
            seen = Observations(rows=rows, values=values, repeats=repeats)
            weight = evidence(models, seen).log_weight
            mean += np.exp(weight - np.logaddexp.reduce(weight)) / len(self.table)
        found: FloatArray = np.log((1 - UNRELATED) * mean + UNRELATED * flat)
        return found


def standardise(space: Space, surfaces: Sequence[FloatArray]) -> Earlier | None:
    """Return earlier surfaces (values by cell) as a prior; flat ones are left out."""
    varied = [values for values in surfaces if np.ptp(values) > 0]
    if not varied:
        return None
    table = np.stack([(values - values.mean()) / values.std() for values in varied])
    return Earlier(space=space, table=table)
