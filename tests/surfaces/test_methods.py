from __future__ import annotations

import numpy as np
import pytest

from outlay.errors import InputError
from outlay.surfaces.cube import bits, cell_of
from outlay.surfaces.equalities import Gate, representatives
from outlay.surfaces.gaussian import NUGGETS, cube_distance, fit_gaussian
from outlay.surfaces.methods import PUBLISHED, published_method
from outlay.surfaces.ridge import ALPHAS, design_order, features, fit_ridge


def obvious_ridge(rows, values, alpha, at):
    """Solve the ridge with an unpenalised intercept as one bordered system."""
    table = np.column_stack([np.ones(len(rows)), rows])
    penalty = alpha * np.eye(table.shape[1])
    penalty[0, 0] = 0
    weights = np.linalg.solve(table.T @ table + penalty, table.T @ values)
    return np.column_stack([np.ones(len(at)), at]) @ weights


@pytest.mark.parametrize("degree", [1, 2])
def test_ridge_equals_the_obvious_one(degree):
    rng = np.random.default_rng(degree)
    design, observed = features(4, degree), [0, 15, 3, 5, 6, 8, 9]
    values = rng.random(7)
    found = fit_ridge(design, observed, values)
    assert np.allclose(
        found.prediction, obvious_ridge(design[observed], values, found.alpha, design)
    )
    losses = []
    for alpha in ALPHAS:
        residuals = []
        for k in range(7):
            rest = [i for i in range(7) if i != k]
            rows = design[observed][rest]
            at = design[observed][[k]]
            residuals.append(values[k] - obvious_ridge(rows, values[rest], alpha, at)[0])
        losses.append(np.mean(np.square(residuals)))
    assert np.allclose(list(found.losses.values()), losses)
    assert found.alpha == ALPHAS[int(np.argmin(losses))]


def test_two_observations_tie_and_take_the_largest_penalty():
    assert fit_ridge(features(4, 1), [0, 15], np.array([0.2, 0.4])).alpha == 10


def test_gaussian_equals_the_obvious_one():
    rng = np.random.default_rng(0)
    distance, observed, values = cube_distance(4), [0, 15, 3, 5, 9, 12], rng.random(6)
    found = fit_gaussian(distance, observed, values)
    kernel = np.exp(-distance / found.length)
    gram = kernel[np.ix_(observed, observed)] + found.nugget * np.eye(6)
    flat = 1e7
    mean = (kernel[:, observed] + flat) @ np.linalg.solve(gram + flat, values)
    assert np.allclose(found.mean, mean, atol=1e-5)
    full = kernel + flat
    covariance = full - full[:, observed] @ np.linalg.solve(gram + flat, full[observed])
    assert np.allclose(found.covariance, covariance, atol=1e-5)
    assert found.nugget in NUGGETS


def test_anchors_alone_tie_and_take_the_longest_length_and_largest_nugget():
    found = fit_gaussian(cube_distance(4), [0, 15], np.array([0.2, 0.4]))
    assert (found.length, found.nugget) == (8.0, 0.3)


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_method_buys_each_cell_once_and_reproduces_what_it_measured(name):
    truth = np.random.default_rng(3).random(16)
    method = published_method(name, 4, bounds=(0.0, 1.0))
    known = {0: truth[0], 15: truth[15]}
    while (cell := method.next(known)) is not None:
        assert cell not in known
        known[cell] = truth[cell]
    prediction = method.predict(known)
    assert len(known) == (10 if name == "one-at-a-time" else 16)
    assert all(prediction[cell] == value for cell, value in known.items())
    assert ((prediction >= 0) & (prediction <= 1)).all()


def test_predictions_of_an_unbounded_metric_are_not_clipped():
    truth = 1000 * bits(4).sum(axis=1).astype(float)
    method = published_method("d1", 4)
    known = {cell: truth[cell] for cell in (0, 15, 3, 5, 6, 8, 9)}
    assert method.predict(known)[cell_of("1110")] > 2000


def test_designs_beyond_the_published_orders_hold_every_cell_once():
    for d, degree in ((3, 1), (5, 2), (6, 1), (6, 2)):
        assert sorted(design_order(d, degree)) == list(range(1, 2**d - 1))


def test_code_aware_methods_buy_representatives_and_share_values():
    gates = (Gate(2, 0, 3), Gate(0, 1, 1))
    classes = representatives(4, gates)
    truth = np.random.default_rng(5).random(16)[classes]
    for name in ("code-d1", "code-d2", "code-gp-effect"):
        method = published_method(name, 4, rules=gates)
        known = {0: truth[0], 15: truth[15]}
        while (cell := method.next(known)) is not None:
            assert classes[cell] == cell
            known[cell] = truth[cell]
        assert len({int(classes[cell]) for cell in known}) == len(set(classes.tolist()))
        assert np.array_equal(method.predict(known), truth)


def test_an_unknown_method_is_refused():
    with pytest.raises(InputError, match="gp-effect"):
        published_method("gp", 4)
