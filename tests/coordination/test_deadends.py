from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay.coordination.deadends import DeadEnds


def test_three_failures_in_a_row_retire_a_direction():
    ends = DeadEnds()
    for _ in range(2):
        ends.record("x", "+", improved=False)
        assert not ends.is_retired("x", "+")
    ends.record("x", "+", improved=False)
    assert ends.is_retired("x", "+")
    assert not ends.is_retired("x", "-")
    assert ends.retired == {("x", "+")}


def test_an_improvement_clears_the_count_but_not_the_retirement():
    ends = DeadEnds(limit=2)
    for improved in (False, True, False):
        ends.record("x", "+", improved)
    assert not ends.is_retired("x", "+")
    ends.record("x", "+", improved=False)
    ends.record("x", "+", improved=True)
    assert ends.is_retired("x", "+")


def test_reopening_forgets_the_failures():
    ends = DeadEnds(limit=2)
    for _ in range(2):
        ends.record("x", "+", improved=False)
    ends.reopen("x", "+")
    ends.record("x", "+", improved=False)
    assert not ends.is_retired("x", "+")
    ends.reopen("never", "seen")


def test_redundant_counts_what_was_tried_after_its_retirement():
    ends = DeadEnds(limit=1)
    for improved in (False, False, True):
        ends.record("x", "+", improved)
    ends.record("y", "+", improved=False)
    assert ends.redundant == 2


def test_a_limit_below_one_is_refused():
    with pytest.raises(ValueError, match="allowed: 1 or more"):
        DeadEnds(limit=0)


@given(st.lists(st.tuples(st.sampled_from("xy"), st.booleans()), max_size=40), st.integers(1, 4))
def test_it_agrees_with_a_look_at_the_whole_history(history, limit):
    ends = DeadEnds(limit)
    for axis, improved in history:
        ends.record(axis, "+", improved)
    for axis in "xy":
        outcomes = "".join("1" if improved else "0" for a, improved in history if a == axis)
        assert ends.is_retired(axis, "+") == ("0" * limit in outcomes)
