import numpy as np
import pytest

from outlay.designs.assessment import assess
from outlay.designs.costs import Limit, LinearCost
from outlay.designs.outcomes import GridOutcomes
from outlay.designs.planning import design
from outlay.designs.states import paper_limit
from outlay.designs.worth import beats_all_before, best_first, cheapest_first, why_nothing
from tests.designs.test_designs_information import state_of


def test_rounding_does_not_decide_a_tie():
    arms, seeds = [2, 1, 1, 1], [2, 3, 2, 2]
    for noise in np.random.default_rng(0).normal(0, 1e-14, (20, 4)):
        assert best_first(0.5 + noise, np.ones(4), arms, seeds).tolist() == [2, 3, 1, 0]
        assert best_first(noise, [4, 3, 2, 1], arms, seeds).tolist() == [2, 3, 1, 0]
        order = cheapest_first(0.5 + noise, np.ones(4), arms, seeds)
        assert order.tolist() == [2, 3, 1, 0]
        assert beats_all_before((0.5 + noise)[order]).tolist() == [True, False, False, False]


def test_more_information_per_cost_comes_first():
    assert best_first([0.1, 0.4, 0.3], [1, 2, 1], [1, 1, 9], [2, 2, 9]).tolist() == [2, 1, 0]
    assert cheapest_first([0.1, 0.4, 0.3], [1, 2, 1], [1, 1, 9], [2, 2, 9]).tolist() == [2, 0, 1]


def test_equal_arms_are_taken_in_their_order():
    plan = design(state_of((0.25,) * 4, np.eye(4), limits=(paper_limit(4),)))
    assert plan.best[0].arms == ("a0", "a1")
    free = Limit(budget=50, cost=LinearCost(setup=1, per_arm=0, per_seed=1))
    idle = design(state_of((0.5, 0.5), [[1, 0, 0], [0, 0, 0]], limits=(free,)))
    assert idle.best[0].arms == ("a0",)
    assert all(len(option.arms) == 1 for option in idle.frontier)


@pytest.mark.parametrize(
    ("prior", "signatures", "noise", "why"),
    [
        ((1.0, 0.0), np.eye(2), 1.0, "'h0' is believed already"),
        ((0.5, 0.5), [[1, 0], [1, 0]], 1.0, "all hypotheses predict the same outcomes"),
        ((0.5, 0.5, 0.0), [[1, 0], [1, 0], [0, 0]], 1.0, "all hypotheses predict the same"),
        ((0.5, 0.5), np.eye(2), 1e20, "does not tell the hypotheses apart"),
    ],
)
def test_where_nothing_can_be_learnt_the_plan_says_so(prior, signatures, noise, why):
    state = state_of(prior, signatures, outcomes=GridOutcomes(noise=noise))
    plan = design(state)
    assert plan.nothing_to_learn
    assert plan.to_json()["nothing_to_learn"] is True
    assert (plan.best[0].arms, plan.best[0].seeds) == (("a0",), 2)
    assert why in why_nothing(state)
    found = assess(state, "run a1 with 4 seeds")
    assert found.nothing_to_learn
    assert set(found.efficiency.values()) == {0}


def test_another_prior_that_changes_nothing_keeps_the_design():
    plan = design(state_of((0.4, 0.3, 0.3), np.eye(3), limits=(paper_limit(3),)))
    assert not plan.nothing_to_learn
    flat = plan.sensitivity[0]
    assert (flat.best.arms, flat.best.seeds) == (plan.best[0].arms, plan.best[0].seeds)
    assert flat.kept == 1
    settled = design(state_of((1.0, 0.0), np.eye(2))).sensitivity
    assert settled[0].best.gain > 0.1
    assert settled[1].best.gain == pytest.approx(0, abs=1e-12)


def test_a_plan_with_nothing_to_learn_has_a_picture():
    figure = design(state_of((1.0, 0.0), np.eye(2))).plot()
    assert figure.axes[0].get_ylim() == (0, 1)
