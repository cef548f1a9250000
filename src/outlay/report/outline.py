"""The plan tree as lines, cut down to the nodes that matter where it is large."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from outlay.allocation.tree import Node, Tree
    from outlay.state import State

WHOLE = 60
"""Trees up to this many nodes are shown whole."""

_BEST = 20


class Row(NamedTuple):
    """A line of the outline.

    Attributes:
        node: What it shows.
        indent: Rows above it that it belongs under.
        hidden: Its own children that have no row.
    """

    node: Node
    indent: int
    hidden: int


def outline(tree: Tree, keep: Iterable[int]) -> list[Row]:
    """Return the rows of the chosen nodes, each under its nearest ancestor among them.

    The cost grows with the chosen nodes and their depth, not with the tree.
    """
    chosen = set(keep)
    below: dict[int | None, list[Node]] = {}
    shown: Counter[int] = Counter()
    for number in sorted(chosen, reverse=True):
        node = tree.nodes[number]
        above = next((a for a in node.path() if a is not node and a.id in chosen), None)
        below.setdefault(above.id if above is not None else None, []).append(node)
        if node.parent is not None:
            shown[node.parent.id] += 1
    rows: list[Row] = []
    todo = [(node, 0) for node in below.get(None, [])]
    while todo:
        node, indent = todo.pop()
        rows.append(Row(node, indent, len(node.children) - shown[node.id]))
        todo += [(child, indent + 1) for child in below.get(node.id, [])]
    return rows


def telling(state: State, whole: int = WHOLE) -> set[int]:
    """Return the nodes worth a row: all of a small tree, the telling ones of a large one.

    Those are the champion, the challengers, the best-scored and the latest, each with all of its
    ancestors.
    """
    nodes = state.tree.nodes
    if len(nodes) <= whole:
        return set(range(len(nodes)))
    scored = [node for node in nodes if node.score is not None]
    scored.sort(key=lambda node: -state.oriented(node.score or 0.0))
    wanted = [node.id for node in scored[:_BEST]]
    wanted += [judgement.node for judgement in state.judgements[-_BEST:]]
    wanted += [len(nodes) - 1, max(state.contest.champion, 0)]
    wanted += [node.id for node in nodes if node.status == "running"][:_BEST]
    return with_ancestors(state.tree, wanted)


def with_ancestors(tree: Tree, wanted: Iterable[int]) -> set[int]:
    """Return the nodes with everything above them."""
    kept: set[int] = set()
    for number in wanted:
        for node in tree.nodes[number].path():
            if node.id in kept:
                break
            kept.add(node.id)
    return kept


def hidden_below(row: Row, keep: set[int]) -> list[Node]:
    """Return the nodes under the row that no row shows."""
    found: list[Node] = []
    todo = [child for child in row.node.children if child.id not in keep]
    while todo:
        node = todo.pop()
        found.append(node)
        todo += [child for child in node.children if child.id not in keep]
    return found
