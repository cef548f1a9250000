import numpy as np
import pytest

from outlay.designs.costs import Design, Limit, LinearCost, TableCost
from outlay.designs.outcomes import GaussianOutcomes, GridOutcomes, grid_likelihood
from outlay.designs.posteriors import posterior, updated
from outlay.designs.states import ResearchState, arm_index, paper_limit, target_arm
from outlay.errors import InputError

GOOD = {
    "hypotheses": ("a", "b"),
    "prior": (0.4, 0.6),
    "arms": ("x", "y"),
    "signatures": ((1.0, 0.0), (0.0, 1.0)),
    "limits": (paper_limit(8),),
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prior": (0.4, 0.7)}, "sums to 1.1, 0.1 above 1"),
        ({"prior": (0.4, 0.5)}, "sums to 0.9, 0.1 below 1"),
        ({"prior": (0.4, 0.3, 0.3)}, "found 3 numbers, allowed: 2"),
        ({"prior": (-0.5, 1.5)}, "from 0 to 1"),
        ({"prior": (float("nan"), 1.0)}, "from 0 to 1"),
        ({"hypotheses": ("a", "a")}, "'a' is named twice"),
        ({"hypotheses": ("a",), "prior": (1.0,)}, "at least 2"),
        ({"arms": ()}, "arms: found 0"),
        ({"signatures": ((1.0, 0.0),)}, "found 1 rows, allowed: 2"),
        ({"signatures": ((1.0,), (0.0, 1.0))}, "signatures: a"),
        ({"signatures": ((1.0, float("inf")), (0.0, 1.0))}, r"within 1e\+50"),
        ({"seeds": (0, 4)}, "found 0 to 4"),
        ({"seeds": (5, 4)}, "found 5 to 4"),
        ({"limits": ()}, "at least one resource"),
        ({"limits": (Limit(budget=1, cost=LinearCost(per_arm=(1.0,))),)}, "per_arm: found 1"),
        (
            {"limits": (Limit(budget=1, cost=TableCost(prices={Design((7,), 2): 1.0})),)},
            "found 7",
        ),
    ],
)
def test_wrong_states_say_what_is_wrong(change, message):
    with pytest.raises(InputError, match=message):
        ResearchState(**(GOOD | change))


@pytest.mark.parametrize(
    "outcomes",
    [{"noise": 0}, {"values": (0.5,)}, {"values": (1.0, 0.0)}, {"values": (0.0, float("nan"))}],
)
def test_wrong_outcomes(outcomes):
    with pytest.raises(InputError, match="outcomes"):
        GridOutcomes(**outcomes)


def test_normal_outcomes_have_means_anywhere():
    state = ResearchState(
        **(GOOD | {"signatures": ((1.9, 0), (0, -2)), "outcomes": GaussianOutcomes()})
    )
    assert state.means.max() == 1.9


def test_wrong_noise():
    with pytest.raises(InputError, match="noise"):
        GaussianOutcomes(noise=-1)


def test_arms_by_name_and_target():
    state = ResearchState(**GOOD)
    assert arm_index(state, "y") == 1
    assert target_arm(state) == 1
    with pytest.raises(InputError, match="found 'z', allowed: x, y"):
        arm_index(state, "z")


def test_posterior_is_bayes_rule():
    state = ResearchState(**GOOD)
    design = Design((0, 1), 8)
    likelihood = grid_likelihood(state.means, state.outcomes.values, 0.55 * (5 / 8) ** 0.5)
    weights = [0.4 * likelihood[0, 0, 4] * likelihood[0, 1, 1]]
    weights.append(0.6 * likelihood[1, 0, 4] * likelihood[1, 1, 1])
    expected = np.array(weights) / sum(weights)
    assert posterior(state, design, (1.0, 0.25)) == pytest.approx(expected, abs=1e-14)
    assert updated(state, design, (1.0, 0.25)).prior == pytest.approx(expected)


def test_posterior_of_normal_outcomes():
    state = ResearchState(**GOOD, outcomes=GaussianOutcomes(noise=2.0))
    ratio = 0.4 / 0.6 * np.exp((2 * 0.9 - 1) / (2 * 4 / 9))
    assert posterior(state, Design((0,), 9), (0.9,))[0] == pytest.approx(ratio / (1 + ratio))


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        ((0.3,), r"found 0.3, allowed: 0, 0.25, 0.5, 0.75, 1; .*\"gaussian\""),
        ((1, 1), "found 2 numbers"),
    ],
)
def test_wrong_outcome_values(outcome, message):
    with pytest.raises(InputError, match=message):
        posterior(ResearchState(**GOOD), Design((0,), 3), outcome)


def test_normal_outcomes_must_be_finite():
    state = ResearchState(**GOOD, outcomes=GaussianOutcomes())
    with pytest.raises(InputError, match="finite"):
        posterior(state, Design((0,), 3), (float("nan"),))


@pytest.mark.parametrize(
    "design", [Design((), 3), Design((1, 0), 3), Design((2,), 3), Design((0,), 13)]
)
def test_designs_that_do_not_exist(design):
    with pytest.raises(InputError):
        posterior(ResearchState(**GOOD), design, (0.5,) * len(design.arms))


def test_a_hypothesis_that_is_ruled_out_stays_out():
    state = ResearchState(**(GOOD | {"prior": (0.0, 1.0)}))
    assert posterior(state, Design((0,), 12), (1.0,)).tolist() == [0.0, 1.0]
