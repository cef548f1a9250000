from __future__ import annotations

import numpy as np
import pytest

from outlay.surfaces.factors import read_factors
from outlay.surfaces.measurements import Measurement, Noise, observations

FACTORS = read_factors(["a", "b"])


def taken(a, value, seed=None):
    return Measurement(config={"a": a, "b": False}, metrics={"value": value}, seed=seed)


def test_repeats_tell_the_noise_and_add_to_what_is_known():
    found = [taken(False, 1.0), taken(False, 3.0), taken(True, 5.0)]
    seen = observations(FACTORS, found, "value", Noise())
    assert seen.values.tolist() == [2.0, 5.0]
    assert (seen.noise_squares, seen.noise_df) == (2.0, 1)
    seen = observations(FACTORS, found, "value", Noise(0.5, 4))
    assert (seen.noise_squares, seen.noise_df) == (3.0, 5)
    exact = observations(FACTORS, found, "value")
    assert (exact.noise_squares, exact.noise_df) == (0.0, 0)


def test_what_a_seed_does_to_every_configuration_is_no_noise():
    shift = {1: 0.0, 2: 10.0, 3: -4.0}
    same = [taken(a, 1.0 + a + shift[seed], seed) for a in (False, True) for seed in shift]
    seen = observations(FACTORS, same, "value", Noise())
    assert seen.noise_squares == pytest.approx(0.0, abs=1e-9)
    assert seen.noise_df == 2
    rng = np.random.default_rng(0)
    many = read_factors({"a": list(range(40)), "b": [0, 1]})
    noisy = [
        Measurement(config={"a": a, "b": 0}, metrics={"value": shift[s] + rng.normal()}, seed=s)
        for a in range(40)
        for s in shift
    ]
    seen = observations(many, noisy, "value", Noise())
    assert seen.noise_df == 78
    assert seen.noise_squares / seen.noise_df == pytest.approx(1.0, abs=0.3)


def test_one_measurement_each_tells_nothing_of_the_noise():
    found = [taken(False, 1.0, 1), taken(True, 2.0, 1)]
    assert observations(FACTORS, found, "value", Noise()).noise_df == 0
