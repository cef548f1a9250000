from __future__ import annotations

import random
import time

import pytest

from outlay.coordination.interactions import Interactions, Move, Step, reopened

A = Move("a", "off", "on")
B = Move("b", "off", "on")


def filled(effect, repeats=1, sd=0.0, seed=1):
    """Return the table of two switches and a third with an interaction of the first two."""
    rng = random.Random(seed)
    table = Interactions()
    for a in ("off", "on"):
        for b in ("off", "on"):
            for c in ("x", "y", "z"):
                clean = (a == "on") + 2 * (b == "on") + effect * (a == b == "on") + (c == "y")
                for _ in range(repeats):
                    table.record({"a": a, "b": b, "c": c}, clean + rng.gauss(0, sd))
    return table


def test_the_interaction_of_two_switches_is_found_exactly():
    interval = filled(-1.5).estimate(A, B, sd=0.3)
    assert interval.mean == pytest.approx(-1.5)
    assert interval.n == 3
    half = 1.6448536 * 0.3 * (4 / 3) ** 0.5
    assert interval.high - interval.mean == pytest.approx(half, rel=1e-6)


def test_no_quadruple_is_no_estimate():
    table = Interactions()
    for a, b in (("off", "off"), ("on", "off"), ("off", "on")):
        table.record({"a": a, "b": b}, 1.0)
    assert table.estimate(A, B, sd=1.0) is None
    assert not table.excludes_zero(A, B, sd=1.0)


def test_repeats_narrow_the_interval():
    once = filled(1.0).estimate(A, B, sd=1.0)
    often = filled(1.0, repeats=4).estimate(A, B, sd=1.0)
    assert once.high - once.low == pytest.approx(2 * (often.high - often.low))


def test_quadruples_that_share_configurations_are_not_counted_as_independent():
    """On a path the inner values cancel: two quadruples in a row are one of twice the length."""
    table = Interactions()
    for x in range(3):
        for y in range(2):
            table.record({"x": x, "y": y}, 3.0 * x * y)
    interval = table.estimate(Step("x", 1), Step("y", 1), sd=1.0)
    assert interval.mean == pytest.approx(3.0)
    assert interval.n == 2
    assert interval.high - interval.mean == pytest.approx(1.6448536 * 1.0)


def test_ninety_percent_intervals_cover_the_truth():
    covered = 0
    for seed in range(300):
        interval = filled(0.7, sd=0.5, seed=seed).estimate(A, B, sd=0.5)
        covered += interval.low <= 0.7 <= interval.high
    assert 0.85 <= covered / 300 <= 0.95


def test_directions_that_interact_with_the_champions_change_reopen():
    table = filled(2.0)
    before = {"a": "off", "b": "off", "c": "x"}
    after = {"a": "on", "b": "off", "c": "x"}
    retired = [("b", "on"), ("c", "y"), ("a", "on")]
    assert reopened(retired, before, after, table, sd=0.1) == [("b", "on")]
    assert reopened(retired, before, after, filled(0.05), sd=0.1) == []
    assert reopened(retired, after, after, table, sd=0.1) == []


def test_configurations_must_have_the_same_axes():
    table = filled(1.0)
    with pytest.raises(ValueError, match="axes: found"):
        table.record({"a": "on"}, 1.0)
    with pytest.raises(ValueError, match="axes: found"):
        table.record({"a": "on", "b": "on", "d": "on"}, 1.0)


def test_the_cost_does_not_grow_with_the_log():
    def seconds(count):
        table = Interactions(reach=100)
        for i in range(count):
            table.record({"x": i, "y": i % 7, "z": i % 3}, 1.0)
        began = time.perf_counter()
        for _ in range(20):
            table.record({"x": -1, "y": 0, "z": 0}, 1.0)
            table.estimate(Step("x", 1), Step("y", 1), sd=1.0)
            table._pairs.clear()
        return time.perf_counter() - began

    few, many = min(seconds(200) for _ in range(3)), min(seconds(20_000) for _ in range(3))
    assert many < 5 * few
