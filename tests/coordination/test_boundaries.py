from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import ndtri

from outlay.coordination.boundaries import nominal_levels


def test_one_look_spends_everything():
    assert nominal_levels(0.05, 1, 3.0) == pytest.approx((0.05,))


def test_two_looks_agree_with_the_bivariate_normal_distribution():
    from scipy.stats import multivariate_normal

    first, second = nominal_levels(0.05, 2, 1.0)
    assert first == pytest.approx(0.025)
    upper = [-ndtri(first), -ndtri(second)]
    correlation = np.sqrt(0.5)
    joint = multivariate_normal(cov=[[1, correlation], [correlation, 1]])
    assert 1 - joint.cdf(upper) == pytest.approx(0.05, abs=1e-5)


def test_every_look_spends_its_part():
    """Against simulated random walks; the standard error of a part is about 2e-4."""
    levels = nominal_levels(0.05, 6, 2.0, first=2)
    assert levels[0] == 0.0
    rng = np.random.default_rng(3)
    walks = np.cumsum(rng.standard_normal((400_000, 6)), axis=1) / np.sqrt(np.arange(1, 7))
    bounds = [-ndtri(level) if level else np.inf for level in levels]
    crossed = np.maximum.accumulate(walks > bounds, axis=1).mean(axis=0)
    wanted = [0.0, *(0.05 * (look / 6) ** 2 for look in range(2, 7))]
    assert crossed == pytest.approx(wanted, abs=0.0012)


@pytest.mark.parametrize("error", [0.05, 1e-3, 1e-7])
def test_levels_grow_and_stay_between_the_simple_bounds(error):
    levels = nominal_levels(error, 12, 5.0, first=2)
    assert all(a < b for a, b in itertools.pairwise(levels))
    assert levels[-1] < error < 12 * levels[-1]
