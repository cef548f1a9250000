import doctest
import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlay.bench.designs.panel import identity
from outlay.designs import planning
from outlay.designs.assessment import assess
from outlay.designs.catalogue import catalogue, cost
from outlay.designs.costs import Design, Limit, LinearCost
from outlay.designs.outcomes import GaussianOutcomes
from outlay.designs.planning import design, frontier
from outlay.designs.proving import prove
from outlay.designs.searching import search_designs
from outlay.designs.statefile import parse_state, read_state, state_to_json
from outlay.designs.states import paper_limit
from outlay.errors import BudgetError, InputError
from tests.designs.test_designs_information import state_of
from tests.designs.twins import random_state

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "design" / "state.toml"


def test_doctest():
    assert doctest.testmod(planning).failed == 0


def test_best_designs_and_frontier_of_the_example():
    plan = design(EXAMPLE)
    assert plan.complete
    assert plan.best[0].arms == ("augmentation", "longer_schedule")
    assert plan.best[0].efficiency == pytest.approx(plan.bound)
    efficiencies = [option.efficiency for option in plan.best]
    assert efficiencies == sorted(efficiencies, reverse=True)
    costs, gains = zip(*[(o.cost, o.gain) for o in plan.frontier], strict=True)
    assert list(costs) == sorted(costs)
    assert list(gains) == sorted(gains)
    assert all(cost <= 48 for cost in costs)
    assert max(gains) < plan.uncertainty
    assert plan.to_json()["best"][0]["seeds"] == plan.best[0].seeds
    assert len(plan.to_pandas()) == len(plan.frontier)


def test_a_plan_prints_as_one_line():
    assert repr(design(EXAMPLE)) == (
        "<Plan: augmentation, longer_schedule with 6 seeds, 0.7356 of 1.6359 nats for 27.5 GPU "
        "hours>"
    )
    assert "nothing to learn" in repr(design(state_of((1.0, 0.0), np.eye(2))))


@pytest.mark.parametrize("wrong", [None, {}, 5])
def test_what_is_no_state_is_refused(wrong):
    with pytest.raises(
        InputError, match=f"found {type(wrong).__name__}, allowed: a ResearchState"
    ):
        design(wrong)
    with pytest.raises(InputError, match="allowed: a ResearchState"):
        assess(wrong, "run ema")


def test_the_frontier_is_undominated(state):
    table = catalogue(state)
    kept = [table.place(chosen) for chosen in frontier(table)]
    for place in np.flatnonzero(table.affordable):
        gain, cost = table.gain.flat[place], table.cost.flat[place]
        beaten = any(
            table.gain.flat[k] >= gain - 1e-12 and table.cost.flat[k] <= cost for k in kept
        )
        assert beaten


def test_arm_values_are_differences_of_information(state):
    table = catalogue(state)
    plan = design(state)
    best = plan.best[0]
    for j, value in enumerate(plan.arms):
        mask = sum(1 << state.arms.index(name) for name in best.arms)
        other = table.gain[mask ^ 1 << j, best.seeds - 2]
        assert value.adds == pytest.approx(abs(best.gain - other), abs=1e-12)
        assert value.included == (state.arms[j] in best.arms)
        assert value.affordable == table.affordable[mask | 1 << j, best.seeds - 2]


def test_sensitivity_to_the_prior(state):
    plan = design(state)
    assert len(plan.sensitivity) == 3 + 6
    assert all(0 < other.kept <= 1 for other in plan.sensitivity)
    flat = plan.sensitivity[0]
    table = catalogue(state_of((1 / 6,) * 6, np.eye(6)))
    assert flat.best.efficiency == pytest.approx(table.efficiency.max())


def test_nothing_affordable():
    with pytest.raises(BudgetError, match=r"cheapest costs 2\.3"):
        design(state_of((0.5, 0.5), np.eye(2), limits=(paper_limit(1),)))
    signatures = np.maximum(np.eye(10), np.eye(10, k=1))
    with pytest.raises(BudgetError, match=r"cheapest costs 2\.3"):
        design(state_of((0.1,) * 10, signatures, limits=(paper_limit(1),)))


@pytest.mark.parametrize("overlap", [0.0, 0.25])
@pytest.mark.parametrize("budget", [4, 6, 8])
def test_search_and_proof_find_what_listing_finds(overlap, budget):
    rng = np.random.default_rng(budget)
    for concentration in (1.0, 5.0):
        prior, signatures = random_state(rng, 6, overlap, concentration)
        state = state_of(prior, signatures, limits=(paper_limit(budget),))
        best = catalogue(state).efficiency.max()
        found = search_designs(state)
        proof = prove(state)
        assert found.efficiency >= 0.999 * best
        assert proof.efficiency == pytest.approx(best, rel=1e-9)
        assert proof.bound == pytest.approx(best, rel=1e-9)


def test_proof_with_costs_that_differ_and_several_limits():
    rng = np.random.default_rng(4)
    for seed in range(6):
        prior, signatures = random_state(rng, 5, 0.3, 1.0)
        cost = LinearCost(per_arm=tuple(rng.uniform(0, 2, 5).round(2)), per_seed=0.1)
        hours = Limit(unit="hours", budget=30, cost=LinearCost(setup=0, per_arm=0, per_run=1))
        limits = (Limit(budget=3 + seed, cost=cost), hours)
        state = state_of(prior, signatures, limits=limits)
        best = catalogue(state).efficiency.max()
        proof = prove(state, start=search_designs(state))
        assert proof.efficiency == pytest.approx(best, rel=1e-9)
        assert proof.bound == pytest.approx(best, rel=1e-9)


def test_a_proof_that_is_cut_short_still_bounds():
    rng = np.random.default_rng(9)
    prior, signatures = random_state(rng, 6, 0.2, 1.0)
    state = state_of(prior, signatures)
    best = catalogue(state).efficiency.max()
    cut = prove(state, start=search_designs(state), evaluations=90)
    assert len(cut.seen) <= 90
    assert cut.efficiency <= best * (1 + 1e-12)
    assert cut.bound >= best * (1 - 1e-12)


def test_evaluations_are_counted_and_kept():
    rng = np.random.default_rng(2)
    prior, signatures = random_state(rng, 12, 0.2, 1.0)
    found = search_designs(state_of(prior, signatures), evaluations=17)
    assert len(found.seen) == 17


def test_many_arms_are_searched():
    prior = tuple(np.random.default_rng(0).dirichlet(np.ones(18)))
    plan = design(state_of(prior, identity(18)))
    assert not plan.complete
    assert plan.bound == pytest.approx(plan.best[0].efficiency)
    likeliest = sorted(range(18), key=lambda j: -prior[j])[: len(plan.best[0].arms)]
    assert {f"a{j}" for j in likeliest} == set(plan.best[0].arms)


def test_normal_outcomes_are_planned_with_their_error():
    state = state_of(
        (0.5, 0.3, 0.2), np.eye(3), outcomes=GaussianOutcomes(noise=1.0), seeds=(2, 4)
    )
    plan = design(state)
    assert 0 < plan.best[0].error < 1e-7


def test_price_tables_are_listed_and_not_searched(tmp_path):
    prices = [
        {"arms": ["a0"], "seeds": 4, "cost": 2},
        {"arms": ["a0", "a1"], "seeds": 4, "cost": 3},
    ]
    data = state_to_json(state_of((0.5, 0.5), np.eye(2))) | {"cost": {"designs": prices}}
    state = parse_state(data)
    assert design(state).best[0].arms in {("a0",), ("a0", "a1")}
    assert parse_state(state_to_json(state)) == state
    with pytest.raises(InputError, match="price table"):
        search_designs(state)


def test_an_assessment_of_a_file():
    assert assess(EXAMPLE, "run ema with 4 seeds").readings[0].option.cost == 12.25


def test_an_assessment(state):
    found = assess(state, "TARGET: residual")
    assert [reading.option.seeds for reading in found.readings] == [2, 8]
    assert found.ambiguity == 0.5
    assert found.efficiency["conservative"] < found.efficiency["permissive"]
    assert len(found.missing) == 2
    best = assess(state, f"ARMS: {','.join(found.best.arms)}\nSEEDS: {found.best.seeds}")
    assert best.efficiency["default"] == pytest.approx(1)
    assert best.missing == ()
    assert best.gaps.total == pytest.approx(0, abs=1e-12)
    assert best.to_json()["readings"][0]["affordable"]


def test_an_assessment_where_designs_cannot_be_listed():
    prior, signatures = random_state(np.random.default_rng(5), 11, 0.2, 1.0)
    found = assess(state_of(prior, signatures), "run a3 and a4 with 5 seeds")
    assert found.gaps is None
    assert 0 < found.efficiency["default"] <= 1
    assert found.to_json()["gaps"] is None


def test_state_files_round_trip(tmp_path, state):
    example = read_state(EXAMPLE)
    for one in (example, state):
        assert parse_state(state_to_json(one)) == one


GOOD = """
arms = ["x", "y"]
budget = 8
[[hypotheses]]
name = "a"
signature = { x = 1 }
[[hypotheses]]
name = "b"
signature = [0, 1]
"""


TWICE = """[
    { arms = ["x", "y"], seeds = 4, cost = 1 }, { arms = ["y", "x"], seeds = 4, cost = 9 },
]"""


def test_what_a_cost_table_leaves_out_is_0():
    data = tomllib.loads(GOOD)
    assert parse_state(data).limits == (paper_limit(8),)
    hours = {"unit": "h", "per_run": 1}
    state = parse_state(data | {"cost": hours, "limits": [{"unit": "usd", "budget": 9} | hours]})
    rule = LinearCost(setup=0, per_arm=0, per_seed=0, per_run=1)
    assert [limit.cost for limit in state.limits] == [rule, rule]
    assert cost(state, Design((0,), 5)) == 10


def test_a_design_without_a_price_is_named_so():
    rows = [{"arms": ["x"], "seeds": 4, "cost": 2}]
    state = parse_state(tomllib.loads(GOOD) | {"cost": {"designs": rows}})
    found = assess(state, "run y with 4 seeds").to_json()
    assert found["readings"][0]["cost"] is None
    assert not found["readings"][0]["affordable"]
    json.dumps(found, allow_nan=False)
    rows[0]["cost"] = 9
    with pytest.raises(BudgetError, match=r"the cheapest costs 9 units \(x; 4 seeds\)"):
        design(parse_state(tomllib.loads(GOOD) | {"cost": {"designs": rows}}))


def test_no_design_has_a_price_in_every_unit():
    def rows(name):
        return {"designs": [{"arms": [name], "seeds": 4, "cost": 2}]}

    data = tomllib.loads(GOOD)
    usd = {"unit": "usd", "budget": 1}
    apart = data | {"cost": rows("x"), "limits": [usd | rows("y")]}
    with pytest.raises(BudgetError, match="none has a price in every unit"):
        design(parse_state(apart))
    both = data | {"limits": [usd | rows("y")]}
    with pytest.raises(BudgetError, match=r"3 units \(y; 4 seeds\), .* 2 of 1 usd"):
        design(parse_state(both))


def test_a_prior_that_is_left_out_is_flat(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(GOOD)
    assert read_state(path).prior == (0.5, 0.5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('name = "a"', 'name = "a"\nprior = 0.5'), "prior: found for 1 of 2"),
        (("x = 1", "x = 1.9"), "a: x: found 1.9, allowed: 0 to 1"),
        (("x = 1", "x = -2"), "a: x: found -2, allowed: 0 to 1"),
        (("x = 1", "z = 1"), "signature of a: arm: found 'z', allowed: x, y"),
        (("budget = 8", "budget = -8"), "budget of units: found -8"),
        (("budget = 8", 'budget = "8"'), "Expected `float`"),
        (("budget = 8", "budgets = 8"), "unknown field `budgets`"),
        (("budget = 8", "budget = 8\nseeds = [3]"), "seeds"),
        (("budget = 8", "budget = 8\ncost.per_arm = { x = 1 }"), "'y' is missing"),
        (("budget = 8", "budget = 8\ncost.per_arm = -1"), "per_arm: found -1"),
        (("budget = 8", "budget = 8\ncost.unit = 'h'"), "cost: found no price of h"),
        (("budget = 8", "budget = 8\nlimits = [{ budget = 5 }]"), "limits: found no price"),
        (("budget = 8", "budget = 8\ncost = { per_run = 1, designs = [] }"), "found per_run bes"),
        (("budget = 8", "budget = 8\ncost.designs = []"), "cost.designs: found no row"),
        (
            ("budget = 8", f"budget = 8\ncost.designs = {TWICE}"),
            "y, x with 4 seeds is listed twice",
        ),
        (("budget = 8", 'budget = 8\noutcomes.kind = "coin"'), "outcomes.kind"),
        (
            ("budget = 8", 'budget = 8\noutcomes = { kind = "gaussian", values = [1] }'),
            "with kind = 'grid' only",
        ),
        (("signature =", "prior = 0.3333\nsignature ="), "0.333 below 1; divide each by the sum"),
        (("budget = 8", "budget = "), "cannot be read"),
    ],
)
def test_wrong_files_are_named_with_their_key(tmp_path, change, message):
    path = tmp_path / "s.toml"
    path.write_text(GOOD.replace(*change))
    with pytest.raises(InputError, match=message) as caught:
        read_state(path)
    assert str(path) in str(caught.value)


NUMBERS = st.one_of(
    st.integers(-3, 15), st.floats(), st.sampled_from([0, 1, 0.5, 1e-300, 1e300, 10**30])
)
VALUES = st.one_of(NUMBERS, st.text(max_size=4), st.lists(NUMBERS, max_size=3), st.none())


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["budget", "seeds", "arms", "cost", "limits", "outcomes", "hypotheses"]),
        VALUES,
        max_size=2,
    ),
    st.dictionaries(st.sampled_from(["setup", "per_arm", "per_seed", "per_run"]), NUMBERS),
    st.dictionaries(st.sampled_from(["noise", "values"]), VALUES),
)
def test_no_state_crashes(changes, cost, outcomes):
    data = tomllib.loads(GOOD) | {"cost": cost, "outcomes": outcomes, "seeds": [2, 4]} | changes
    try:
        plan = design(parse_state(data))
    except (InputError, BudgetError):
        return
    assert plan.best[0].gain >= -1e-9


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_state(tmp_path / "none.toml")
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 100_000)
    with pytest.raises(InputError, match="cannot be read"):
        read_state(deep)
