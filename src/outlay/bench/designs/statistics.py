"""The statistics of the benchmark: state means, bootstraps over states, paired tests, ratios."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from outlay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

RESAMPLES, SEED = 5000, 3
RATIO_RESAMPLES, RATIO_SEED = 4000, 7


class Interval(NamedTuple):
    """A mean or ratio with its 95 % percentile-bootstrap interval over states."""

    value: float
    low: float
    high: float


class Contrast(NamedTuple):
    """A paired comparison of two conditions over states.

    Attributes:
        name: What is compared.
        difference: Mean of second minus first, on the 0 to 1 scale.
        low: Lower end of its 95 % bootstrap interval.
        high: Upper end.
        t: Paired t statistic; 0 if no state differs.
        p: Two-sided, unadjusted; 1 if no state differs.
        p_holm: Adjusted within the family of tests.
        dz: Mean difference over the standard deviation of the differences; 0 if none differs.
    """

    name: str
    difference: float
    low: float
    high: float
    t: float
    p: float
    p_holm: float
    dz: float


def state_means(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean over repetitions of each state; scores have shape (states, repetitions).

    Raises:
        InputError: A score is missing; collect the rest first.
    """
    missing = int(np.isnan(scores).sum())
    if missing:
        raise InputError(f"scores: {missing} of {scores.size} replies are missing; collect them")
    return np.asarray(scores.mean(axis=1))


def resampled_states(states: int, resamples: int, seed: int) -> NDArray[np.intp]:
    """Return the indices of a bootstrap over states, shape (resamples, states)."""
    rng = np.random.default_rng(seed)
    return np.asarray(rng.integers(0, states, size=(resamples, states)))


def percentile_interval(value: float, resampled: NDArray[np.float64]) -> Interval:
    """Return a value with the 2.5 and 97.5 percentiles of its resampled values.

    A ratio may be infinite or undefined in a resample; then an end of the interval may be, too.
    """
    with np.errstate(invalid="ignore"):
        low, high = np.percentile(resampled, [2.5, 97.5])
    return Interval(value, float(low), float(high))


def mean_interval(means: NDArray[np.float64], indices: NDArray[np.intp] | None = None) -> Interval:
    """Return the mean over states with its interval.

    Args:
        means: One number for each state.
        indices: Bootstrap indices; by default 5,000 resamples of seed 3.
    """
    if indices is None:
        indices = resampled_states(len(means), RESAMPLES, SEED)
    return percentile_interval(float(means.mean()), means[indices].mean(axis=1))


def contrasts(
    pairs: Sequence[tuple[str, NDArray[np.float64], NDArray[np.float64]]],
    indices: NDArray[np.intp] | None = None,
) -> tuple[Contrast, ...]:
    """Return paired t-tests over states, Holm-adjusted as one family.

    Args:
        pairs: Name, state means of the first condition, state means of the second.
        indices: Bootstrap indices; by default 5,000 resamples of seed 3.
    """
    from scipy.special import stdtr

    rows = []
    for name, first, second in pairs:
        difference = second - first
        spread = float(difference.std(ddof=1))
        interval = mean_interval(difference, indices)
        if spread > 0:
            dz = interval.value / spread
            t = dz * len(difference) ** 0.5
            p = 2 * float(stdtr(len(difference) - 1, -abs(t)))
        else:
            t, p, dz = _without_spread(interval.value)
        rows.append((name, interval, t, p, dz))
    adjusted = holm([p for *_, p, _ in rows])
    return tuple(
        Contrast(name, *interval, t, p, p_holm, dz)
        for (name, interval, t, p, dz), p_holm in zip(rows, adjusted, strict=True)
    )


def _without_spread(difference: float) -> tuple[float, float, float]:
    """Return t, p and dz where every state differs by the same amount."""
    if difference == 0:
        return 0.0, 1.0, 0.0
    endless = float(np.copysign(np.inf, difference))
    return endless, 0.0, endless


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's step-down adjusted p-values (Holm 1979), in the order given."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def relative_increase(
    base: NDArray[np.float64],
    other: NDArray[np.float64],
    indices: NDArray[np.intp] | None = None,
) -> Interval:
    """Return 100 (mean(other) - mean(base)) / mean(base), both resampled by the same states."""
    if indices is None:
        indices = resampled_states(len(base), RESAMPLES, SEED)
    resampled = _ratio(other[indices].mean(axis=1), base[indices].mean(axis=1))
    return percentile_interval(float(_ratio(other.mean(), base.mean())), resampled)


def _ratio(other: NDArray[np.float64], base: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(100 * (other - base) / base)


def retention(
    short: NDArray[np.float64],
    name_only: NDArray[np.float64],
    complete: NDArray[np.float64],
    indices: NDArray[np.intp] | None = None,
) -> Interval:
    """Return the share of the gain that a control keeps, in percent.

    (Q_short - Q_L1) / (Q_L3 - Q_L1) over means of states, with 4,000 paired resamples of seed 7.
    """
    if indices is None:
        indices = resampled_states(len(short), RATIO_RESAMPLES, RATIO_SEED)
    resampled = [x[indices].mean(axis=1) for x in (short, name_only, complete)]
    value = _kept(short.mean(), name_only.mean(), complete.mean())
    return percentile_interval(float(value), _kept(*resampled))


def _kept(
    short: NDArray[np.float64], name_only: NDArray[np.float64], complete: NDArray[np.float64]
) -> NDArray[np.float64]:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(100 * (short - name_only) / (complete - name_only))
