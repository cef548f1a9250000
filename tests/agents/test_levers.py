from __future__ import annotations

import itertools
import math
import os
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlay.agents.effects import Effects
from outlay.agents.levers import Proposal, configuration, defaults, propose
from outlay.task import Lever, Option


def levers(*sizes: int) -> tuple[Lever, ...]:
    return tuple(
        Lever(name=f"l{i}", options=tuple(Option(name=str(k)) for k in range(size)))
        for i, size in enumerate(sizes)
    )


def named(*options: int) -> dict[str, str]:
    return {f"l{i}": str(k) for i, k in enumerate(options)}


def changes(proposals: list[Proposal]) -> list[dict[str, str]]:
    return [dict(p.changes) for p in proposals]


def test_untried_directions_come_first_in_the_order_of_the_axes() -> None:
    effects = Effects(levers(2, 3, 2), 1.0)
    root = named(0, 0, 0)
    effects.record(root, 0.5)
    known = {("0", "0", "0")}
    first = propose(effects, root, 3, known=known)
    assert changes(first) == [{"l0": "1"}, {"l1": "1"}, {"l1": "2"}]
    ranked = propose(effects, root, 3, known=known, axes=["l2", "l0", "l1"])
    assert changes(ranked) == [{"l2": "1"}, {"l0": "1"}, {"l1": "1"}]
    assert (ranked[0].axis, ranked[0].direction) == ("l2", "1")
    assert ranked[0].config == named(0, 0, 1)


def test_one_lever_is_exhausted_after_its_two_configurations() -> None:
    effects = Effects(levers(2), 1.0)
    effects.record(named(0), 0.0)
    known = {("0",)}
    (only,) = propose(effects, named(0), 3, known=known)
    known.add(configuration(effects.levers, only.config))
    effects.record(named(1), 1.0, named(0), 0.0)
    assert propose(effects, named(0), 3, known=known) == []
    assert propose(effects, named(1), 3, known=known) == []


def test_no_levers_give_no_proposals() -> None:
    effects = Effects((), 1.0)
    effects.record({}, 1.0)
    assert propose(effects, {}, 3, known={()}) == []


def test_retired_directions_and_other_axes_are_left_out() -> None:
    effects = Effects(levers(2, 2, 2), 1.0)
    root = named(0, 0, 0)
    effects.record(root, 0.0)
    left = propose(effects, root, 9, known=set(), retired={("l1", "1")}, axes=["l1", "l2"])
    assert changes(left) == [{"l2": "1"}]


def test_two_positive_effects_are_combined_and_the_combination_has_no_axis() -> None:
    effects = Effects(levers(2, 2, 2), 1.0)
    root = named(0, 0, 0)
    effects.record(root, 0.0)
    known = {("0", "0", "0")}
    for config, score in ((named(1, 0, 0), 1.0), (named(0, 1, 0), 0.8), (named(0, 0, 1), -1.0)):
        effects.record(config, score, root, 0.0)
        known.add(configuration(effects.levers, config))
    best, *others = propose(effects, root, 3, known=known)
    assert dict(best.changes) == {"l0": "1", "l1": "1"}
    assert (best.axis, best.direction) == (None, None)
    assert best.prior > 0.7
    assert all("l2" not in dict(p.changes) for p in others)


def test_without_a_positive_effect_nothing_is_combined() -> None:
    effects = Effects(levers(2, 2), 1.0)
    root = named(0, 0)
    effects.record(root, 0.0)
    effects.record(named(1, 0), -1.0, root, 0.0)
    effects.record(named(0, 1), -1.0, root, 0.0)
    assert propose(effects, root, 3, known={("0", "0"), ("1", "0"), ("0", "1")}) == []


def test_an_interaction_is_found_and_leads_to_the_pair() -> None:
    """Both switches harm alone and help together, seen in several backgrounds."""
    effects = Effects(levers(2, 2, 2, 2), 1.0)
    known = set()
    for config in itertools.product((0, 1), repeat=4):
        if config[2:] != (1, 1):
            a, b, c, d = config
            effects.record(named(*config), -a - b + 4 * a * b + 0.1 * c - 0.1 * d)
            known.add(configuration(effects.levers, named(*config)))
    estimate = effects.interaction(("l1", "1"), ("l0", "1"))
    assert estimate is not None
    assert estimate.excludes_zero()
    assert estimate.mean == pytest.approx(4.0, abs=0.8)
    pair = propose(effects, named(0, 0, 1, 1), 9, known=known)
    assert {"l0": "1", "l1": "1"} in changes(pair)
    assert effects.interaction(("l2", "1"), ("l3", "1")) is None


def test_smaller_may_be_better() -> None:
    effects = Effects(levers(2, 2), -1.0)
    root = named(0, 0)
    effects.record(root, 10.0)
    effects.record(named(1, 0), 8.0, root, 10.0)
    effects.record(named(0, 1), 12.0, root, 10.0)
    assert effects.direction("l0", "1").mean == 2.0
    assert effects.best() == named(1, 0)
    good, bad = effects.differences(root, [named(1, 0), named(0, 1)])
    assert good.mean > 0 > bad.mean
    assert good.probability_better() > 0.5 > bad.probability_better()


def test_a_failure_counts_as_tried_and_has_no_score() -> None:
    effects = Effects(levers(2, 2), 1.0)
    root = named(0, 0)
    effects.record(root, 1.0)
    effects.record(named(1, 0), None, root, 1.0)
    assert effects.direction("l0", "1") == (1, 0, 0.0)
    assert effects.best() == root
    assert changes(propose(effects, root, 1, known={("0", "0")})) == [{"l1": "1"}]


def test_before_any_evidence_the_prior_allows_for_no_effect() -> None:
    effects = Effects(levers(2, 2), 1.0)
    effects.record(named(0, 0), 0.0)
    assert [p.prior for p in propose(effects, named(0, 0), 2, known=set())] == [0.3, 0.3]


def test_a_known_noise_makes_one_lucky_score_less_convincing() -> None:
    priors = []
    for noise in (0.01, 10.0):
        effects = Effects(levers(2, 2), 1.0, noise)
        effects.record(named(0, 0), 0.0)
        effects.record(named(1, 0), 1.0, named(0, 0), 0.0)
        (estimate,) = effects.differences(named(0, 0), [named(1, 0)])
        priors.append(estimate.probability_better())
    assert priors[0] > 0.9
    assert priors[1] < 0.5


def test_differences_equal_a_regression_that_is_solved_directly() -> None:
    """The slow twin: the posterior mean from the full design, at every ratio, best evidence."""
    rng = np.random.default_rng(5)
    lever_list = levers(2, 3)
    effects = Effects(lever_list, 1.0, 0.5)
    rows, scores = [], []
    scale = np.array([5.0, 0.5, 1, 1, 1, 0.8, 0.8])
    for a, b in [(0, 0), (1, 0), (0, 1), (0, 2), (1, 2), (1, 1), (0, 0)]:
        y = 3.0 + a - 0.5 * (b == 2) + 0.3 * rng.standard_normal()
        effects.record(named(a, b), y)
        off = (a > 0) + (b > 0)
        row = [1, off, a, b == 1, b == 2, a and b == 1, a and b == 2]
        rows.append(np.array(row, float) * scale)
        scores.append(y)
    x, y = np.array(rows), np.array(scores) - scores[0]
    best = None
    for ratio in (0.25, 0.5, 1, 2, 4, 8, 16):
        # Marginal of y: t with covariance I + ratio^2 X X', shape 5 + n / 2, rate 5 * 0.25 + ...
        k = np.eye(7) + ratio**2 * x @ x.T
        rate = 1.25 + y @ np.linalg.solve(k, y) / 2
        log = -np.linalg.slogdet(k)[1] / 2 - 8.5 * math.log(rate) - math.log(ratio / 2) ** 2 / 4
        if best is None or log > best[0]:
            weights = ratio**2 * x.T @ np.linalg.solve(k, y)
            cov = ratio**2 * (np.eye(7) - ratio**2 * x.T @ np.linalg.solve(k, x)) * rate / 8.5
            best = (log, weights, cov)
    assert best is not None
    change = x[4] - x[0]
    (estimate,) = effects.differences(named(0, 0), [named(1, 2)])
    assert estimate.mean == pytest.approx(change @ best[1])
    assert estimate.scale == pytest.approx(math.sqrt(change @ best[2] @ change))
    assert estimate.df == 17


sizes = st.lists(st.integers(2, 3), min_size=1, max_size=4)


@settings(max_examples=60)
@given(sizes, st.integers(0, 10**6), st.integers(1, 5))
def test_proposals_are_new_different_and_repeatable(
    shape: list[int], seed: int, count: int
) -> None:
    lever_list = levers(*shape)
    draw = random.Random(seed)
    configs = [named(*(draw.randrange(s) for s in shape)) for _ in range(draw.randrange(1, 15))]
    known = {configuration(lever_list, c) for c in configs}
    retired = {("l0", "1")} if draw.random() < 0.5 else set()

    def ask() -> list[Proposal]:
        effects = Effects(lever_list, 1.0)
        scores = random.Random(seed)
        effects.record(defaults(lever_list), 0.0)
        for config in configs:
            score = None if scores.random() < 0.2 else scores.gauss(0, 1)
            effects.record(config, score, defaults(lever_list), 0.0)
        return propose(effects, configs[0], count, known=known, retired=retired)

    found = ask()
    assert found == ask()
    assert len(found) <= count
    keys = [configuration(lever_list, p.config) for p in found]
    assert len(set(keys)) == len(keys)
    assert not known & set(keys)
    for proposal in found:
        assert 0 < proposal.prior < 1
        assert not retired & set(proposal.changes)
        differing = {k: v for k, v in proposal.config.items() if configs[0][k] != v}
        assert dict(proposal.changes) == differing
        assert (proposal.axis is None) == (len(differing) > 1)


COST = """
import random, sys, time
from outlay.agents.effects import Effects
from outlay.agents.levers import defaults, propose
from outlay.task import Lever, Option

options = tuple(Option(name=str(k)) for k in range(3))
levers = tuple(Lever(name=str(i), options=options) for i in range(6))
draw, effects, root = random.Random(1), Effects(levers, 1.0), defaults(levers)
for total in (100, 3000):
    for _ in range(total):
        config = {lever.name: str(draw.randrange(3)) for lever in levers}
        effects.record(config, draw.gauss(0, 1), root, 0.0)
    spent = []
    for _ in range(15):
        start = time.process_time()
        effects.record(config, draw.gauss(0, 1), root, 0.0)
        propose(effects, config, 3, known=set())
        spent.append(time.process_time() - start)
    print(sorted(spent)[7])
"""


def test_what_one_proposal_costs_does_not_grow_with_the_run() -> None:
    """Processor time on one thread, so that a busy machine does not decide."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", COST], env=environment, capture_output=True, check=True
    )
    early, late = map(float, done.stdout.split())
    assert late < 3 * early
