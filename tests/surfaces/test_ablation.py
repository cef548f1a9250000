from __future__ import annotations

import json
import os
import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlay.errors import BudgetError, InputError, NothingUsableError, StoreError
from outlay.surfaces.ablation import Ablation, ablate
from outlay.surfaces.factors import Inactive
from outlay.surfaces.measurements import KNOWN_DF, Noise
from outlay.surfaces.surface import Surface
from outlay.task import Budget

NAMES = ["a", "b", "c", "d"]


def program(config):
    return 1 + 2 * config["a"] - config["b"] + 0.5 * config["c"] * config["a"]


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


def test_a_program_that_raises_or_returns_nan_marks_the_cell_and_goes_on():
    def fragile(config):
        if config["a"] and config["b"]:
            raise RuntimeError("boom")
        return float("nan") if config["c"] else program(config)

    calls = []

    def counted(config):
        calls.append(config)
        return fragile(config)

    surface = ablate(counted, NAMES, 12, direction="maximize")
    assert len(surface.measurements) == len(calls) == 12
    reasons = {taken.reason for taken in surface.measurements}
    assert "RuntimeError: boom" in reasons
    assert "metric value: found nan, allowed: a finite number" in reasons
    failed = surface.table().query("failed != ''")
    assert len(failed) == sum(bool(taken.reason) for taken in surface.measurements)
    assert not failed.measured.any()
    assert surface.best().config["a"] + surface.best().config["b"] < 2
    assert len({tuple(call.values()) for call in calls}) == 12


def test_whatever_a_program_does_is_a_finding_about_one_configuration():
    def odd(config):
        if config["a"]:
            raise SystemExit(2)
        if config["b"]:
            return {"loss": 1.0}
        return {"score": np.array(1.0 + config["c"])}

    surface = ablate(odd, NAMES, 16)
    reasons = {taken.reason for taken in surface.measurements}
    assert reasons == {"", "SystemExit: 2", "metric: found loss, allowed: score"}
    works = [taken.config for taken in surface.measurements if not taken.reason]
    assert len(works) == 4  # all that there are
    assert surface.effects().set_index("factor").effect["c"] > 0.2
    assert surface.blamed() == [[{"a": True}, {"b": True}]]


@pytest.mark.parametrize("names", [["cache", *"abcd"], [*"abcd", "cache", "e"]])
def test_an_option_that_always_breaks_does_not_eat_the_budget(names):
    def fragile(config):
        if config["cache"]:
            raise RuntimeError("no cache")
        return 1 + 2 * config["b"] - config["c"]

    surface = ablate(fragile, names, 24, direction="maximize")
    failed = [taken for taken in surface.measurements if taken.reason]
    good = len(surface.measurements) - len(failed)
    assert len(failed) <= 6
    assert good == min(2 ** (len(names) - 1), 24 - len(failed))
    assert surface.blamed() == [[{"cache": True}]]
    assert "every one measured with cache=True failed, no other" in repr(surface)
    assert not surface.best().config["cache"]


def test_a_metric_by_another_name_costs_one_call():
    calls = []

    def program_of(config):
        calls.append(config)
        return {"score": 1.0}

    with pytest.raises(InputError, match="found score, allowed: loss"):
        ablate(program_of, NAMES, 8, metric="loss")
    assert len(calls) == 1


@pytest.mark.parametrize("size", [1e-320, 1e69])
def test_values_of_any_size_are_read(size):
    effects = ablate(lambda c: size * c["a"], NAMES, 16).effects().set_index("factor").effect
    assert effects["a"] == pytest.approx(size)
    with pytest.raises(NothingUsableError, match="at most 1e\\+70"):
        ablate(lambda c: 1e308, NAMES, 2)


def test_what_costs_nothing_is_bought_first():
    surface = ablate(program, NAMES, 8, cost=lambda c: 5.0 * c["d"])
    assert sum(bool(t.config["d"]) for t in surface.measurements) <= 2


def test_if_everything_fails_nothing_is_invented():
    def broken(config):
        raise ValueError("no data")

    with pytest.raises(NothingUsableError, match="ValueError: no data"):
        ablate(broken, NAMES, 3)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"factors": []}, "at least one name"),
        ({"factors": "abc"}, "a list of names"),
        ({"factors": ["a", "a"]}, "every name once"),
        ({"factors": {"a": [1]}}, "at least two levels"),
        ({"factors": {"a": [1, 1]}}, "every level once"),
        ({"budget": 0}, "at least 1"),
        ({"budget": 17}, "at most 16"),
        ({"budget": True}, "a number of measurements"),
        ({"budget": Budget()}, "attempts, seconds or usd"),
        ({"budget": Budget(seconds=float("nan"))}, "a finite number"),
        ({"budget": Budget(attempts=2.5)}, "a whole number"),
        ({"noise": 10**400}, "a standard deviation"),
        ({"save": 5}, "a file in a folder"),
        ({"save": "/"}, "a file in a folder"),
        ({"cost": lambda config: 10**400}, "US dollars"),
        ({"budget": Budget(tokens=5)}, "attempts, seconds or usd"),
        ({"budget": Budget(usd=5.0)}, "cost"),
        ({"direction": "up"}, "maximize or minimize"),
        ({"noise": -0.1}, "at least 0"),
        ({"factors": 3}, "a list of names"),
        ({"factors": {"a", "b"}}, "a list of names"),
        ({"factors": {"a": 3}}, "at least two levels"),
        ({"factors": {"a": [[1], [2]]}}, "numbers, texts or bools"),
        ({"factors": {"a": [float("nan"), 1.0]}}, "numbers, texts or bools"),
        ({"equalities": [("a", "b")]}, "Inactive"),
        ({"equalities": [Inactive(factor="a", when="a")]}, "another factor"),
        ({"seed": -1}, "at least 0"),
        ({"save": "/nowhere/surface.json"}, "a folder that there is"),
        ({"budget": Budget(usd=1.0), "cost": lambda config: -1.0}, "at least 0"),
        ({"budget": Budget(usd=1.0), "cost": 2.0}, "cost: found 2.0, allowed: a function"),
        ({"cost": lambda config: config["gpu"]}, "cost: raised KeyError: 'gpu' for {'a': False"),
        ({"cost": lambda config: None}, "found None, allowed: US dollars"),
        ({"cost": lambda config: "5"}, "found '5', allowed: US dollars"),
        ({"cost": lambda config: float("nan")}, "found nan, allowed: US dollars"),
        ({"prior": "surface.json"}, "prior: found 'surface.json', allowed: a Surface"),
        ({"prior": [None]}, "prior: found None, allowed: a Surface"),
        ({"prior": 3}, "prior: found 3, allowed: a Surface"),
        ({"seed": 1.5}, "a whole number"),
        ({"metric": ["loss"]}, "the name of one"),
        ({"equalities": 3}, "a list of Inactive"),
        ({"save": 3}, "save: found 3, allowed: a file"),
        ({"noise": float("nan")}, "at least 0"),
        ({"equalities": [Inactive(factor="zz")]}, "a, b, c, d"),
        ({"equalities": [Inactive(factor="a", when="b", at=3)]}, "False, True"),
    ],
)
def test_a_wrong_argument_is_refused_before_any_call(arguments, part):
    def never(config):
        raise AssertionError("called")

    with pytest.raises(InputError, match=re.escape(part)):
        ablate(never, **({"factors": NAMES, "budget": 4} | arguments))


def test_the_best_needs_a_direction():
    surface = ablate(program, NAMES, 4)
    with pytest.raises(InputError, match="maximize or minimize"):
        surface.best()


def test_several_metrics_need_a_name_and_one_is_enough(tmp_path):
    def metrics(config):
        return {"loss": -program(config), "time": 1.0}

    with pytest.raises(InputError, match="loss, time"):
        ablate(metrics, NAMES, 4)
    with pytest.raises(InputError, match="loss, time"):
        ablate(metrics, NAMES, 4, save=tmp_path / "kept.json")
    assert len(Surface.load(tmp_path / "kept.json").measurements) == 1
    with pytest.raises(InputError, match="found loss, time, allowed: speed"):
        ablate(metrics, NAMES, 2, metric="speed")
    surface = ablate(metrics, NAMES, 8, metric="loss", direction="minimize")
    assert surface.metric == "loss"
    assert surface.best().config["a"]
    assert ablate(lambda c: {"only": program(c)}, NAMES, 4).metric == "only"


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


def test_saving_continues_and_loading_gives_the_same_surface(tmp_path):
    file, calls = tmp_path / "surface.json", []

    def counted(config):
        calls.append(config)
        return program(config)

    ablate(counted, NAMES, 5, save=file, direction="maximize")
    whole = ablate(counted, NAMES, 9, save=file, direction="maximize")
    assert len(calls) == 9
    assert [taken.config for taken in whole.measurements] == calls
    assert calls == [taken.config for taken in ablate(program, NAMES, 9).measurements]
    loaded = Surface.load(file)
    assert loaded.table().equals(whole.table())
    assert loaded.best() == whole.best()
    with pytest.raises(InputError, match="other factors"):
        ablate(counted, ["x", "y"], 3, save=file)


def test_an_interrupt_keeps_what_was_bought(tmp_path):
    file, calls = tmp_path / "surface.json", []

    def interrupted(config):
        calls.append(config)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return program(config)

    with pytest.raises(KeyboardInterrupt):
        ablate(interrupted, NAMES, 8, save=file)
    assert len(Surface.load(file).measurements) == 3


@pytest.mark.parametrize("text", ["{", "{}", '{"format": 99}', "[]"])
def test_a_file_that_is_no_surface_is_refused(tmp_path, text):
    file = tmp_path / "wrong.json"
    file.write_text(text)
    with pytest.raises(InputError, match="cannot load"):
        Surface.load(file)


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


def test_a_price_that_fails_later_loses_nothing_that_was_bought(tmp_path):
    file = tmp_path / "surface.json"

    def price(config):
        if config["b"] and not config["a"]:
            raise OSError("no quota")
        return 1.0

    with pytest.raises(InputError, match="cost: raised OSError: no quota for"):
        ablate(program, NAMES, 8, cost=price, save=file)
    assert len(Surface.load(file).measurements) == 2


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


def test_a_program_that_breaks_at_both_starting_points_alike_is_called_no_further(tmp_path):
    calls, save = [], tmp_path / "surface.json"

    def forgets_to_return(config):
        calls.append(config)

    with pytest.raises(NothingUsableError, match=r"both starting points .* found None"):
        ablate(forgets_to_return, NAMES, 12, save=save)
    assert len(calls) == 2
    assert len(ablate(program, NAMES, 4, save=save).measurements) == 4  # mended, begun again

    def breaks_each_time_otherwise(config):
        raise ValueError(str(sum(config.values())))

    with pytest.raises(NothingUsableError, match=r"0; .*4"):
        ablate(breaks_each_time_otherwise, NAMES, 4)


def test_a_save_file_is_for_one_process_at_a_time(tmp_path):
    save = tmp_path / "surface.json"
    calls = []

    def nested(config):
        calls.append(config)
        with pytest.raises(StoreError, match=f"surface.json: in use by process {os.getpid()} "):
            ablate(program, NAMES, 4, save=save)
        return program(config)

    ablate(nested, NAMES, 2, save=save)
    assert len(calls) == 2
    assert len(ablate(program, NAMES, 4, save=save).measurements) == 4


def test_a_folder_that_cannot_be_written_is_found_before_any_call():
    with pytest.raises(StoreError, match=r"cannot be written: .*; name another with save="):
        ablate(lambda config: pytest.fail("called"), NAMES, 2, save="/proc/self/surface.json")
    with pytest.raises(StoreError, match="cannot be written"):
        ablate(program, NAMES, 2).save("/nope/surface.json")


def test_a_save_file_of_another_program_is_refused_before_any_call(tmp_path):
    save = tmp_path / "surface.json"
    ablate(lambda c: {"loss": program(c), "size": 1.0}, NAMES, 3, metric="loss", save=save)
    for metric, part in (("score", "'score' is missing"), (None, "one of loss, size")):
        with pytest.raises(InputError, match=f"surface.json: metric: .*{part}.*another file"):
            ablate(lambda c: pytest.fail("called"), NAMES, 6, metric=metric, save=save)
    ablation = Ablation(["a"], budget=4, noisy=True)
    for value in (1.0, 2.0):
        ablation.tell({"a": True}, value)
    ablation.surface().save(save)
    with pytest.raises(InputError, match=r"found 2 after 1 .*noisy=True"):
        ablate(lambda c: pytest.fail("called"), ["a"], 2, save=save)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("seed", "x"),
        ("seed", -1),
        ("metric", 5),
        ("direction", "up"),
        ("noise", ["x", 0]),
        ("noise", [-1.0, 0]),
        ("earlier", [["x"]]),
        ("extra", 1),
        ("measurements", [{"config": {"zz": True}, "metrics": {"value": 1.0}}]),
        ("measurements", [{"config": {}, "metrics": {"value": "x"}}]),
        ("measurements", [{"config": {}, "metrics": {}}]),
        ("measurements", [{"config": {}, "metrics": {"value": 1.0}, "seconds": -1}]),
    ],
)
def test_a_save_file_with_a_wrong_field_is_refused(key, value, tmp_path):
    path = tmp_path / "surface.json"
    ablate(program, NAMES, 3).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(InputError, match="cannot load a surface"):
        Surface.load(path)


@pytest.mark.parametrize(
    "found", [10**400, -(10**5000), 1e300, float("inf"), None, "5"], ids=range(6)
)
def test_values_that_are_none_are_failed_measurements(found):
    surface = ablate(lambda c: found if c["a"] and not c["b"] else program(c), NAMES, 16)
    assert {taken.reason.split(":")[0] for taken in surface.measurements} == {"", "metric value"}


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
