from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay.surfaces.cube import (
    bits,
    cell_of,
    conditional_effects,
    edges,
    hamming,
    mask_of,
    pair_interactions,
)


@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_effects_and_interactions_equal_their_definitions(d, seed):
    u = np.random.default_rng(seed).normal(size=2**d)
    value = {mask_of(cell, d): u[cell] for cell in range(2**d)}

    def switched(mask, *on):
        return "".join("1" if i in on else c for i, c in enumerate(mask))

    effects = [
        value[switched(z, i)] - value[z] for i in range(d) for z in sorted(value) if z[i] == "0"
    ]
    assert np.allclose(conditional_effects(u), effects)
    pairs = []
    for i, j in combinations(range(d), 2):
        backgrounds = [z for z in value if z[i] == z[j] == "0"]
        second = [
            value[switched(z, i, j)] - value[switched(z, i)] - value[switched(z, j)] + value[z]
            for z in backgrounds
        ]
        pairs.append(np.mean(second))
    assert np.allclose(pair_interactions(u), pairs)


@pytest.mark.parametrize(("d", "count", "pairs"), [(4, 32, 6), (6, 192, 15)])
def test_counts_of_effects_and_pairs(d, count, pairs):
    assert len(edges(d).low) == count
    assert len(pair_interactions(np.zeros(2**d))) == pairs


def test_first_factor_is_the_most_significant_bit():
    assert mask_of(8, 4) == "1000"
    assert cell_of("1000") == 8
    assert list(bits(4)[8]) == [1, 0, 0, 0]
    assert hamming(4)[cell_of("1010"), cell_of("0110")] == 2
