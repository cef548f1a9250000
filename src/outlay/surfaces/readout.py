"""Numbers with intervals read from beliefs: cells, conditional effects and weighted sums."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from outlay.coordination.estimates import t_upper
from outlay.surfaces.beliefs import CHUNK
from outlay.surfaces.intervals import NORMAL, SUM_SHARE, Typical, half_width, typical_share

if TYPE_CHECKING:
    from collections.abc import Mapping

    from outlay.surfaces.beliefs import Beliefs
    from outlay.surfaces.cube import BoolArray, Edges, FloatArray, IntArray
    from outlay.surfaces.mixture import Posterior
    from outlay.surfaces.space import Space

FEWEST_EQUAL = 3
ROUNDING = 1e-12


class Reading(NamedTuple):
    """Means, half-widths of 90 % intervals, and whether each rests on measurements alone."""

    mean: FloatArray
    width: FloatArray
    measured: BoolArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Readout:
    """Reads beliefs about a space; measured values stand as they are unless they are noisy.

    Attributes:
        space: Factors and levels.
        beliefs: Plausible models.
        exact: Measured value by cell.
        noisy: Whether measured values carry noise.
        seed: Seed of the sample that sets the typical variance of a large space.
    """

    space: Space
    beliefs: Beliefs
    exact: dict[int, float]
    noisy: bool
    seed: int

    def posterior(self, cells: IntArray) -> Posterior:
        """Return what is believed about the cells, before measured values are put in place."""
        if self.space.size > CHUNK:
            return self.beliefs.posterior(self.space.rows(cells))
        found = self._everywhere
        return found._replace(
            mean=found.mean[cells], covariance=found.covariance[np.ix_(cells, cells)]
        )

    @cached_property
    def _everywhere(self) -> Posterior:
        return self.beliefs.posterior(self.space.rows(np.arange(self.space.size)))

    def cells(self, cells: IntArray) -> Reading:
        """Return the value of each cell."""
        means, variances = [], []
        for start in range(0, len(cells), CHUNK):
            found = self.posterior(cells[start : start + CHUNK])
            means.append(found.mean)
            variances.append(np.diagonal(found.covariance))
        mean, measured = np.concatenate(means), np.isin(cells, list(self.exact))
        alone = self._alone(cells, found.noise)
        width = self._half(np.concatenate(variances), self.added.cell, measured, alone)
        if not self.noisy:
            mean = self._with_measured(cells, mean)
        return Reading(mean, width, measured)

    def effects(self, pairs: Edges) -> Reading:
        """Return each conditional effect."""
        means, variances, half = [], [], CHUNK // 2
        for start in range(0, len(pairs.low), half):
            ends = np.concatenate([part[start : start + half] for part in pairs[:2]])
            found, count = self.posterior(ends), len(ends) // 2
            mean = found.mean if self.noisy else self._with_measured(ends, found.mean)
            means.append(mean[count:] - mean[:count])
            place = np.arange(count)
            variances.append(_difference_variance(found.covariance, place, place + count))
        known = list(self.exact)
        measured = np.isin(pairs.low, known) & np.isin(pairs.high, known)
        alone = self._alone(pairs.low, found.noise) + self._alone(pairs.high, found.noise)
        width = self._half(np.concatenate(variances), self.added.effect, measured, alone)
        return Reading(self._rounded(np.concatenate(means)), width, measured)

    def weighted_sum(self, parts: list[tuple[float, IntArray]]) -> tuple[float, float]:
        """Return mean and half-width of the sum of weight times mean over each part's cells."""
        everything = np.concatenate([at for _, at in parts])
        share = np.concatenate([np.full(len(at), weight / len(at)) for weight, at in parts])
        cells, back = np.unique(everything, return_inverse=True)
        weights: FloatArray = np.bincount(back, share, len(cells)).astype(np.float64)
        found = self.posterior(cells)
        mean = found.mean if self.noisy else self._with_measured(cells, found.mean)
        added = SUM_SHARE * sum(abs(weight) for weight, _ in parts) * self.added.effect
        total = self._rounded(np.array([weights @ mean]))[0]
        return float(total), self._half_of_sum(cells, weights, found, added)

    def contrast(self, weights: Mapping[int, float]) -> tuple[float, float]:
        """Return mean and half-width of a weighted sum of a few cells."""
        cells, weight = np.array(list(weights)), np.array(list(weights.values()))
        mean, is_open = self.cells(cells).mean, ~np.isin(cells, list(self.exact))
        added = float((weight[is_open] ** 2).sum()) * self.added.cell if is_open.any() else 0.0
        width = self._half_of_sum(cells, weight, self.posterior(cells), added)
        return float(weight @ mean), width

    def _half_of_sum(
        self, cells: IntArray, weights: FloatArray, found: Posterior, added: float
    ) -> float:
        """Return the half-width of a weighted sum of cells.

        The variance has two parts: what would be left if the measured cells were known exactly,
        which gets the multiple and the addition of what is predicted, and the noise of the rest.
        """
        known = np.isin(cells, list(self.exact))
        if not self.noisy:
            weights = np.where(known, 0.0, weights)
        whole = float(weights @ found.covariance @ weights)
        if known.all():
            alone = (weights**2 * self._alone(cells, found.noise)).sum()
            return float(self._half(np.array([whole]), 0.0, np.array([True]), alone)[0])
        predicted = whole
        if self.noisy and known.any():
            predicted = min(_once_known(found.covariance, weights, known), whole)
        width = self._half(np.array([predicted]), added, np.array([False]))[0]
        return float(np.hypot(width, NORMAL * np.sqrt(whole - predicted)))

    def _alone(self, cells: IntArray, noise: float) -> FloatArray:
        """Return the variance of each cell's measured mean by itself, 0 where there is none."""
        return noise * np.array([self._per_noise.get(cell, 0.0) for cell in cells.tolist()])

    @cached_property
    def _per_noise(self) -> dict[int, float]:
        return dict(zip(self.exact, 1 / self.beliefs.seen.repeats, strict=True))

    @cached_property
    def added(self) -> Typical:
        """Variance added to each open cell and effect (see `intervals.py`).

        It is infinite while the measurements say nothing about the scale of the surface.
        """
        if self.space.size <= CHUNK:
            backgrounds = np.arange(self.space.size)
        else:
            count = max(2, CHUNK // (2 * self.space.d))
            backgrounds = np.random.default_rng(self.seed).integers(0, self.space.size, count)
        if len(set(self.exact.values())) < 2 and len(self.exact) < FEWEST_EQUAL:
            return Typical(np.inf, np.inf)
        pairs = self.space.effects_at(backgrounds)
        cells = np.unique(np.concatenate(pairs[:2]))
        low, high = np.searchsorted(cells, pairs.low), np.searchsorted(cells, pairs.high)
        covariance = self.posterior(cells).covariance
        known = np.isin(cells, list(self.exact))
        effect = _difference_variance(covariance, low, high)[~(known[low] & known[high])]
        cell = np.diagonal(covariance)[~known]
        share = typical_share(len(self.exact), self.space.size)
        return Typical(*(share * float(p.mean()) if len(p) else 0.0 for p in (cell, effect)))

    def _half(
        self,
        variance: FloatArray,
        added: float,
        measured: BoolArray,
        alone: FloatArray | float = 0.0,
    ) -> FloatArray:
        """Return half-widths; without noise, what rests on measurements alone has none.

        Under noise the models shrink what they see, so there the variance is at least that of the
        measured means alone, and the quantile tells how well the noise is known.
        """
        found = half_width(variance, added, len(self.exact))
        if not self.noisy:
            return np.where(measured, 0.0, found)
        df = self.beliefs.seen.noise_df
        quantile = t_upper(0.05, df) if df else NORMAL
        noise_only: FloatArray = quantile * np.sqrt(np.maximum(variance, alone))
        return np.where(measured, noise_only, found)

    def _rounded(self, differences: FloatArray) -> FloatArray:
        """Return differences with what is rounding at 0: exact ones would be told from it."""
        size = abs(self.beliefs.centre) + self.beliefs.spread
        return np.where(np.abs(differences) <= ROUNDING * size, 0.0, differences)

    def _with_measured(self, cells: IntArray, mean: FloatArray) -> FloatArray:
        return np.array(
            [self.exact.get(cell, m) for cell, m in zip(cells.tolist(), mean, strict=True)]
        )


def _difference_variance(covariance: FloatArray, low: IntArray, high: IntArray) -> FloatArray:
    own = np.diagonal(covariance)
    return np.maximum(own[low] + own[high] - 2 * covariance[low, high], 0.0)


def _once_known(covariance: FloatArray, weights: FloatArray, known: BoolArray) -> float:
    """Return the variance of a weighted sum that is left once the known cells are exact."""
    cross = covariance[np.ix_(~known, known)]
    rest = covariance[np.ix_(~known, ~known)]
    rest = rest - cross @ np.linalg.pinv(covariance[np.ix_(known, known)]) @ cross.T
    return max(float(weights[~known] @ rest @ weights[~known]), 0.0)
