"""The champion curve as a matplotlib figure, for notebooks and papers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlay.report.tree_cards import fresh_levels
from outlay.report.words import better

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from outlay.state import State


def champion_figure(state: State) -> Figure:
    """Return scores of attempts by number, the best of them so far, and the champions' levels.

    A champion's level is its mean on seeds other than the selection seeds, with the 95 % t
    interval as a band; it begins at the attempt that became champion. A failed attempt has no
    score and no point.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    scored = [(n.attempt, n.score) for n in state.tree.nodes if n.attempt and n.score is not None]
    scored.sort()
    numbers, scores = [n for n, _ in scored], [s for _, s in scored]
    axes.plot(numbers, scores, "o", color="#2f6fd0", alpha=0.6, markersize=4, label="attempts")
    axes.step(
        numbers, _best(state, scores), "--", color="#b06b00", where="post", label="best, raw"
    )
    label = "champion on fresh seeds"
    for start, end, node in _reigns(state):
        level = fresh_levels(state).get(node)
        if level is None:
            continue
        axes.hlines(level.mean, start, end, color="#12805c", linewidth=2.5, label=label)
        if level.low is not None and level.high is not None:
            axes.fill_between([start, end], level.low, level.high, color="#12805c", alpha=0.15)
        label = "_"
    axes.set_xlabel("attempt")
    axes.set_ylabel(f"{state.task.metric.name} ({better(state)})", parse_math=False)
    axes.locator_params(axis="x", integer=True)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False)
    return figure


def _best(state: State, scores: list[float]) -> list[float]:
    best: list[float] = []
    for score in scores:
        is_better = not best or state.oriented(score) > state.oriented(best[-1])
        best.append(score if is_better else best[-1])
    return best


def _reigns(state: State) -> list[tuple[int, int, int]]:
    """Return (attempt it began at, attempt it ended at, champion)."""
    crowned = [(j.attempt, j.node) for j in state.judgements if j.event.promoted]
    starts = [(0, state.baseline), *crowned]
    ends = [attempt for attempt, _ in crowned] + [max(state.attempts, 1)]
    return [(start, end, node) for (start, node), end in zip(starts, ends, strict=True)]
