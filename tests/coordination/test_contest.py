"""The champion and its challengers, and the shares of axes among teams."""

from __future__ import annotations

import pytest

from outlay.coordination.contest import PAIRS, Contest
from outlay.coordination.directions import Directions
from outlay.task import Coordination


def begun(confirmation="sequential"):
    """Return a contest with a champion of value 10 and noise of about 1."""
    contest = Contest(Coordination(confirmation=confirmation))
    contest.noise = contest.noise.with_group([9.0, 10.0, 11.0])
    contest.crown(0, 9.0, [10.0, 11.0])
    return contest


def challenged(contest, differences):
    """Return the last judgement of a challenger with these differences."""
    contest.queue.append(1)
    contest.begin(1)
    for difference in differences:
        contest.add_pair(10.0 + difference, 10.0)
        judgement = contest.judgement()
        if judgement.verdict != "continue":
            break
    return judgement


def test_what_is_known_of_the_champion_leaves_its_selection_score_out():
    contest = begun()
    assert contest.standing.mean == 10.5
    assert contest.standing.selection == 9.0
    assert contest.is_challenger(10.8)
    assert not contest.is_challenger(10.7)


def test_without_confirmation_a_better_selection_score_is_enough():
    assert begun("none").is_challenger(9.1)


def test_a_rejection_uses_a_share_up_and_a_promotion_does_not():
    contest = begun()
    assert challenged(contest, [-5.0]).verdict == "reject"
    contest.close(promoted=False)
    assert (contest.begun, contest.spent) == (1, 1)
    assert challenged(contest, [60.0] * PAIRS).verdict == "promote"
    contest.close(promoted=True)
    assert (contest.begun, contest.spent) == (2, 1)


def test_the_incumbents_pairs_add_to_what_is_known_of_it_and_of_the_noise():
    contest = begun()
    challenged(contest, [0.5, 0.5])
    contest.close(promoted=False)
    assert contest.standing.mean == pytest.approx((10 + 11 + 10 + 10) / 4)
    assert contest.noise.df == 4
    assert contest.noise.pair_df == 1


def test_a_pair_with_a_fault_is_no_evidence():
    contest = begun()
    contest.queue.append(3)
    challenge = contest.begin(3)
    contest.add_pair(None, 10.0)
    assert contest.judgement() is None
    assert challenge.broke
    contest.add_pair(5.0, 10.0)
    assert contest.judgement().pairs == 1


def test_pairs_need_a_challenge():
    contest = begun()
    for act in (lambda: contest.add_pair(1.0, 1.0), lambda: contest.close(promoted=False)):
        with pytest.raises(ValueError, match="challenge"):
            act()


def directions(**settings):
    axes = dict.fromkeys("abcd", ("+", "-"))
    return Directions(axes, Coordination(**{"teams": 2, "stagnation": 4, **settings}))


def fail(found, axis, times):
    for _ in range(times):
        for way in ("+", "-"):
            found.record_outcome(axis, way, improved=False)


def test_a_hand_is_as_it_was_dealt_and_an_order_is_by_effect():
    found = directions()
    for axis, delta in (("a", 0.1), ("c", 3.0)):
        found.record_effect(axis, delta)
    assert found.hand(0) == ["a", "c"]
    assert found.order(0) == ["c", "a"]
    assert directions(ranking=False).order(0) == ["a", "c"]
    assert found.hand(1) == ["b", "d"]


def test_an_axis_is_off_the_table_when_both_its_directions_are_retired():
    found = directions(stagnation=0)
    fail(found, "a", 3)
    assert found.hand(0) == ["c"]
    fail(found, "c", 3)
    assert found.hand(0) == ["b", "d"]
    fail(found, "b", 3)
    fail(found, "d", 3)
    assert found.hand(0) == []
    counted = directions(dead_ends=False, stagnation=0)
    fail(counted, "a", 4)
    assert counted.hand(0) == ["a", "c"]
    assert counted.dead_ends.redundant == 2


def test_stagnation_deals_the_open_axes_again_by_effect():
    found = directions()
    for axis, delta in (("a", 0.1), ("b", 0.2), ("c", 3.0), ("d", 2.0)):
        found.record_effect(axis, delta)
    fail(found, "a", 3)
    assert found.reorganisations > 0
    assert (found.hand(0), found.hand(1)) == (["c", "b"], ["d"])
