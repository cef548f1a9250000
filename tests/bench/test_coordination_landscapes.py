"""The harder landscapes and the study over them."""

from __future__ import annotations

import itertools
import random
import statistics

import pytest

from outlay.bench.coordination import study, tables
from outlay.bench.coordination.landscapes import LANDSCAPES
from outlay.bench.coordination.objective import SIGNS
from outlay.bench.coordination.study import FULL, VARIANTS, Measures, measure
from outlay.bench.coordination.terrain import Drifting, Terrain, highest

by_name = {landscape.name: landscape for landscape in LANDSCAPES}


@pytest.mark.parametrize("landscape", LANDSCAPES, ids=lambda landscape: landscape.name)
def test_a_landscape_is_pure_and_its_optimum_is_the_top(landscape):
    one, two = landscape.make(3), landscape.make(3)
    assert one == two
    assert one.start != landscape.make(4).start or one != landscape.make(4)
    assert one.observe(one.start, 7) == two.observe(two.start, 7)
    assert one.observe(one.start, 7) != one.observe(one.start, 8)
    rng = random.Random(1)
    point = one.start
    for _ in range(200):
        assert one.clean(point) <= 0.0
        axis = rng.randrange(len(point))
        point = one.moved(point, axis, rng.choice(one.directions))


@pytest.mark.parametrize("landscape", LANDSCAPES, ids=lambda landscape: landscape.name)
def test_noise_is_centred_on_the_clean_value(landscape):
    objective = landscape.make(1)
    values = [objective.observe(objective.start, seed) for seed in range(400)]
    error = statistics.stdev(values) / 20
    assert abs(statistics.fmean(values) - objective.clean(objective.start)) < 4 * error


def test_the_optimum_of_a_terrain_has_value_0_and_can_move():
    terrain = by_name["moving"].make(0)
    assert terrain.clean(terrain.optimum) == 0.0
    assert terrain.clean(terrain.optimum, time=terrain.moves_at) < -1
    moved = tuple(x + terrain.shift for x in terrain.optimum)
    assert terrain.clean(moved, time=terrain.moves_at) == 0.0


def test_rotated_axes_interact_and_separable_ones_do_not():
    def interaction(terrain):
        start = terrain.start
        a = terrain.moved(start, 0, "+")
        b = terrain.moved(start, 1, "+")
        both = terrain.moved(a, 1, "+")
        plus, minus = (
            terrain.clean(both) + terrain.clean(start),
            terrain.clean(a) + terrain.clean(b),
        )
        return plus - minus

    assert abs(interaction(by_name["rotated"].make(2))) > 0.1
    assert interaction(by_name["separable"].make(2)) == pytest.approx(0.0, abs=1e-9)


def test_a_step_of_the_rate_fails_first_and_pays_later():
    drifting = by_name["drifting"].make(5)
    assert isinstance(drifting, Drifting)
    size = drifting.sizes[0]
    rate = (size + 1) % 4
    grow, raise_rate = (SIGNS[drifting.signs[axis] < 0] for axis in (size, rate))
    point, gains = drifting.start, []
    for _ in range(12):
        raised = drifting.moved(point, rate, raise_rate)
        gains.append(drifting.clean(raised) - drifting.clean(point))
        point = drifting.moved(point, size, grow)
    assert gains[0] < gains[3] < 0 < gains[8]
    goal = drifting.start
    for place in drifting.sizes:
        for axis, steps in ((place, 12), ((place + 1) % 4, 1)):
            for _ in range(steps):
                goal = drifting.moved(goal, axis, SIGNS[drifting.signs[axis] < 0])
    assert drifting.clean(goal) == pytest.approx(0.0)


def test_the_best_sum_over_a_chain_agrees_with_trying_everything():
    rng = random.Random(2)
    main = tuple(tuple(rng.gauss(0, 1) for _ in range(3)) for _ in range(4))
    pairs = tuple(
        tuple(tuple(rng.gauss(0, 1) for _ in range(3)) for _ in range(3)) for _ in range(3)
    )
    everything = max(
        sum(main[i][o] for i, o in enumerate(options))
        + sum(pairs[i][options[i]][options[i + 1]] for i in range(3))
        for options in itertools.product(range(3), repeat=4)
    )
    assert highest(main, pairs) == pytest.approx(everything)


def test_noise_grows_to_the_positive_side_only():
    terrain = by_name["uneven-noise"].make(0)
    assert isinstance(terrain, Terrain)

    def spread(point):
        return statistics.stdev(terrain.observe(point, seed) for seed in range(300))

    above = tuple(x + 2.0 for x in terrain.optimum)
    below = tuple(x - 2.0 for x in terrain.optimum)
    assert spread(below) == pytest.approx(0.1, rel=0.15)
    assert spread(above) == pytest.approx(0.1 + 0.06 * 16, rel=0.15)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_search_is_reproducible_and_keeps_to_its_budget(variant):
    landscape = by_name["switches"]
    found = measure(landscape, VARIANTS[variant], 1)
    assert found == measure(landscape, VARIANTS[variant], 1)
    assert found.evaluations <= landscape.budget + 24  # the last challenger may cross
    assert found.value <= 0.0


def test_reopening_earns_its_keep_where_the_best_rate_drifts():
    landscape = by_name["drifting"]
    gains = [
        measure(landscape, VARIANTS[FULL], seed).value
        - measure(landscape, VARIANTS["reopening off"], seed).value
        for seed in range(6)
    ]
    assert statistics.fmean(gains) > 1.0


def test_the_table_is_the_same_however_many_processes_make_it():
    done = []
    one = study.lines(3, 1, done.append, ("plateaus",))
    two = study.lines(3, 2, lambda name: None, ("plateaus",))
    assert one == two
    assert done == ["plateaus"]
    assert [line.variant for line in one] == list(VARIANTS)
    base = one[0]
    assert all(d.mean == d.low == d.high == 0.0 for d in base.differences)
    text = "\n".join(tables.study_markdown(one, 3))
    assert "### plateaus" in text
    assert text.count("\n| confirmation off |") == 2
    data = tables.study_data(one)
    assert set(data[0]["means"]) == set(Measures._fields)
