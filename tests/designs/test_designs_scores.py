import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay.bench.designs.panel import panel
from outlay.bench.designs.policies import catalogues
from outlay.designs.catalogue import best_design, catalogue, cost, fits
from outlay.designs.costs import Design, Limit, LinearCost
from outlay.designs.readings import (
    MODES,
    Action,
    ambiguity,
    executed,
    focused_arms,
    readings,
)
from outlay.designs.scores import efficiency, gaps, utility
from outlay.designs.states import ResearchState, paper_limit
from outlay.errors import BudgetError, InputError

TABLES = catalogues(panel(11))


def test_component_scan(state):
    assert readings(state, Action()) == (
        ((0,), 2),
        ((0, 1), 2),
        ((0, 1, 2, 3), 2),
        ((0,), 4),
    )


@pytest.mark.parametrize(("target", "arms"), [(0, (0, 1)), (1, (0, 1)), (4, (0, 4))])
def test_target_focus(state, target, arms):
    assert focused_arms(6, target) == arms
    assert readings(state, Action(target=target)) == ((arms, 2), (arms, 8))


def test_modes_split_by_cost(state):
    scan = readings(state, Action())
    assert readings(state, Action(), "conservative") == (((0,), 2), ((0, 1), 2))
    assert readings(state, Action(), "permissive") == (((0,), 4), ((0, 1, 2, 3), 2))
    assert [cost(state, design) for design in scan] == pytest.approx([2.3, 2.9, 4.1, 3.0])


def test_equal_costs_keep_their_order(state):
    tied = (Design((1,), 2), Design((0,), 2), Design((2,), 2))
    assert executed(state, tied, "conservative") == tied[:2]
    assert executed(state, tied, "permissive") == tied[1:]


@given(st.sets(st.integers(0, 5), min_size=1), st.integers(2, 12))
def test_a_complete_design_is_the_same_in_every_mode(arms, seeds):
    state = TABLES[0].state
    action = Action(arms=tuple(sorted(arms)), seeds=seeds)
    for mode in MODES:
        assert readings(state, action, mode) == (Design(tuple(sorted(arms)), seeds),)


@pytest.mark.parametrize(
    ("mode", "level", "expected"),
    [
        ("conservative", 1, 11.1),
        ("conservative", 2, 14.2),
        ("permissive", 1, 16.0),
        ("permissive", 2, 35.5),
    ],
)
def test_modes_over_the_panel(mode, level, expected):
    scores = []
    for table in TABLES:
        target = max(range(6), key=lambda h, prior=table.state.prior: prior[h])
        action = Action() if level == 1 else Action(target=target)
        scores.append(efficiency(table, readings(table.state, action, mode)))
    assert 100 * np.mean(scores) == pytest.approx(expected, abs=0.06)


def test_ambiguity_index():
    assert ambiguity((Design((0,), 2),)) == 0
    assert ambiguity((Design((0,), 2),) * 4) == 0.75


def test_an_unaffordable_reading_stays_in_the_denominator():
    table = TABLES[1]  # budget 4
    paid, unpaid = Design((0,), 2), Design(tuple(range(6)), 12)
    assert fits(table.state, paid)
    assert not fits(table.state, unpaid)
    assert utility(table, (unpaid,)) == 0
    assert utility(table, (paid, unpaid)) == utility(table, (paid,)) / 2


@given(st.integers(0, 29), st.integers(1, 63), st.integers(2, 12))
def test_scores_stay_between_zero_and_one(index, mask, seeds):
    table = TABLES[index]
    design = table.design(mask * 11 + seeds - 2)
    assert table.place(design) == mask * 11 + seeds - 2
    score = efficiency(table, (design,))
    assert 0 <= score <= 1
    assert (score > 0) == fits(table.state, design)


def test_gaps_add_up_and_may_be_negative():
    table = TABLES[1]
    best = best_design(table)
    assert gaps(table, (best,)).target == pytest.approx(0, abs=1e-12)
    dear = gaps(table, (Design(tuple(range(6)), 12),), target=5)
    assert dear.resolution < 0
    assert dear.total == pytest.approx(dear.target + dear.resolution)
    i_star = table.gain[table.affordable].max()
    assert dear.total == pytest.approx(i_star - table.gain[63, 10])


def test_readings_stay_within_the_seeds_of_a_state():
    state = ResearchState(
        hypotheses=("a", "b"),
        prior=(0.5, 0.5),
        arms=("x", "y"),
        signatures=((1, 0), (0, 1)),
        limits=(paper_limit(9),),
        seeds=(3, 5),
    )
    assert readings(state, Action()) == (((0,), 3), ((0, 1), 3), ((0,), 4))
    assert readings(state, Action(target=1)) == (((0, 1), 3), ((0, 1), 5))


def _two(limits):
    return ResearchState(
        hypotheses=("a", "b"),
        prior=(0.5, 0.5),
        arms=("x", "y"),
        signatures=((1, 0), (0, 1)),
        limits=limits,
    )


def test_nothing_affordable_names_the_cheapest():
    with pytest.raises(BudgetError, match=r"cheapest costs 2.3 units .*2.3 of 2 units") as caught:
        best_design(catalogue(_two((paper_limit(2),))))
    assert caught.value.exit_code == 3


def test_several_resources_must_all_fit():
    seconds = Limit(unit="seconds", budget=60, cost=LinearCost(setup=0, per_arm=0, per_run=5))
    both = catalogue(_two((paper_limit(8), seconds)))
    first = catalogue(_two((paper_limit(8),)))
    assert both.affordable.sum() < first.affordable.sum()
    assert both.affordable[1].tolist() == [5 * 2 * n + 0.35 * n <= 60 for n in range(2, 13)]


def test_a_free_design_has_no_efficiency():
    free = Limit(budget=1, cost=LinearCost(setup=0, per_arm=0, per_seed=0))
    with pytest.raises(InputError, match="costs 0"):
        catalogue(_two((free,)))
