from dataclasses import replace

import numpy as np
import pytest

from outlay.designs.beliefs import Beliefs
from outlay.designs.costs import Design as Indexed
from outlay.designs.posteriors import posterior
from outlay.designs.statefile import state_to_json
from outlay.events import Child, Design, Evaluation, Rejected

A, AB = Design(arms=("arm 0",), seeds=4), Design(arms=("arm 0", "arm 1"), seeds=2)


@pytest.fixture
def beliefs(state) -> Beliefs:
    names = tuple(f"arm {k}" for k in range(len(state.arms)))
    return Beliefs(state_to_json(replace(state, arms=names)))


def seen(*metrics: dict[str, float]) -> list[Evaluation]:
    return [Evaluation(node=1, seed=k, value=1.0, metrics=m) for k, m in enumerate(metrics)]


def test_a_design_takes_its_cost_when_it_passes(beliefs) -> None:
    beliefs.propose([Child(node=1, design=A), Child(node=2), Child(node=3, design=AB)])
    assert beliefs.now.limits[0].budget == 8 - 3.0 - 2.9
    assert [one.cost for one in beliefs.experiments.values()] == [3.0, 2.9]
    assert beliefs.now.prior == beliefs.first.prior


def test_what_was_sent_back_adds_up(beliefs) -> None:
    unusable = Rejected(reason="child 1: has no edits")
    beliefs.propose([], [Rejected(reason="dear", design=AB, saved=2.9), unusable])
    beliefs.propose([], [Rejected(reason="blank", design=A, saved=3.0)])
    assert beliefs.saved == pytest.approx(5.9)
    assert [one.reason for one in beliefs.sent_back] == ["dear", "blank"]


def test_an_outcome_moves_the_beliefs_as_bayes_does(beliefs) -> None:
    beliefs.propose([Child(node=1, design=AB)])
    first = beliefs.first
    means = seen({"arm 0": 0.75, "arm 1": 0.0, "other": 9.0}, {"arm 0": 0.25, "arm 1": 0.0})
    assert beliefs.learn(1, 7, means) == ""
    expected = posterior(first, Indexed((0, 1), 2), [0.5, 0.0])
    assert np.allclose(beliefs.now.prior, expected, rtol=0, atol=1e-15)
    done = beliefs.experiments[1]
    assert (done.attempt, done.outcome, done.problem) == (7, (0.5, 0.0), "")
    assert done.posterior == beliefs.now.prior


@pytest.mark.parametrize(
    ("evaluations", "problem"),
    [
        (seen({"arm 0": 1.0}), "found no metric 'arm 1', allowed: one number for each arm"),
        (
            seen({"arm 0": 1.0, "arm 1": 1.0}, {"arm 0": 1.0}),
            "found no metric 'arm 1' on some seeds",
        ),
        (seen({"arm 0": 0.3, "arm 1": 1.0}), "found 0.3, allowed: 0, 0.25"),
        (seen({"arm 0": 0.0, "arm 1": 1.0}, {"arm 0": 0.25, "arm 1": 1.0}), "found 0.125"),
    ],
)
def test_what_cannot_be_read_teaches_nothing_and_says_why(beliefs, evaluations, problem) -> None:
    beliefs.propose([Child(node=1, design=AB)])
    assert problem in beliefs.learn(1, 3, evaluations)
    assert beliefs.now.prior == beliefs.first.prior
    assert problem in beliefs.experiments[1].problem
    assert beliefs.experiments[1].attempt == 3


def test_an_attempt_without_a_score_teaches_nothing(beliefs) -> None:
    beliefs.propose([Child(node=1, design=AB)])
    assert beliefs.learn(1, 3, []) == ""
    assert beliefs.experiments[1].problem == "the attempt has no score"
    assert beliefs.now.prior == beliefs.first.prior


def test_a_plan_without_a_design_says_nothing_about_hypotheses(beliefs) -> None:
    beliefs.propose([Child(node=1)])
    assert beliefs.learn(1, 3, seen({"arm 0": 1.0})) == ""
    assert beliefs.experiments == {}
    assert beliefs.now is beliefs.first
