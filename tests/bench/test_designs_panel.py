from pathlib import Path

import pytest
from click.testing import CliRunner

from outlay.bench.designs.panel import SplitMix64, panel
from outlay.bench.designs.policies import affordable_counts, panel_means
from outlay.cli.bench_designs import command

BUDGETS = [
    8,
    4,
    8,
    4,
    6,
    4,
    6,
    4,
    8,
    4,
    6,
    8,
    6,
    4,
    6,
    6,
    8,
    6,
    8,
    4,
    6,
    8,
    8,
    4,
    8,
    4,
    6,
    6,
    4,
    4,
]
LISTED = {
    "L1": 13.558642679614,
    "L2": 24.838029247659,
    "uniform": 44.990367642274,
    "single_arm": 10.638620427645,
    "six_arms": 14.888170671490,
    "target_oracle": 100.0,
    "oracle": 100.0,
}
PUBLISHED = {"L1": 13.36, "L2": 25.3, "uniform": 44.3, "single_arm": 10.7, "six_arms": 15.2}


def test_first_outputs_of_the_generator():
    stream = SplitMix64(11)
    assert [stream.next() for _ in range(3)] == [
        0x50F5647D2380309D,
        0x432A5CD27A6B13A1,
        0xA356BE306E9B126D,
    ]


def test_states_zero_and_one():
    states = panel(11)
    assert [drawn.state.limits[0].budget for drawn in states] == BUDGETS
    first, second = states[:2]
    assert first.effects == (-0.1, 3.8, 1.6, -0.3)
    assert (first.improved, first.signatures) == (6, (9, 2, 7, 1, 15, 12))
    assert first.weights == (1, 2, 3, 1, 3, 2)
    assert second.effects == (1.9, 0.3, -0.1, 0.3)
    assert (second.improved, second.signatures) == (1, (15, 6, 13, 2, 7, 13))
    assert second.weights == (2, 1, 2, 1, 2, 2)


def test_panel_means_are_those_listed_and_near_those_published():
    means = panel_means(11)
    for name, expected in LISTED.items():
        assert means[name] == pytest.approx(expected, abs=1e-9)
    for name, expected in PUBLISHED.items():
        assert abs(means[name] - expected) < 1


def test_affordable_counts():
    assert affordable_counts(11) == {4: 130, 6: 478, 8: 684}


def test_another_seed_gives_another_panel():
    assert panel(12) != panel(11)


def test_the_page_shows_what_the_command_prints():
    page = (Path(__file__).resolve().parents[2] / "docs" / "designs.md").read_text()
    assert CliRunner().invoke(command, []).stdout in page
