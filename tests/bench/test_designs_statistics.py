from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

from outlay.bench.designs.statistics import (
    contrasts,
    holm,
    mean_interval,
    percentile_interval,
    relative_increase,
    resampled_states,
    retention,
    state_means,
)
from outlay.errors import InputError

# Three states by two repetitions; every figure below was worked out by hand.
L1 = np.array([[0, 0], [Fraction(1, 4), Fraction(1, 4)], [0, Fraction(1, 2)]], dtype=float)
L3 = np.array([[1, 1], [1, 0], [Fraction(3, 4), Fraction(3, 4)]], dtype=float)
SHORT = np.array([[1, 0], [1, 0], [1, 1]], dtype=float)


def test_state_means_as_fractions():
    assert state_means(L1).tolist() == [0, Fraction(1, 4), Fraction(1, 4)]
    assert state_means(L3).tolist() == [1, Fraction(1, 2), Fraction(3, 4)]


def test_a_missing_reply_is_not_a_zero():
    with pytest.raises(InputError, match="1 of 4 replies are missing"):
        state_means(np.array([[0.0, np.nan], [1.0, 1.0]]))


def test_a_contrast_as_fractions():
    # differences 1, 1/4, 1/2: mean 7/12, variance ((5/12)^2 + (4/12)^2 + (1/12)^2) / 2 = 7/48
    (found,) = contrasts([("L1 to L3", state_means(L1), state_means(L3))])
    assert found.difference == pytest.approx(float(Fraction(7, 12)), abs=1e-15)
    assert found.dz**2 == pytest.approx(float(Fraction(7, 12) ** 2 / Fraction(7, 48)), abs=1e-12)
    assert found.dz**2 == pytest.approx(float(Fraction(7, 3)), abs=1e-12)
    assert found.t**2 == pytest.approx(7, abs=1e-12)
    # two degrees of freedom: p = 1 - t / sqrt(2 + t^2)
    assert found.p == pytest.approx(1 - sqrt(7) / 3, abs=1e-12)
    assert found.p_holm == found.p


def test_increase_and_retention_as_fractions():
    # means: L1 1/6, L3 3/4, short 2/3
    a, b, c = (state_means(x) for x in (L1, L3, SHORT))
    assert relative_increase(a, b).value == pytest.approx(350)
    assert retention(c, a, b, np.array([[0, 1, 2]])).value == pytest.approx(
        float(100 * Fraction(1, 2) / Fraction(7, 12))
    )


def test_conditions_that_do_not_differ():
    same = np.array([0.1, 0.2, 0.3])
    (found,) = contrasts([("same", same, same)])
    assert (found.t, found.p, found.dz) == (0, 1, 0)
    (found,) = contrasts([("shifted", same * 0, same * 0 + 0.5)])
    assert found.p == 0
    assert np.isinf(found.dz)


def _slow_percentile(values, share):
    """The linear percentile, written out."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def test_bootstraps_equal_an_independent_routine_on_the_same_indices():
    a, b, c = (state_means(x) for x in (L1, L3, SHORT))
    indices = resampled_states(3, 5000, 3)
    assert indices.shape == (5000, 3)
    assert set(np.unique(indices)) == {0, 1, 2}
    slow = [sum(b[i] for i in row) / 3 for row in indices.tolist()]
    found = mean_interval(b)
    assert found.low == pytest.approx(_slow_percentile(slow, 0.025), abs=1e-14)
    assert found.high == pytest.approx(_slow_percentile(slow, 0.975), abs=1e-14)
    kept = np.array([[0, 1, 2], [1, 1, 2], [2, 2, 1]])  # L1 and L3 differ in each resample
    slow = [
        100 * sum(c[i] - a[i] for i in row) / sum(b[i] - a[i] for i in row)
        for row in kept.tolist()
    ]
    found = retention(c, a, b, kept)
    assert found.low == pytest.approx(_slow_percentile(slow, 0.025), abs=1e-11)
    slow = [100 * sum(b[i] - a[i] for i in row) / sum(a[i] for i in row) for row in kept.tolist()]
    found = relative_increase(a, b, kept)
    assert found.high == pytest.approx(_slow_percentile(slow, 0.975), abs=1e-11)


def test_default_resamples_are_the_papers():
    values = np.array([0.2, 0.9, 0.4, 0.4])
    indices = np.random.default_rng(3).integers(0, 4, size=(5000, 4))
    expected = percentile_interval(float(values.mean()), values[indices].mean(axis=1))
    assert mean_interval(values) == expected
    indices = np.random.default_rng(7).integers(0, 4, size=(4000, 4))
    assert retention(values, values * 0, values + 0.1) == retention(
        values, values * 0, values + 0.1, indices
    )


def test_holm_against_statsmodels():
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    rng = np.random.default_rng(0)
    for size in (1, 2, 12):
        p_values = list(rng.random(size) ** 3)
        expected = multitest.multipletests(p_values, method="holm")[1]
        assert holm(p_values) == pytest.approx(expected, abs=1e-15)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []
