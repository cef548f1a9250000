"""Ranking, teams and stagnation: in which order things are tried, by whom, and when to change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay.coordination.ranking import Ranking
from outlay.coordination.stagnation import Stagnation
from outlay.coordination.teams import deal


def test_untried_axes_come_first_then_the_largest_mean_effect():
    ranking = Ranking()
    ranking.record("a", 1.0)
    ranking.record("a", -3.0)
    ranking.record("c", -2.5)
    assert ranking.order(["a", "b", "c", "d"]) == ["b", "d", "c", "a"]
    assert ranking.effect("a") == 2.0
    assert ranking.effect("b") is None


def test_ties_keep_the_given_order_and_a_zero_effect_is_not_untried():
    ranking = Ranking()
    for axis in "abc":
        ranking.record(axis, 0.0)
    assert ranking.order(["c", "a", "d", "b"]) == ["d", "c", "a", "b"]


def test_hands_are_dealt_in_turn():
    assert deal(["a", "b", "c", "d"], 3) == (("a", "d"), ("b",), ("c",))
    assert deal(["a"], 3) == (("a",), (), ())
    with pytest.raises(ValueError, match="teams: found 0"):
        deal(["a"], 0)


@given(st.lists(st.text(max_size=3), unique=True), st.integers(1, 5))
def test_dealing_loses_nobody(axes, teams):
    hands = deal(axes, teams)
    assert sorted(axis for hand in hands for axis in hand) == sorted(axes)
    assert max(map(len, hands)) - min(map(len, hands)) <= 1


def test_stagnation_fires_from_the_window_on_until_something_improves():
    stagnation = Stagnation(3)
    outcomes = [False, False, False, False, True, False, False, False]
    assert [stagnation.record(o) for o in outcomes] == [
        False, False, True, True, False, False, False, True,
    ]  # fmt: skip


def test_a_window_of_zero_never_fires():
    assert not any(Stagnation(0).record(False) for _ in range(50))
    with pytest.raises(ValueError, match="window"):
        Stagnation(-1)
