"""From the root to the next action: execute, reflect, or continue.

PrimeScientist, Algorithm 1, with the treatment of work in flight, failures and exhaustion that
`Tree` keeps count of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from outlay.allocation.tree import Node, Tree


class Move(NamedTuple):
    """What to do, and at which node."""

    action: Literal["execute", "reflect", "continue", "repeat"]
    node: Node


def walk(tree: Tree, choose: Callable[[Node, Sequence[Node]], Node]) -> Move | None:
    """Return the action that a walk from the root ends at; `None` if nothing can be done now.

    An open node is executed. A scored node without visible children, or with fewer than `m` and
    nothing left to execute below it, is reflected on. Otherwise `choose(node, candidates)` picks
    among the visible children in whose subtrees something can be done.
    """
    node = tree.root
    while node.actionable:
        if node.status == "open":
            return Move("execute", node)
        if node.self_actionable and not (node.visible and node.unsettled):
            return Move("reflect", node)
        candidates = [child for child in node.visible.values() if child.actionable]
        if not candidates:
            return None
        node = choose(node, candidates)
    return None
