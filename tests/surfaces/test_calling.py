from __future__ import annotations

import json
import os
import re

import numpy as np
import pytest

from outlay.errors import InputError, NothingUsableError, StoreError
from outlay.surfaces.ablation import Ablation
from outlay.surfaces.calling import ablate
from outlay.surfaces.factors import Inactive
from outlay.surfaces.surface import Surface
from outlay.task import Budget
from tests.surfaces.programs import NAMES, program


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


def test_a_price_that_fails_later_loses_nothing_that_was_bought(tmp_path):
    file = tmp_path / "surface.json"

    def price(config):
        if config["b"] and not config["a"]:
            raise OSError("no quota")
        return 1.0

    with pytest.raises(InputError, match="cost: raised OSError: no quota for"):
        ablate(program, NAMES, 8, cost=price, save=file)
    assert len(Surface.load(file).measurements) == 2


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
