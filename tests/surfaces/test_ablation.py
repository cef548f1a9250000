from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlay.errors import BudgetError, InputError, NothingUsableError
from outlay.surfaces.ablation import Ablation
from outlay.surfaces.calling import ablate
from outlay.surfaces.factors import Inactive
from outlay.surfaces.measurements import KNOWN_DF, Noise
from outlay.surfaces.surface import Surface
from outlay.task import Budget
from tests.surfaces.programs import NAMES, program


def test_all_configurations_measured_give_exact_effects_and_the_true_best():
    surface = ablate(program, NAMES, 16, direction="maximize")
    effects = surface.effects().set_index("factor").effect
    assert effects["a"] == pytest.approx(2.25)
    assert effects["b"] == pytest.approx(-1)
    assert effects["d"] == pytest.approx(0)
    table = surface.interactions().set_index(["first", "second"]).interaction
    assert table["a", "c"] == pytest.approx(0.5)
    assert table["a", "b"] == pytest.approx(0)
    assert surface.best().config == {"a": True, "b": False, "c": True, "d": False}
    assert surface.best().probability > 0.99
    assert repr(surface) == "<Surface of a, b, c, d: 16 good measurements, 16 configurations>"


@pytest.mark.parametrize(("names", "gain"), [(["a"], 0.0), (["a"], 2.0), (["a", "b"], 0.0)])
def test_averages_over_measurements_alone_are_exact(names, gain):
    effects = ablate(lambda config: 1.0 + gain * config["a"], names, 2 ** len(names)).effects()
    assert effects.effect[0] == pytest.approx(gain)
    assert (effects.effect_low == effects.effect_high).all()


def test_rounding_is_no_effect():
    surface = ablate(lambda c: 0.1 + 0.2 * c["a"] + 0.3 * c["b"], ["a", "b", "c"], 8)
    assert surface.effects().effect[2] == 0
    assert (surface.interactions().interaction == 0).all()
    conditional = surface.effects("conditional").set_index("factor").effect
    assert (conditional["c"] == 0).all()


def test_a_few_measurements_predict_the_rest():
    surface = ablate(program, NAMES, 10, direction="maximize")
    for levels in product([False, True], repeat=4):
        config = dict(zip(NAMES, levels, strict=True))
        assert abs(surface.predict(config).mean - program(config)) < 0.5
    assert surface.best().config["a"]
    assert not surface.best().config["b"]


def test_the_table_marks_what_is_measured():
    surface = ablate(program, NAMES, 6)
    table = surface.to_pandas()
    assert len(table) == 16
    assert table.measured.sum() == 6
    measured = table[table.measured]
    assert (measured.low == measured["mean"]).all()
    assert (table[~table.measured].low < table[~table.measured]["mean"]).all()
    assert [program(row) for row in measured[NAMES].to_dict("records")] == pytest.approx(
        measured["mean"].tolist()
    )


def test_conditional_effects_between_two_measured_cells_are_exact():
    table = ablate(program, NAMES, 8).effects("conditional")
    assert len(table) == 32
    measured = table[table.measured]
    assert len(measured)
    assert (measured.effect_low == measured.effect_high).all()


@pytest.mark.parametrize("size", [1e-320, 1e69])
def test_values_of_any_size_are_read(size):
    effects = ablate(lambda c: size * c["a"], NAMES, 16).effects().set_index("factor").effect
    assert effects["a"] == pytest.approx(size)
    with pytest.raises(NothingUsableError, match="at most 1e\\+70"):
        ablate(lambda c: 1e308, NAMES, 2)


def test_what_costs_nothing_is_bought_first():
    surface = ablate(program, NAMES, 8, cost=lambda c: 5.0 * c["d"])
    assert sum(bool(t.config["d"]) for t in surface.measurements) <= 2


def test_the_best_needs_a_direction():
    surface = ablate(program, NAMES, 4)
    with pytest.raises(InputError, match="maximize or minimize"):
        surface.best()


def test_factors_with_several_levels():
    def score(config):
        return {"lr": 0.0, "rf": 2.0, "svm": 1.0}[config["model"]] + config["scale"]

    surface = ablate(
        score, {"model": ["lr", "rf", "svm"], "scale": [False, True]}, 6, direction="maximize"
    )
    assert surface.best().config == {"model": "rf", "scale": True}
    effects = surface.effects().set_index(["factor", "level"]).effect
    assert effects["model", "rf"] == pytest.approx(2)
    assert effects["model", "svm"] == pytest.approx(1)


def test_declared_equalities_are_not_bought_twice():
    def gated(config):
        return program(config) + 3 * config["d"] * config["c"]

    rule = Inactive(factor="d", when="c", at=False)
    surface = ablate(gated, NAMES, 12, equalities=[rule])
    bought = [tuple(taken.config.values()) for taken in surface.measurements]
    folded = [(a, b, c, d and c) for a, b, c, d in bought]
    assert len(set(folded)) == 12
    for levels in product([False, True], repeat=4):
        config = dict(zip(NAMES, levels, strict=True))
        assert surface.predict(config).mean == pytest.approx(gated(config), abs=0.01)


def test_structure_is_found_from_exact_ties():
    def gated(config):
        value = np.sin(3 * config["a"] + 5 * config["b"]) + config["c"]
        return value + (config["a"] and 0.3 * config["d"] * (1 + config["b"]))

    entries, probability = ablate(gated, NAMES, 14).structure()[0]
    assert Inactive(factor="d", when="a", at=False) in entries
    assert probability > 0.5


def test_money_and_seconds_limit_the_run_and_cheap_measurements_are_preferred():
    surface = ablate(
        program,
        NAMES,
        Budget(usd=5.0),
        cost=lambda config: 2.0 if config["d"] else 0.5,
    )
    spent = sum(taken.usd for taken in surface.measurements)
    assert 4.0 < spent <= 5.0
    assert sum(taken.config["d"] for taken in surface.measurements) <= 2
    with pytest.raises(BudgetError, match="does not pay for one"):
        ablate(program, NAMES, Budget(usd=0.1), cost=lambda config: 1.0)
    ticks = iter(range(1000))
    surface = ablate(program, NAMES, Budget(seconds=5), clock=lambda: float(next(ticks)))
    assert len(surface.measurements) == 5


def test_what_the_money_does_not_pay_for_gives_way_to_what_it_does():
    surface = ablate(
        program, NAMES, Budget(usd=3.5), cost=lambda config: 3.0 if config["a"] else 1.0
    )
    assert [taken.usd for taken in surface.measurements] == [1.0, 1.0, 1.0]


def test_a_suggestion_says_what_it_tells_and_costs():
    ablation = Ablation(NAMES, budget=6, cost=lambda config: 0.25 + config["a"])
    first, last = ablation.ask(2)
    assert (first.gain, first.usd, first.reason) == (None, 0.25, "a starting point")
    assert (last.gain, last.usd) == (None, 1.25)
    for suggestion in (first, last):
        ablation.tell(suggestion.config, program(suggestion.config))
    (found,) = ablation.ask()
    assert 0 < found.gain < 1
    assert found.usd == 0.25 + found.config["a"]
    assert found.reason == f"leaves the effects {found.gain:.0%} less uncertain in sum"


def test_noise_is_smoothed_and_repeats_are_allowed():
    rng = np.random.default_rng(0)

    def noisy(config):
        return program(config) + 0.3 * rng.normal()

    surface = ablate(noisy, NAMES, 40, noisy=True, direction="maximize")
    assert len(surface.measurements) == 40
    assert surface.table().repeats.max() > 1
    assert surface.effects().set_index("factor").effect["a"] == pytest.approx(2.25, abs=0.5)
    measured = surface.table().query("measured")
    assert (measured.high > measured.low).all()


@pytest.mark.parametrize("sd", [1e-9, 0.05])
def test_known_noise_gives_narrower_intervals_that_still_hold(sd, tmp_path):
    rng = np.random.default_rng(0)

    def noisy(config):
        return program(config) + sd * rng.normal()

    surface = ablate(noisy, NAMES, 10, noise=sd)
    unsure = Surface(surface.factors, surface.measurements, noise=Noise())
    known, unknown = (s.effects("conditional") for s in (surface, unsure))
    reach = (known.effect_high - known.effect_low).mean()
    assert reach < (unknown.effect_high - unknown.effect_low).mean()
    true = {"a": 2.25, "b": -1.0}
    for row in surface.effects().itertuples():
        if row.factor in true:
            assert row.effect_low < true[row.factor] < row.effect_high
    surface.save(tmp_path / "noisy.json")
    assert Surface.load(tmp_path / "noisy.json").noise == Noise(sd, KNOWN_DF)


@pytest.mark.parametrize("how", [{"noise": 0.3}, {"noisy": True}])
def test_under_noise_averages_over_what_is_measured_hold_the_truth_as_often_as_they_say(how):
    held = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        main, pair = rng.normal(size=2), rng.normal() / 2

        def noisy(config, rng=rng, main=main, pair=pair):
            a, b = config.values()
            return main[0] * a + main[1] * b + pair * a * b + 0.3 * rng.normal()

        surface = ablate(noisy, ["a", "b"], 8, seed=seed, **how)
        assert len(surface.readout.exact) == 4
        truth = main + pair / 2
        rows = surface.average_rows
        held += [
            row["effect_low"] <= t <= row["effect_high"]
            for row, t in zip(rows, truth, strict=True)
        ]
        both = surface.interaction_rows[0]
        held.append(both["low"] <= pair <= both["high"])
    assert 0.86 <= np.mean(held) <= 0.97


def test_a_factor_may_bear_the_name_of_a_column():
    names = ["effect", "level", "mean", "config_mean"]
    surface = ablate(lambda c: 1.0 * c["effect"] + 2.0 * c["mean"], names, 16)
    table = surface.effects("conditional")
    assert set(table[table.factor == "effect"].effect.round(9)) == {1.0}
    assert set(table.config_level) == {False, True, ""}
    cells = surface.table()
    assert (cells["mean"] == cells.effect + 2.0 * cells.config_config_mean).all()
    assert set(cells.config_mean) == {False, True}


@pytest.mark.parametrize("d", [4, 6, 8])
def test_every_way_to_read_a_prediction_agrees(d):
    rng = np.random.default_rng(3)
    names, size = [f"f{i}" for i in range(d)], rng.normal(size=d)
    surface = ablate(
        lambda c: float(size @ list(c.values())) + 2 * c["f0"] * c["f1"],
        names,
        9,
        direction="maximize",
    )
    best = surface.best()
    assert surface.predict(best.config).mean == pytest.approx(best.estimate.mean, rel=1e-9)
    for row in surface.table().iloc[::17].to_dict("records"):
        found = surface.predict({name: row[name] for name in names})
        assert (found.mean, found.high) == pytest.approx((row["mean"], row["high"]), rel=1e-9)


def test_an_earlier_surface_of_the_same_workflow_helps():
    def wild(config):
        code = int("".join(str(int(on)) for on in config.values()), 2)
        return float(np.random.default_rng(7).normal(size=16)[code])

    def error(surface):
        configs = [dict(zip(NAMES, x, strict=True)) for x in product([False, True], repeat=4)]
        return np.mean([abs(surface.predict(c).mean - (3 * wild(c) + 1)) for c in configs])

    earlier = ablate(wild, NAMES, 16)

    def later(config):
        return 3 * wild(config) + 1

    assert error(ablate(later, NAMES, 6, prior=earlier)) < 0.3 * error(ablate(later, NAMES, 6))
    with pytest.raises(InputError, match="no factor of the same name"):
        ablate(later, ["x", "y"], 3, prior=earlier)


def test_ask_and_tell_refuse_an_over_budget_batch_whole():
    ablation = Ablation(NAMES, budget=3)
    with pytest.raises(BudgetError, match="exceed the 3"):
        ablation.ask(4)
    with pytest.raises(InputError, match="at least 1"):
        ablation.ask(0)
    assert ablation.remaining == 3
    asked = ablation.ask(2)
    assert ablation.remaining == 1
    assert [s.config for s in asked] == [
        dict.fromkeys(NAMES, False),
        dict.fromkeys(NAMES, True),
    ]
    for suggestion in asked:
        ablation.tell(suggestion.config, program(suggestion.config))
    ablation.fail(ablation.ask()[0].config, "out of memory")
    assert ablation.remaining == 0
    with pytest.raises(BudgetError, match="spent"):
        ablation.tell({"a": True, "b": True}, 1.0)
    assert len(ablation.measurements) == 3


@pytest.mark.parametrize(
    ("config", "value", "part"),
    [
        ({"zz": True}, 1.0, "a, b, c, d"),
        ({"a": 5}, 1.0, "False, True"),
        ({"a": True}, float("inf"), "finite"),
        ({"a": True}, "high", "a number"),
        ({"a": True}, {}, "a number or names"),
    ],
)
def test_a_wrong_tell_records_nothing(config, value, part):
    ablation = Ablation(NAMES, budget=3)
    with pytest.raises(InputError, match=re.escape(part)):
        ablation.tell(config, value)
    assert ablation.measurements == []
    assert ablation.remaining == 3


def test_a_batch_holds_different_configurations():
    ablation = Ablation(NAMES, budget=10)
    for suggestion in ablation.ask(2):
        ablation.tell(suggestion.config, program(suggestion.config))
    batch = [tuple(s.config.values()) for s in ablation.ask(5)]
    assert len(set(batch)) == 5


@pytest.mark.parametrize("noisy", [False, True])
def test_what_is_in_flight_counts_as_measured(noisy):
    ablation, slow = (Ablation(NAMES, budget=12, noisy=noisy) for _ in range(2))
    for one in (ablation, slow):
        for suggestion in one.ask(2):
            one.tell(suggestion.config, program(suggestion.config))
    batch = ablation.ask(6)
    assert [*slow.ask(3), *slow.ask(3)] == batch
    assert len({tuple(s.config.values()) for s in batch}) == 6
    started = Ablation(NAMES, budget=12, noisy=noisy)
    first = [s.config for s in (*started.ask(2), *started.ask(2), *started.ask(2))]
    assert all(first.count(config) == 1 for config in first)


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 4), st.integers(0, 10**6), st.booleans())
def test_any_program_is_reproduced_at_measured_cells_and_runs_repeat(d, seed, flat):
    rng = np.random.default_rng(seed)
    values = np.zeros(2**d) if flat else rng.normal(size=2**d) * 10.0 ** rng.integers(-8, 8)
    names = NAMES[:d]

    def lookup(config):
        return float(values[int("".join(str(int(config[n])) for n in names), 2)])

    first = ablate(lookup, names, 2**d - 1)
    assert first.measurements[0].config == dict.fromkeys(names, False)
    assert [t.config for t in first.measurements] == [
        t.config for t in ablate(lookup, names, 2**d - 1).measurements
    ]
    for taken in first.measurements:
        assert first.predict(taken.config).mean == lookup(taken.config)


@pytest.mark.parametrize(("count", "levels"), [(40, 2), (20, 4)])
def test_the_largest_spaces_fit_into_memory(count, levels):
    factors = {f"f{i}": list(range(levels)) for i in range(count)}
    surface = ablate(lambda c: float(c["f0"]), factors, 4, direction="maximize")
    assert len(surface.average_rows) == count * (levels - 1)
    assert surface.predict({"f0": levels - 1}).mean > surface.predict({}).mean
    with pytest.raises(InputError, match=r"at most 2\^40, such as 40 switches; leave out"):
        ablate(program, factors | {"more": [0, 1]}, 4)


def test_large_spaces_work_on_sampled_cells():
    names = [f"f{i}" for i in range(13)]

    def sparse(config):
        return 3.0 * config["f0"] - 2.0 * config["f7"]

    surface = ablate(sparse, names, 16, direction="maximize")
    assert surface.predict(dict.fromkeys(names, True)).mean == pytest.approx(1.0)
    effects = surface.effects().set_index("factor").effect
    assert effects["f0"] > 1.5
    assert effects["f7"] < -1
    assert len(surface.table()) < 1000


@pytest.mark.parametrize("budget", [1, 2])
def test_without_any_difference_seen_nothing_unmeasured_is_claimed(budget, tmp_path):
    surface = ablate(lambda config: 1.0, NAMES, budget)
    estimate = surface.predict({"a": True})
    assert estimate.low == -np.inf
    assert estimate.high == np.inf
    assert surface.predict({}).low == surface.predict({}).high == 1.0
    assert surface.effects().effect_high.tolist() == [np.inf] * 4
    surface.plot("effects").savefig(tmp_path / "effects.png")


@pytest.mark.parametrize("config", [None, 5, [], "a"])
def test_what_is_no_configuration_is_refused(config):
    with pytest.raises(InputError, match="allowed: factors with their levels"):
        ablate(program, NAMES, 3).predict(config)


@pytest.mark.parametrize("k", ["x", 0, True, 1.5])
def test_what_is_no_number_of_proposals_is_refused(k):
    for ask in (ablate(program, NAMES, 3).next, Ablation(NAMES, budget=3).ask):
        with pytest.raises(InputError, match=r"k: found .* at least 1"):
            ask(k)


@pytest.mark.parametrize("spent", [{"seconds": -5}, {"seconds": float("nan")}, {"usd": -1}])
def test_what_is_no_expense_is_refused(spent):
    ablation = Ablation(NAMES, budget=3)
    with pytest.raises(InputError, match="a finite number, at least 0"):
        ablation.tell({}, 1.0, **spent)
    assert not ablation.measurements


def test_a_fresh_batch_is_full():
    ablation = Ablation(["a", "b"], budget=4)
    assert len({tuple(s.config.values()) for s in ablation.ask(4)}) == 4
    late = Ablation(NAMES, budget=6)
    late.tell({}, 1.0)
    batch = late.ask(4)
    assert batch[0].config == dict.fromkeys(NAMES, True)
    assert [s.gain is None for s in batch] == [True, False, False, False]


def test_without_noise_a_configuration_has_one_value():
    ablation = Ablation(["a", "b"], budget=3)
    ablation.tell({"a": True}, 1.0)
    ablation.tell({"a": True}, 1.0)
    assert ablation.remaining == 2
    with pytest.raises(InputError, match=r"found 2 after 1 .*noisy=True"):
        ablation.tell({"a": True}, 2.0)
    assert ablation.remaining == 2
    ablation.fail({"b": True}, "once")
    ablation.tell({"b": True}, 3.0)  # worked when tried again
    assert ablation.remaining == 0
