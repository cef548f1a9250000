from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay.coordination.challenge import Standing, is_challenger
from outlay.coordination.estimates import estimate, paired_difference, t_upper
from outlay.coordination.noise import Noise

groups = st.lists(st.lists(st.floats(-100, 100), min_size=2, max_size=6), min_size=1, max_size=5)


@given(groups)
def test_the_pooled_variance_is_the_weighted_mean_of_the_groups(values):
    noise = Noise()
    for group in values:
        noise = noise.with_group(group)
    df = sum(len(group) - 1 for group in values)
    pooled = sum(statistics.variance(group) * (len(group) - 1) for group in values) / df
    assert noise.df == df
    assert noise.sd == pytest.approx(math.sqrt(pooled), abs=1e-9)


def test_nothing_is_known_before_something_was_repeated():
    noise = Noise().with_group([1.0]).with_pairs([1.0], [2.0])
    assert noise == Noise()
    assert noise.sd is None
    assert noise.of_pairs() == (0.0, 0)
    assert noise.correlation == 0.0


def test_pairs_must_pair():
    with pytest.raises(ValueError, match="zip"):
        Noise().with_pairs([1.0, 2.0], [1.0])


def test_shared_seeds_show_in_the_pairs():
    rng = random.Random(5)
    apart, together = Noise(), Noise()
    for _ in range(200):
        seeds = [rng.gauss(0, 3) for _ in range(4)]
        own = [[rng.gauss(0, 1) for _ in range(4)] for _ in range(2)]
        together = together.with_pairs(
            *([s + o for s, o in zip(seeds, side, strict=True)] for side in own)
        )
        apart = apart.with_pairs(*([3 * o for o in side] for side in own))
    assert together.correlation == pytest.approx(0.9, abs=0.03)
    assert apart.correlation < 0.1
    assert together.of_pairs().variance == pytest.approx(2.0, rel=0.2)


def test_pairs_take_over_from_single_evaluations():
    noise = Noise().with_group([0.0, 2.0, 4.0])
    assert noise.of_pairs() == (8.0, 2)
    noise = Noise(sum_squares=8.0, df=2, pair_squares=24.0, pair_df=6)
    assert noise.of_pairs() == ((2 * 8.0 + 24.0) / 8, 8)


def test_intervals_of_the_mean():
    interval = estimate([1.0, 2.0, 3.0, 4.0])
    half = 3.182446305 * statistics.stdev([1, 2, 3, 4]) / 2
    assert interval == pytest.approx((2.5, 2.5 - half, 2.5 + half, 4))
    assert estimate([7.0]) == (7.0, None, None, 1)
    assert paired_difference([3.0, 5.0], [1.0, 3.0]) == (2.0, 2.0, 2.0, 2)
    with pytest.raises(ValueError, match="found none"):
        estimate([])


def test_the_upper_point_of_t():
    assert t_upper(0.025, 9) == pytest.approx(2.262157)
    assert t_upper(0.5, 3) == pytest.approx(0.0)


def test_a_challenger_beats_the_champions_mean_by_a_quarter_of_the_noise():
    noise = Noise(sum_squares=4.0, df=4)
    champion = Standing(mean=10.0, selection=12.0)
    assert is_challenger(10.26, champion, noise)
    assert not is_challenger(10.24, champion, noise)
    assert is_challenger(10.01, champion, Noise())
    assert not is_challenger(10.0, champion, Noise())


def test_the_champions_luck_on_the_selection_seed_counts_where_seeds_are_shared():
    """With variance 1 and pairs of variance 0.2, nine tenths of a seed's effect are shared."""
    noise = Noise(sum_squares=100.0, df=100, pair_squares=0.2 * 1000, pair_df=1000)
    lucky = Standing(mean=0.0, selection=2.0)
    assert noise.correlation == pytest.approx(0.9, abs=0.01)
    assert not is_challenger(1.5, lucky, noise)
    assert is_challenger(1.5, Standing(mean=0.0), noise)
    assert is_challenger(2.0, lucky, noise)
