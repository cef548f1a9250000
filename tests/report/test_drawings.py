from __future__ import annotations

import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from outlay.allocation.tree import Tree
from outlay.events import Child
from outlay.report import svg
from outlay.report.contrasts import Effect, measured, modelled, undone
from outlay.report.evidence_cards import _differ
from outlay.report.logs import log_tail
from outlay.report.outline import outline, telling, with_ancestors
from outlay.report.words import interval, printable
from tests.report.samples import GAINS, finished

FINITE = st.floats(-1e9, 1e9)


@st.composite
def trees(draw):
    tree = Tree()
    for number in range(1, draw(st.integers(1, 25))):
        parent = tree.nodes[draw(st.integers(0, number - 1))]
        tree.add(parent, Child(node=number))
    return tree


@given(trees(), st.data())
def test_an_outline_shows_each_chosen_node_once_and_counts_the_rest(tree, data):
    numbers = range(len(tree.nodes))
    keep = with_ancestors(tree, data.draw(st.sets(st.sampled_from(numbers), min_size=1)))
    rows = outline(tree, keep)
    assert sorted(row.node.id for row in rows) == sorted(keep)
    assert rows[0].indent == 0
    for row in rows:
        assert row.indent == row.node.depth
        assert row.hidden == sum(child.id not in keep for child in row.node.children)


@given(trees(), st.data())
def test_a_row_hangs_under_its_nearest_shown_ancestor(tree, data):
    keep = data.draw(st.sets(st.sampled_from(range(len(tree.nodes)))))
    rows = outline(tree, keep)
    above: list[int] = []
    for row in rows:
        del above[row.indent :]
        ancestors = [a.id for a in row.node.path() if a is not row.node and a.id in keep]
        assert (above[-1] if above else None) == (ancestors[0] if ancestors else None)
        above.append(row.node.id)


def test_a_large_tree_keeps_the_champion_and_what_it_descends_from():
    state, _ = finished(200)
    keep = telling(state)
    assert len(keep) < 100 < len(state.tree.nodes)
    assert {node.id for node in state.tree.nodes[state.contest.champion].path()} <= keep
    assert telling(state, whole=1000) == set(range(len(state.tree.nodes)))


@given(FINITE, FINITE, st.integers(2, 8))
def test_ticks_are_round_and_inside(first, second, count):
    low, high = sorted((first, second))
    high += 1e-3 + abs(high) * 1e-3
    found = svg.ticks(low, high, count)
    slack = 1e-6 * (high - low)
    assert all(low - slack <= tick <= high + slack for tick in found)
    assert len(found) <= count + 1


@given(
    st.lists(st.one_of(st.none(), FINITE), max_size=30),
    st.lists(st.tuples(FINITE, st.floats(0, 10)), max_size=4),
)
def test_a_curve_is_well_formed_and_inside_its_frame(scores, levels):
    dots = [svg.Dot(score, "scored", "<a&b>") for score in scores]
    steps = [svg.Level(k, k + 1, y, y - half, y + half) for k, (y, half) in enumerate(levels)]
    root = ET.fromstring(svg.curve(dots, steps, steps, "<metric>"))
    circles = root.findall("circle")
    assert len(circles) == len(scores)
    assert all(0 <= float(c.attrib["cy"]) <= svg.HEIGHT for c in circles)
    assert all(0 <= float(c.attrib["cx"]) <= svg.WIDTH for c in circles)


@given(st.lists(st.tuples(FINITE, st.floats(0, 1e6)), min_size=1, max_size=8))
def test_bars_stay_on_the_axis(found):
    bars = [svg.Bar("<l>", "&", m, m - h, m + h, "helped") for m, h in found]
    root = ET.fromstring(svg.bars(bars))
    for line in root.findall("line"):
        for end in ("x1", "x2"):
            assert 0 <= float(line.attrib[end].rstrip("%")) <= 100


@given(st.lists(st.tuples(FINITE, st.floats(0, 1e6)), min_size=1, max_size=3))
def test_the_axis_of_bars_has_numbers(found):
    bars = [svg.Bar("l", "n", m, m - h, m + h, "helped") for m, h in found]
    root = ET.fromstring(svg.bars(bars))
    numbers = [float(t.text or "") for t in root.findall("text") if t.get("class") == "tick"]
    assert 0.0 in numbers
    assert len(numbers) >= 2


def test_no_verdict_rests_on_nothing():
    effect = Effect("l", "a", "b", 1.0, 0.5, 1.5, 0)
    assert effect.verdict == "unknown"
    assert effect._replace(basis=1).verdict == "helped"
    state, _ = finished(60)
    assert all(e.basis for e in (*modelled(state), *undone(state)) if e.verdict != "unknown")


def test_tables_that_differ_in_a_verdict_say_why():
    first = Effect("l", "a", "b", 1.0, -0.5, 1.5, 3)
    second = first._replace(low=0.5)
    back = Effect("l", "b", "a", -1.0, -1.5, -0.5, 3)
    assert _differ([first], [], [second]) == ["l=b"]
    assert _differ([second], [back], [second]) == []
    assert _differ([first], [back], []) == ["l=b"]


def test_the_effects_find_the_truth_of_the_synthetic_task():
    state, _ = finished(60)
    found = {(e.lever, e.option): e for e in modelled(state)}
    assert len(found) == sum(len(gains) - 1 for gains in GAINS.values())
    assert found["optimizer", "o1"].verdict == "helped"
    assert found["optimizer", "o2"].verdict == "hurt"
    covered = [
        e.low <= GAINS[lever][int(option[1:])] <= e.high for (lever, option), e in found.items()
    ]
    assert sum(covered) >= len(covered) - 2


def test_undoing_the_champion_loses_what_it_gained():
    state, _ = finished(60)
    found = {e.lever: e for e in undone(state)}
    assert found["optimizer"].option == "o0"
    assert found["optimizer"].verdict == "hurt"


def test_direct_contrasts_are_between_programs_one_lever_apart():
    state, _ = finished(60)
    found = measured(state)
    assert found
    for effect in found:
        gains = GAINS[effect.lever]
        truth = gains[int(effect.option[1:])] - gains[int(effect.before[1:])]
        assert abs(effect.mean - truth) < 0.03
        assert effect.basis >= 2


def test_an_interval_keeps_three_digits_of_its_width():
    assert interval(0.12015, 0.14409) == "0.1202 to 0.1441"
    assert interval(-1234.4, 2345.6) == "-1234 to 2346"
    assert interval(0.2, 0.2) == "0.2 to 0.2"
    assert interval(None, 1.0) == "interval unknown"


def test_nothing_that_a_terminal_obeys_is_printed():
    assert printable("a\x1b[2Jb\x07\u202ec\n") == "a�[2Jb��c\n"


def test_a_log_tail_is_short_and_whole_lines(tmp_path):
    job = tmp_path / "jobs" / "a1.1"
    job.mkdir(parents=True)
    (job / "out.txt").write_text("".join(f"line {k}\n" for k in range(10_000)))
    (job / "err.txt").write_bytes(b"== n1 seed 1 ==\nbad \xff\n")
    lines = log_tail(tmp_path, "a1.1").splitlines()
    assert lines[0] == "…"
    assert lines[1:26] == [f"line {k}" for k in range(9975, 10_000)]
    assert lines[26:] == ["stderr:", "== n1 seed 1 ==", "bad �"]
    assert log_tail(tmp_path, "a2.1") == ""
