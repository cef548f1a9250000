"""The plan tree and the champion curve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlay.coordination.estimates import Interval, estimate
from outlay.report import svg
from outlay.report.blocks import Code, Picture, Table, Text
from outlay.report.outline import Row, hidden_below, outline, telling
from outlay.report.words import (
    STATUS,
    better,
    change,
    cut,
    interval,
    node_name,
    number,
    standing_word,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from outlay.allocation.tree import Node
    from outlay.report.blocks import Block
    from outlay.report.history import History
    from outlay.report.view import View
    from outlay.state import State

MARKS = (
    ("champion", "champion"),
    ("scored", "scored"),
    ("pruned", "scored, then pruned"),
    ("failed", "failed"),
    ("lost", "lost"),
    ("open", STATUS["open"]),
    ("running", STATUS["running"]),
)


def tree(view: View) -> list[Block]:
    """Return the plan tree as a picture, cut down where it is large."""
    state = view.state
    if state.started is None:
        return [Text(text="There is no tree yet: the run has not begun.")]
    keep = telling(state)
    lines = list(tree_lines(state, keep))
    total = len(state.tree.nodes)
    used = {line.mark for line in lines}
    picture = Picture(
        svg=svg.outline(lines),
        instead=Code(text=text_tree(lines)),
        legend=tuple((mark, meaning) for mark, meaning in MARKS if mark in used),
    )
    if len(keep) == total:
        return [picture]
    shown = (
        f"{len(keep)} of {total} nodes: the champion's line, the latest challengers, the "
        "best-scored and the latest, each with what it descends from."
    )
    return [Text(text=shown), picture]


def tree_lines(state: State, keep: set[int]) -> Iterator[svg.Line]:
    """Yield the rows of the chosen nodes, and one below each for what is left out there."""
    rows = outline(state.tree, keep)
    waiting: list[Row] = []
    for row in rows:
        while waiting and waiting[-1].indent >= row.indent:
            yield _rest(state, waiting.pop(), keep)
        yield _line(state, row)
        if row.hidden:
            waiting.append(row)
    while waiting:
        yield _rest(state, waiting.pop(), keep)


def _line(state: State, row: Row) -> svg.Line:
    node = row.node
    text = cut(change(state, node), 60)
    return svg.Line(standing_word(state, node), f"#{node.id}", value(node), text, row.indent)


def value(node: Node) -> str:
    """Return the node's score, or what it has in place of one."""
    return STATUS.get(node.status, node.status) if node.score is None else number(node.score)


def _rest(state: State, row: Row, keep: set[int]) -> svg.Line:
    nodes = hidden_below(row, keep)
    scores = [state.oriented(node.score) for node in nodes if node.score is not None]
    best = f", best {number(state.oriented(max(scores)))}" if scores else ""
    text = f"({len(scores)} scored{best})"
    return svg.Line("more", f"… {len(nodes)} more", "", text, row.indent + 1)


def text_tree(lines: list[svg.Line]) -> str:
    """Return the rows as plain text."""
    return "\n".join(
        "  " * line.indent + " ".join(part for part in (SIGNS[line.mark], *line[1:4]) if part)
        for line in lines
    )


SIGNS = {
    "champion": "★",
    "scored": "●",
    "pruned": "○",
    "failed": "✗",
    "lost": "✗",
    "open": "·",
    "running": "▶",
    "more": "",
}


def curve(view: View) -> list[Block]:
    """Return the champion curve, raw and confirmed, over the attempts."""
    state, done = view.state, view.history.done
    if not done or not state.baseline_values:
        return [Text(text="There is no curve: no attempt has ended.")]
    dots, raw = _attempts(view)
    levels = fresh_levels(state)
    confirmed = [
        svg.Level(start, end, levels[node].mean, levels[node].low, levels[node].high)
        for start, end, node in _stretches(view.history)
        if node in levels
    ]
    rows = [
        (str(start), node_name(state, node), _shown(levels.get(node)))
        for start, _, node in _stretches(view.history)
    ]
    head = ("from attempt", "champion", "fresh seeds (95 % interval)")
    picture = Picture(
        svg=svg.curve(dots, raw, confirmed, state.task.metric.name),
        instead=Table(head=head, rows=rows),
        legend=(
            ("scored", "one attempt, selection seeds"),
            ("failed", "failed attempt, no score"),
            ("raw", "best so far, raw"),
            ("confirmed", "champion on fresh seeds, with its 95 % interval"),
        ),
    )
    note = (
        f"{better(state).capitalize()}. The best raw score is the best of noisy ones and "
        "flatters; a champion's level comes from other seeds than selection. An earlier champion "
        "has only those of its comparisons, which flatter a little; the last one has the final "
        "seeds too."
    )
    return [picture, Text(text=note, tone="note")]


def _attempts(view: View) -> tuple[list[svg.Dot], list[svg.Level]]:
    state = view.state
    best = state.selection_mean(state.baseline_values)
    dots: list[svg.Dot] = []
    raw: list[svg.Level] = []
    for k, (work, _, _) in enumerate(view.history.done, 1):
        node = state.tree.nodes[state.nodes[int(work[1:])]]
        title = f"attempt {work[1:]}, node {node.id}: {value(node)}"
        dots.append(svg.Dot(node.score, standing_word(state, node), title))
        raw.append(svg.Level(k - 1, k, best))
        if node.score is not None and state.oriented(node.score) > state.oriented(best):
            best = node.score
    return dots, [*raw, svg.Level(len(dots), len(dots), best)]


def _stretches(found: History) -> Iterator[tuple[int, int, int]]:
    """Yield (attempts ended before, attempts ended after, champion) of every reign."""
    ends = [reign.since for reign in found.reigns[1:]] + [len(found.done)]
    for reign, end in zip(found.reigns, ends, strict=True):
        yield reign.since, end, reign.node


def fresh_levels(state: State) -> dict[int, Interval]:
    """Return the mean of each node's values on seeds other than the selection seeds."""
    values: dict[int, list[float]] = {}
    for (node, seed), found in state.values.items():
        if seed not in state.task.seeds.selection:
            values.setdefault(node, []).append(found)
    return {node: estimate(found) for node, found in values.items()}


def _shown(found: Interval | None) -> str:
    return "–" if found is None else f"{number(found.mean)} ({interval(found.low, found.high)})"
