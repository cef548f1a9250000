from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlay.coordination import confirmation
from outlay.coordination.confirmation import Band, Evidence, Sequential, judge
from outlay.coordination.noise import Noise

NOISE = Noise(sum_squares=20.0, df=20, pair_squares=40.0, pair_df=20)
values = st.lists(st.floats(-50, 50), min_size=1, max_size=12)


def evidence(differences, *, noise=NOISE, index=0):
    return Evidence(
        challenger=tuple(differences),
        incumbent=(0.0,) * len(differences),
        noise=noise,
        index=index,
    )


# The testbed's rule.


def test_the_band_is_the_published_formula():
    carried = Evidence(
        challenger=(1.0, 1.1, 1.2), incumbent=(1.05,), noise=Noise(), source="carried"
    )
    judgement = judge(carried, Band(scale=0.02))
    half = 2 * 0.02 / math.sqrt(3)
    assert judgement.verdict == "promote"
    assert judgement.low == pytest.approx(0.05 - half)
    assert judge(carried, Band(scale=0.05)).verdict == "reject"


def test_a_band_of_both_errors_is_wider_by_the_root_of_two():
    challenger, incumbent = (1.0, 1.1, 1.2), (1.05, 1.05, 1.05)
    both = judge(
        Evidence(challenger=challenger, incumbent=incumbent, noise=Noise()), Band(scale=0.02)
    )
    assert both.estimate - both.low == pytest.approx(2 * 0.02 * math.sqrt(2 / 3))


def test_the_band_waits_for_its_seeds_and_takes_the_pooled_noise():
    assert judge(evidence([5.0, 5.0]), Band()).verdict == "continue"
    assert judge(evidence([5.0] * 3), Band()).verdict == "promote"
    assert judge(evidence([1.0] * 3), Band()).verdict == "reject"
    with pytest.raises(ValueError, match="a scale"):
        judge(evidence([1.0] * 3, noise=Noise()), Band())


def test_without_a_band_any_gain_is_enough_but_no_tie():
    off = Band(factor=0.0, seeds=1, scale=0.02)
    assert judge(evidence([1e-9]), off).verdict == "promote"
    assert judge(evidence([0.0]), off).verdict == "reject"


# The sequential rule.


def test_a_large_gain_is_promoted_and_a_loss_rejected_early():
    assert judge(evidence([12.0]), Sequential()).verdict == "continue"
    assert judge(evidence([12.0, 12.5]), Sequential()).verdict == "promote"
    assert judge(evidence([-4.0]), Sequential()).verdict == "reject"


def test_the_last_pair_always_decides():
    close = [1.2] * 12
    verdicts = {judge(evidence(close[:n], index=500), Sequential()).verdict for n in (11, 12)}
    assert judge(evidence(close, index=500), Sequential()).verdict == "reject"
    assert "promote" not in verdicts
    with pytest.raises(ValueError, match="at most 12"):
        judge(evidence([1.0] * 13), Sequential())


def test_a_program_without_noise_needs_two_pairs():
    still = Noise(sum_squares=0.0, df=2)
    assert judge(evidence([0.1], noise=still), Sequential()).verdict == "continue"
    assert judge(evidence([0.1, 0.1], noise=still), Sequential()).verdict == "promote"
    assert judge(evidence([0.0], noise=still), Sequential()).verdict == "reject"


def test_without_any_noise_estimate_the_pairs_have_to_show_it():
    unknown = Noise()
    first = judge(evidence([3.0], noise=unknown), Sequential())
    assert first.verdict == "continue"
    assert first.low == -math.inf
    assert judge(evidence([3.0, 3.1], noise=unknown), Sequential()).verdict == "continue"
    many = [3.0, 3.1, 2.9, 3.05, 2.95, 3.02]
    assert judge(evidence(many, noise=unknown), Sequential()).verdict == "promote"


def test_one_outlier_does_not_promote():
    for n in range(2, 12):
        quiet = [0.0] * (n - 1)
        assert judge(evidence([*quiet, 40.0]), Sequential()).verdict != "promote"


def test_the_shares_of_all_challengers_add_up_to_one():
    shares = [confirmation._share(index) for index in range(200_000)]
    assert sum(shares) == pytest.approx(1.0, abs=1e-6)
    assert sum(shares) < 1.0
    assert all(a > b for a, b in itertools.pairwise(shares))


def test_later_challengers_meet_a_higher_hurdle():
    lows = [judge(evidence([1.5] * 6, index=i), Sequential()).low for i in (0, 10, 100)]
    assert lows == sorted(lows, reverse=True)
    assert len(set(lows)) == 3


def test_a_carried_incumbent_counts_the_error_of_one_side():
    noise = Noise(sum_squares=20.0, df=20)
    one = Evidence(challenger=(3.0,) * 4, incumbent=(0.0,), noise=noise, source="carried")
    two = Evidence(challenger=(3.0,) * 4, incumbent=(0.0,) * 4, noise=noise)
    narrow, wide = judge(one, Sequential()), judge(two, Sequential())
    assert narrow.estimate == wide.estimate == 3.0
    assert narrow.estimate - narrow.low < wide.estimate - wide.low


@pytest.mark.parametrize(
    ("challenger", "incumbent", "source"),
    [((), (), "remeasured"), ((1.0, 2.0), (1.0,), "remeasured"), ((1.0,), (1.0, 2.0), "carried")],
)
def test_values_that_do_not_pair_are_refused(challenger, incumbent, source):
    wrong = Evidence(challenger=challenger, incumbent=incumbent, noise=NOISE, source=source)
    with pytest.raises(ValueError, match=r"found|zip|unpack"):
        judge(wrong, Sequential())


@given(values, st.floats(0.01, 100), st.floats(-100, 100))
@settings(deadline=None)
def test_units_and_origin_do_not_matter(differences, unit, origin):
    plain = judge(evidence(differences), Sequential())
    moved = judge(
        Evidence(
            challenger=tuple(unit * d + origin for d in differences),
            incumbent=(origin,) * len(differences),
            noise=Noise(
                *(
                    x * unit**2 if i % 2 == 0 else x
                    for i, x in enumerate(
                        (NOISE.sum_squares, NOISE.df, NOISE.pair_squares, NOISE.pair_df)
                    )
                )
            ),
        ),
        Sequential(),
    )
    if abs(plain.low) > 1e-6:  # at the boundary itself rounding decides
        assert (moved.verdict == "promote") == (plain.verdict == "promote")
    if math.isfinite(plain.low):
        assert moved.low == pytest.approx(unit * plain.low, rel=1e-5, abs=1e-5 * unit)


@given(values)
@settings(deadline=None)
def test_promoted_exactly_if_the_interval_lies_above_zero(differences):
    for rule in (Sequential(), Band(scale=1.0, seeds=1)):
        judgement = judge(evidence(differences), rule)
        assert (judgement.verdict == "promote") == (judgement.low > 0)
        assert judgement.low <= judgement.estimate <= judgement.high
        assert judgement.pairs == len(differences)


@given(st.permutations([1.0, 2.0, 4.0, -1.0, 0.5]))
@settings(deadline=None)
def test_the_order_of_the_pairs_does_not_matter(differences):
    assert judge(evidence(differences), Sequential()) == judge(
        evidence(sorted(differences)), Sequential()
    )


def test_one_challenger_crosses_with_its_share_of_the_rate_at_most():
    """Twelve pairs without giving up, known noise: 5 % of the walks, within 3 standard errors."""
    rng = random.Random(11)
    known = Noise(sum_squares=1e6, df=10**6, pair_squares=2e6, pair_df=10**6)
    rate, runs = 0.05 / confirmation._share(0), 2000
    hits = 0
    for _ in range(runs):
        differences: list[float] = []
        for _ in range(12):
            differences.append(rng.gauss(0, math.sqrt(2)))
            judgement = judge(
                evidence(differences, noise=known), Sequential(error_rate=min(rate, 0.49))
            )
            if judgement.verdict == "promote":
                hits += 1
                break
    expected = min(rate, 0.49) * confirmation._share(0)
    assert hits / runs < expected + 3 * math.sqrt(expected / runs)
    assert hits / runs > expected / 4
