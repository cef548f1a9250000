from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlay.surfaces.beliefs import Assumptions, believe, candidate_gates
from outlay.surfaces.cube import bits, edges
from outlay.surfaces.earlier import standardise
from outlay.surfaces.equalities import Gate, effective
from outlay.surfaces.factors import read_factors
from outlay.surfaces.intervals import FIRST, LATER, half_width, typical_share
from outlay.surfaces.mixture import Models, Observations, average, evidence, kernel
from outlay.surfaces.prices import Prices
from outlay.surfaces.proposal import propose
from outlay.surfaces.purchase import remaining_uncertainty, smallest
from outlay.surfaces.space import Space

SPACE = Space(levels=(2, 2, 2, 2))


def seen_at(cells, values):
    return Observations(
        rows=SPACE.rows(np.array(cells)),
        values=np.array(values, dtype=float),
        repeats=np.ones(len(cells), dtype=np.int64),
    )


def some_models(count=5, gates=(), seed=0):
    rng = np.random.default_rng(seed)
    return Models(
        log_correlation=np.log(rng.uniform(0.05, 0.99, (count, 4))),
        log_decay=np.log(rng.uniform(0.5, 1, count)),
        trust=np.zeros(count),
        nugget=rng.uniform(1e-4, 0.1, count),
        log_prior=rng.normal(size=count),
        gates=gates,
    )


def obvious_kernel(models, m, left, right):
    near, far = effective(left, models.gates), effective(right, models.gates)
    found = np.ones((len(near), len(far)))
    for a, x in enumerate(near):
        for b, y in enumerate(far):
            for i in range(4):
                found[a, b] *= np.exp(models.log_correlation[m, i]) if x[i] != y[i] else 1.0
            found[a, b] *= np.exp(models.log_decay[m] * ((x != 0).sum() + (y != 0).sum()))
    return found


@pytest.mark.parametrize("gates", [(), (Gate(0, 1, 2),), (Gate(-1, 0, 3),)])
def test_posterior_equals_the_obvious_one(gates):
    models, rows = some_models(gates=gates), bits(4)
    seen = seen_at([0, 15, 3, 6, 9], [0.1, 0.7, -0.3, 0.4, 0.2])
    found = evidence(models, seen)
    posterior = average([(models, found)], seen, rows)
    flat, log_weights, means, covariances = 1e6, [], [], []
    for m in range(5):
        gram = obvious_kernel(models, m, seen.rows, seen.rows) + models.nugget[m] * np.eye(5)
        assert np.allclose(
            kernel(models, rows, seen.rows)[m], obvious_kernel(models, m, rows, seen.rows)
        )
        cross = obvious_kernel(models, m, rows, seen.rows) + flat
        precision = np.linalg.inv(gram + flat)
        centred = seen.values
        means.append(cross @ precision @ centred)
        scale = centred @ precision @ centred / 4
        covariance = obvious_kernel(models, m, rows, rows) + flat - cross @ precision @ cross.T
        covariances.append(scale * covariance)
        log_weights.append(
            models.log_prior[m] - 0.5 * np.linalg.slogdet(gram + flat)[1] - 2 * np.log(scale)
        )
    weight = np.exp(np.array(log_weights) - max(log_weights))
    weight /= weight.sum()
    shown = np.exp(found.log_weight - np.logaddexp.reduce(found.log_weight))
    assert np.allclose(shown, weight, atol=1e-4)
    mean = weight @ np.array(means)
    assert np.allclose(posterior.mean, mean, atol=1e-3)
    total = sum(
        w * (c + np.outer(m - mean, m - mean))
        for w, c, m in zip(weight, covariances, means, strict=True)
    )
    assert np.allclose(posterior.covariance, total, atol=1e-3)


def test_remaining_uncertainty_is_what_conditioning_leaves():
    rng = np.random.default_rng(1)
    root = rng.normal(size=(16, 16))
    covariance, noise, pairs = root @ root.T, 0.3, edges(4)
    found = remaining_uncertainty(covariance, noise, pairs.low, pairs.high, np.arange(16))
    for cell in range(16):
        column = covariance[:, cell]
        after = covariance - np.outer(column, column) / (covariance[cell, cell] + noise)
        own = np.diagonal(after)
        spread = own[pairs.low] + own[pairs.high] - 2 * after[pairs.low, pairs.high]
        assert found[cell] == pytest.approx(np.sqrt(spread).sum())


def test_smallest_takes_the_first_of_a_tie_whatever_the_sign():
    assert smallest(np.array([3.0, 1.0, 1.0 + 1e-12])) == 1
    assert smallest(np.array([-1e-12, -5.0, -2.0])) == 1
    assert smallest(np.zeros(3)) == 0


def test_gates_need_a_tie_and_no_contradiction():
    # Factor 3 changes nothing while factor 0 is off, and does otherwise.
    seen = seen_at([0, 1, 8, 9, 4, 5], [0.0, 0.0, 0.3, 0.9, 0.5, 0.5])
    found = candidate_gates(seen, (), 1e-9)
    assert Gate(0, 0, 3) in found
    assert Gate(0, 1, 3) not in found
    assert Gate(2, 0, 3) not in found
    assert all(gate.inactive == 3 for gate in found)
    assert candidate_gates(seen_at([0, 1], [0.0, 0.1]), (), 1e-9) == []


def test_a_gate_is_believed_with_its_ties_and_not_without():
    truth = np.random.default_rng(2).normal(size=16)
    gated = truth[SPACE.cells(effective(bits(4), (Gate(1, 1, 0),)))]
    cells = [0, 15, 4, 12, 5, 13, 6, 14, 8, 9]
    for values, expected in ((gated, True), (truth, False)):
        beliefs = believe(
            Assumptions(space=SPACE),
            seen_at(cells, values[cells]),
            np.random.default_rng(0),
            fading=False,
        )
        probability = sum(p for gates, p in beliefs.gates().items() if Gate(1, 1, 0) in gates)
        assert (probability > 0.8) == expected
    noisy = believe(
        Assumptions(space=SPACE, noisy=True),
        seen_at(cells, gated[cells]),
        np.random.default_rng(0),
        fading=False,
    )
    assert list(noisy.gates()) == [()]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
def test_beliefs_follow_shift_and_scale_of_the_metric(seed, shift, scale):
    rng = np.random.default_rng(seed)
    cells = [0, 15, *rng.permutation(np.arange(1, 15))[:4].tolist()]
    values = rng.normal(size=6)

    def mean(at):
        given = Assumptions(space=SPACE)
        beliefs = believe(given, seen_at(cells, at), np.random.default_rng(0), fading=True)
        return beliefs.posterior(bits(4)).mean

    assert np.allclose(mean(shift + scale * values), shift + scale * mean(values), rtol=1e-4)


def test_proposals_start_with_the_anchors_and_skip_blocked_cells():
    given, rng = Assumptions(space=SPACE), np.random.default_rng(0)
    empty = seen_at([], [])
    assert [p.cell for p in propose(given, empty, 3, rng)][:2] == [0, 15]
    batch = [p.cell for p in propose(given, empty, 20, rng)]
    assert sorted(batch) == list(range(16))
    assert {row.sum() for row in SPACE.rows(np.array(batch[2:8]))} == {2}
    seen = seen_at([0, 15], [0.0, 1.0])
    cells = [p.cell for p in propose(given, seen, 20, rng, blocked=(1, 2, 3))]
    assert sorted(cells) == [c for c in range(1, 15) if c > 3]
    assert propose(given, seen, 1, rng, blocked=range(1, 15)) == []
    assert propose(given, empty, 1, rng, blocked=range(16)) == []


def test_a_batch_starts_with_the_single_best_and_gains_a_share_each():
    seen = seen_at([0, 15], [0.0, 1.0])
    given = Assumptions(space=SPACE)
    batch = propose(given, seen, 14, np.random.default_rng(0))
    assert batch[0] == propose(given, seen, 1, np.random.default_rng(0))[0]
    assert all(0 <= p.gain <= 1 for p in batch)


def test_gain_per_cost_decides_where_there_are_prices():
    seen = seen_at([0, 15], [0.0, 1.0])
    factors = read_factors(["a", "b", "c", "d"])
    prices = Prices(factors, lambda config: 100.0 if config["a"] else 1.0)
    given = Assumptions(space=SPACE)
    batch = propose(given, seen, 5, np.random.default_rng(0), prices=prices)
    assert not any(factors.config(p.cell)["a"] for p in batch)


def test_proposals_stay_within_the_purse_and_cheaper_ones_take_the_place_of_dear_ones():
    factors = read_factors(["a", "b", "c", "d"])
    prices = Prices(factors, lambda config: 1e-6 if config["a"] else 1.0)
    given, rng = Assumptions(space=SPACE), np.random.default_rng(0)
    seen = seen_at([0, 15], [0.0, 1.0])
    batch = propose(given, seen, 14, rng, prices=prices, purse=3.5)
    assert sum(prices(p.cell) for p in batch) <= 3.5
    assert sum(bool(factors.config(p.cell)["a"]) for p in batch) == 7
    assert len(batch) == 10
    nothing = seen_at([], [])
    started = propose(given, nothing, 2, rng, prices=prices, purse=0.5)
    assert factors.config(started[0].cell) == dict.fromkeys("abcd", True)
    assert [factors.config(p.cell)["a"] for p in started] == [True, True]
    assert propose(given, nothing, 2, rng, prices=prices, purse=1e-9) == []


def test_flat_earlier_surfaces_say_nothing():
    assert standardise(SPACE, [np.ones(16)]) is None
    assert standardise(SPACE, []) is None


def test_intervals_grow_with_variance_and_where_little_is_left():
    nothing = np.zeros(1)
    assert half_width(np.array([4.0]), 0.0, 3)[0] == pytest.approx(2 * FIRST)
    assert half_width(nothing, 1.0, 30)[0] == pytest.approx(LATER)
    assert FIRST < half_width(nothing, 1.0, 8)[0] < LATER
    assert typical_share(12, 64) == typical_share(40, 64) < typical_share(60, 64)


def test_space_numbers_rows_of_mixed_levels():
    space = Space(levels=(2, 3, 4))
    cells = np.arange(space.size)
    rows = space.rows(cells)
    assert len(np.unique(rows, axis=0)) == 24
    assert np.array_equal(space.cells(rows), cells)
    pairs = space.effects_at(cells)
    assert len(pairs.low) == 12 + 2 * 8 + 3 * 6
    assert ((rows[pairs.low] != rows[pairs.high]).sum(axis=1) == 1).all()
    cube = Space(levels=(2, 2, 2)).effects_at(np.arange(8))
    assert all(np.array_equal(a, b) for a, b in zip(cube, edges(3), strict=True))
