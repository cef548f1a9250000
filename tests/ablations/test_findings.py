from __future__ import annotations

import pytest

from outlay.ablations import findings
from outlay.surfaces.factors import read_factors
from outlay.surfaces.measurements import Measurement, Noise
from outlay.surfaces.surface import Surface

LEVELS = {"a": ["off", "on"], "b": ["off", "on"], "c": ["off", "on", "more"]}
SWITCHES = {name: ["off", "on"] for name in "abc"}


def surface(values, factors=SWITCHES, **options) -> Surface:
    """A surface of measured values by the factors that are not at their default."""
    read = read_factors(factors)
    taken = [
        Measurement(
            config=read.config(read.cell(config)),
            metrics={} if value is None else {"score": value},
            reason="broke" if value is None else "",
        )
        for config, value in values
    ]
    return Surface(read, taken, metric="score", direction="maximize", **options)


def on(names: str) -> dict[str, str]:
    return dict.fromkeys(names, "on")


def every(value) -> list[tuple[dict[str, str], float]]:
    """All eight configurations of three switches."""
    names = ["", "a", "b", "c", "ab", "ac", "bc", "abc"]
    return [(on(part), value(part)) for part in names]


def test_effects_and_interactions_are_those_of_the_surface() -> None:
    found = surface([({}, 1.0), ({"a": "on", "c": "more"}, 2.0), ({"b": "on"}, 0.5)], LEVELS)
    conditional = findings.conditional_effects(found)
    table = found.effects("conditional")
    assert [c.effect for c in conditional] == pytest.approx(table.effect.tolist())
    assert [c.low for c in conditional] == pytest.approx(table.effect_low.tolist())
    average = findings.effects(found, conditional)
    expected = found.effects()
    assert [(e.factor, e.level) for e in average] == list(
        zip(expected.factor, expected.level, strict=True)
    )
    assert [e.effect for e in average] == pytest.approx(expected.effect.tolist())
    assert [e.high for e in average] == pytest.approx(expected.effect_high.tolist())
    pairs = sorted(i.interaction for i in findings.interactions(found))
    assert pairs == pytest.approx(sorted(found.interactions().interaction.tolist()))


def test_an_option_that_helps_here_and_harms_there_is_seen() -> None:
    found = surface(every(lambda part: {"": 0, "a": 1, "b": 1, "ab": 0}[part.replace("c", "")]))
    average = findings.effects(found, findings.conditional_effects(found))
    assert [e.depends for e in average] == [True, True, False]
    assert (average[0].up, average[0].down) == (2, 2)
    assert [(i.first, i.second) for i in findings.interactions(found) if i.sure] == [("a", "b")]


def test_the_minimal_part_is_the_smallest_that_keeps_nine_tenths() -> None:
    found = surface(every(lambda part: 1.0 * ("a" in part) + 0.05 * ("b" in part)))
    small = findings.minimal(found)
    assert small.kept == ["a"]
    assert small.left_out == ["b", "c"]
    assert (small.measured, small.certain) == (True, True)
    assert (small.gain, small.low, small.high) == pytest.approx((1.0, 1.0, 1.0))
    assert small.champion_gain == pytest.approx(1.05)
    worse = surface(every(lambda part: 1.0 * ("a" in part) + 0.2 * ("b" in part)))
    assert findings.minimal(worse).kept == ["a", "b"]


def test_a_predicted_minimal_part_says_so_with_an_interval() -> None:
    values = [({}, 0.0), (on("abc"), 1.0), (on("a"), 0.93), (on("b"), 0.0), (on("bc"), 0.03)]
    small = findings.minimal(surface(values, noise=Noise()))
    assert small.kept == ["a"]
    assert small.low < small.gain < small.high
    assert not small.certain


def test_a_smaller_part_may_be_better_than_the_champion() -> None:
    found = surface(every(lambda part: 1.0 * ("a" in part) - 0.5 * ("b" in part)))
    small = findings.minimal(found)
    assert small.kept == ["a"]
    assert small.gain > small.champion_gain


def test_a_gain_that_is_not_there_has_no_minimal_part() -> None:
    assert findings.minimal(surface(every(lambda part: -1.0 * ("a" in part)))) is None
    assert findings.minimal(surface([({}, 1.0)])) is None


def test_lower_is_better_where_the_metric_is_minimised() -> None:
    found = surface(every(lambda part: 1.0 - 0.9 * ("a" in part)))
    found.direction = "minimize"
    assert findings.minimal(found).gain == pytest.approx(0.9)
    assert findings.best(found).config["a"] == "on"
    assert [row.value for row in findings.ranked(found, 2)] == pytest.approx([0.1, 0.1])


def test_failures_are_blamed_on_what_only_they_have() -> None:
    pair = surface(every(lambda part: None if "b" in part and "a" not in part else 1.0))
    assert pair.blamed() == [[{"a": "off", "b": "on"}]]
    single = surface(every(lambda part: None if "c" in part else 1.0))
    assert single.blamed() == [[{"c": "on"}]]
    assert surface(every(lambda part: 1.0)).blamed() == []
    assert [f.reason for f in findings.failed(single)] == ["broke"] * 4
    assert all(row.config["c"] == "off" for row in findings.ranked(single, 9))
