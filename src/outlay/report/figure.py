"""The course of a run as a matplotlib figure, for notebooks and papers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from outlay.report.history import history

if TYPE_CHECKING:
    from collections.abc import Iterable

    from outlay.events import Entry
    from outlay.state import State

_SCORED, _CHAMPION, _FAILED = "#8a94a6", "#1a7f37", "#c0392b"


def champion_figure(state: State, entries: Iterable[Entry]) -> Any:
    """Return a figure of every attempt's selection score and the confirmed champion's.

    Failed attempts are marked at the foot: they have no score. Needs `outlay[plot]`.
    """
    from outlay.notebook import ShownFigure

    course = history(entries)
    nodes = [state.tree.nodes[state.nodes[attempt]] for attempt in range(1, state.attempts + 1)]
    scored = [(k, node.score) for k, node in enumerate(nodes, 1) if node.score is not None]
    failed = [k for k, node in enumerate(nodes, 1) if node.status in ("failed", "lost")]
    figure = ShownFigure(figsize=(8, 4.2), layout="constrained")
    axes = figure.add_subplot()
    if scored:
        places, scores = zip(*scored, strict=True)
        axes.scatter(places, scores, s=22, color=_SCORED, label="selection score")
    if course.reigns and state.baseline_values:
        starts = [reign.since for reign in course.reigns] + [max(state.attempts, 1)]
        values = [_selected(state, reign.node) for reign in course.reigns]
        axes.step(
            starts,
            [*values, values[-1]],
            where="post",
            color=_CHAMPION,
            label="confirmed champion",
        )
    foot = axes.get_ylim()[0]
    axes.scatter(failed, [foot] * len(failed), marker="x", color=_FAILED, label="no score")
    better = "higher" if state.task.metric.direction == "maximize" else "lower"
    axes.set_xlabel("attempt")
    axes.set_ylabel(f"{state.task.metric.name} ({better} is better)", parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure


def _selected(state: State, node: int) -> float:
    if node == state.baseline:
        return state.selection_mean(state.baseline_values)
    return state.tree.nodes[node].score or 0.0
