from __future__ import annotations

import pytest

from outlay.report.figure import champion_figure
from outlay.report.tree_cards import fresh_levels
from outlay.state import State
from tests.report.samples import drive, started, task


def test_the_figure_shows_every_score_and_the_champions_level():
    state, _ = drive(task(12))
    axes = champion_figure(state).axes[0]
    points = axes.lines[0].get_xydata()
    scored = [n for n in state.tree.nodes if n.attempt and n.score is not None]
    assert len(points) == len(scored)
    best = axes.lines[1].get_ydata()
    assert list(best) == sorted(best)
    levels = [bars.get_segments()[0][0][1] for bars in axes.collections[::2]]
    assert levels[-1] == pytest.approx(fresh_levels(state)[state.contest.champion].mean)
    assert axes.get_ylabel() == "accuracy (higher is better)"


def test_a_run_without_attempts_has_an_empty_figure():
    champion_figure(State.of(started()))
