from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay.designs.costs import (
    Design,
    Limit,
    LinearCost,
    TableCost,
    arms_of,
    cost_of,
    cost_table,
    is_affordable,
)
from outlay.errors import InputError

PAPER = LinearCost()


@pytest.mark.parametrize(("budget", "count"), [(4, 130), (6, 478), (8, 684)])
def test_affordable_counts(budget, count):
    table = cost_table(Limit(budget=budget), 6, range(2, 13))
    assert table.affordable.sum() == count


def test_six_arms_at_four_seeds_cost_exactly_six():
    design = Design(tuple(range(6)), 4)
    assert cost_of(Limit(budget=6), design) == 6
    assert is_affordable(Limit(budget=6), design)
    assert cost_table(Limit(budget=6), 6, range(2, 13)).affordable[63, 2]
    in_floats = np.float32(1) + np.float32(0.6) * 6 + np.float32(0.35) * 4
    assert in_floats > 6  # the trap: single precision would refuse the design


def test_a_rule_that_float64_gets_wrong():
    limit = Limit(budget=0.3, cost=LinearCost(setup=0.1, per_arm=0.2, per_seed=0))
    assert 0.1 + 0.2 > 0.3
    assert is_affordable(limit, Design((0,), 2))
    assert cost_table(limit, 1, range(2, 3)).affordable[1, 0]


@given(
    st.lists(st.decimals(0, 100, places=3).map(float), min_size=5, max_size=5),
    st.integers(1, 31),
    st.integers(1, 9),
)
def test_the_table_equals_single_costs(numbers, mask, seeds):
    setup, per_seed, per_run, first, budget = numbers
    cost = LinearCost(
        setup=setup, per_seed=per_seed, per_run=per_run, per_arm=(first, 1.0, 0.1, 0.25, 3.0)
    )
    limit = Limit(budget=budget, cost=cost)
    design = Design(arms_of(mask), seeds)
    table = cost_table(limit, 5, range(1, 10))
    exact = cost_of(limit, design)
    assert table.cost[mask, seeds - 1] == pytest.approx(float(exact), rel=1e-14)
    assert table.affordable[mask, seeds - 1] == (exact <= Fraction(repr(budget)))


def test_prices_of_single_designs():
    cost = TableCost(prices={Design((0,), 2): 1.5, Design((0, 1), 3): 4.0})
    limit = Limit(budget=2, cost=cost)
    table = cost_table(limit, 2, range(2, 4))
    assert table.affordable.tolist() == [[False] * 2, [True, False], [False] * 2, [False] * 2]
    assert np.isinf(table.cost[2, 0])
    assert cost_of(limit, Design((1,), 2)) is None
    assert not is_affordable(limit, Design((1,), 2))


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        ({"per_arm": -0.1}, "per_arm: found -0.1"),
        ({"setup": float("nan")}, "setup"),
        ({"per_arm": (1.0, -2.0)}, "-2.0"),
    ],
)
def test_costs_below_zero_are_refused(cost, message):
    with pytest.raises(InputError, match=message):
        LinearCost(**cost)


def test_a_price_below_zero_is_refused():
    with pytest.raises(InputError, match="-1"):
        TableCost(prices={Design((0,), 2): -1.0})


@pytest.mark.parametrize("budget", [-1, float("inf"), float("nan")])
def test_budgets_are_finite_and_not_below_zero(budget):
    with pytest.raises(InputError, match="budget of seconds: found"):
        Limit(unit="seconds", budget=budget)
