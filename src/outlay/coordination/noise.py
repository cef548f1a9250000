"""How noisy one evaluation is, pooled over everything that was measured more than once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_SINGLE_DF = 8  # single evaluations speak for pairs with at most this many degrees of freedom


class Variance(NamedTuple):
    """A variance estimate with its degrees of freedom; 0 and 0 while unknown."""

    variance: float
    df: int


@dataclass(frozen=True, slots=True)
class Noise:
    """Pooled variances of single evaluations and of paired differences.

    Each group (one configuration on several seeds) adds its sum of squared deviations from its
    own mean; groups may differ in mean. Nothing is known while the degrees of freedom are 0.

    Attributes:
        sum_squares: Sum of squared deviations of single evaluations, in squared metric units.
        df: Degrees of freedom of `sum_squares`.
        pair_squares: The same for differences of two configurations on the same seed. They tell
            how far a shared seed cancels: without it their variance is twice that of one.
        pair_df: Degrees of freedom of `pair_squares`.
    """

    sum_squares: float = 0.0
    df: int = 0
    pair_squares: float = 0.0
    pair_df: int = 0

    @property
    def sd(self) -> float | None:
        """Standard deviation of one evaluation; `None` while unknown."""
        return math.sqrt(self.sum_squares / self.df) if self.df else None

    def of_singles(self) -> Variance:
        """Return the variance of one evaluation."""
        return Variance(self.sum_squares / self.df, self.df) if self.df else Variance(0.0, 0)

    def of_pairs(self) -> Variance:
        """Return the variance of the difference of two evaluations that share a seed.

        Twice the variance of one is a prior worth a few degrees of freedom (right where seeds do
        not matter, too large where they do); pairs that were measured take over from there.
        """
        prior_df = min(self.df, _SINGLE_DF)
        df = prior_df + self.pair_df
        if not df:
            return Variance(0.0, 0)
        prior = 2 * self.of_singles().variance
        return Variance((prior_df * prior + self.pair_squares) / df, df)

    @property
    def correlation(self) -> float:
        """How much of the noise of two evaluations on one seed is shared, in [0, 1]."""
        single = self.of_singles().variance
        return min(max(1 - self.of_pairs().variance / (2 * single), 0.0), 1.0) if single else 0.0

    def with_group(self, values: Sequence[float]) -> Noise:
        """Return the noise with one more group: one configuration on several seeds."""
        if len(values) < 2:
            return self
        return Noise(
            self.sum_squares + squared_deviations(values),
            self.df + len(values) - 1,
            self.pair_squares,
            self.pair_df,
        )

    def with_pairs(self, challenger: Sequence[float], incumbent: Sequence[float]) -> Noise:
        """Return the noise with two groups more that were evaluated on the same seeds.

        Raises:
            ValueError: The two differ in length.
        """
        differences = [a - b for a, b in zip(challenger, incumbent, strict=True)]
        if len(differences) < 2:
            return self
        single = self.with_group(challenger).with_group(incumbent)
        return Noise(
            single.sum_squares,
            single.df,
            self.pair_squares + squared_deviations(differences),
            self.pair_df + len(differences) - 1,
        )


def squared_deviations(values: Sequence[float]) -> float:
    """Return the sum of squared deviations from the mean of at least one value."""
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values)
