"""The plan tree with its branch statistics, kept up to date in time proportional to the depth.

Counts that the walk needs are kept on every node for its whole subtree, so that one decision never
scans the tree. Pruned and failed nodes are left out of all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from outlay.events import Child

NodeStatus = Literal["open", "running", "scored", "failed", "lost"]


class Node:
    """One plan. Its own score and its branch value are different things and have different names.

    Attributes:
        id: Number in the tree; the root is 0.
        parent: The parent, or `None` for the root.
        proposal: How it differs from its parent; `None` for the root.
        status: `open` until launched, `running` while in flight; `scored`, `failed` and `lost`
            are final.
        attempt: The attempt that executed it, 0 for none.
        score: Mean metric over the selection seeds, metric units; `None` without a score.
        reward: The score's reward in [0, 1]; `None` without a score.
        pruned: Left out of later selection and of the means.
        exhausted: A reflection on it yielded fewer children than asked.
        visible: Children that the walk may enter, by number: neither pruned, failed nor in flight.
        visible_plans: How many of those count towards `m`: all but the `continue` children.
        total: Sum of rewards over retained scored nodes of the subtree, itself included.
        count: Number of those.
        unsettled: Nodes of the subtree that are still to be executed.
        actionable: Nodes of the subtree that can be executed or reflected on now.
        in_flight: Attempts in flight in the subtree.
    """

    __slots__ = (
        "actionable",
        "attempt",
        "children",
        "count",
        "depth",
        "exhausted",
        "id",
        "in_flight",
        "parent",
        "proposal",
        "pruned",
        "reward",
        "score",
        "self_actionable",
        "status",
        "total",
        "unsettled",
        "visible",
        "visible_plans",
    )

    def __init__(self, number: int, parent: Node | None, proposal: Child | None) -> None:
        self.id = number
        self.parent = parent
        self.proposal = proposal
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.status: NodeStatus = "open"
        self.attempt = 0
        self.score: float | None = None
        self.reward: float | None = None
        self.pruned = False
        self.exhausted = False
        self.children: list[Node] = []
        self.visible: dict[int, Node] = {}
        self.visible_plans = 0
        self.total = 0.0
        self.count = 0
        self.unsettled = 0
        self.actionable = 0
        self.self_actionable = False
        self.in_flight = 0

    @property
    def value(self) -> float:
        """Branch value `Q`: mean reward over the retained scored subtree; 0 without any."""
        return self.total / self.count if self.count else 0.0

    @property
    def prior(self) -> float:
        """The proposal's prior `P`, 1 for the root."""
        return 1.0 if self.proposal is None else self.proposal.prior

    @property
    def counts_as_plan(self) -> bool:
        """Whether the node counts towards its parent's `m`."""
        return self.proposal is None or self.proposal.kind == "plan"

    def path(self) -> Iterator[Node]:
        """Yield the node, its parent, and so on up to the root."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent


class Tree:
    """A plan tree that starts with an open root.

    Args:
        children: Visible children that a node is widened to, `m` of the paper.
        prune_below: `delta` of the paper, in reward units; 0 switches pruning off.
    """

    __slots__ = ("children", "nodes", "prune_below")

    def __init__(self, *, children: int = 3, prune_below: float = 0.05) -> None:
        self.children = children
        self.prune_below = prune_below
        self.nodes: list[Node] = []
        self._append(Node(0, None, None))

    @property
    def root(self) -> Node:
        """The first plan."""
        return self.nodes[0]

    def add(self, parent: Node, proposal: Child) -> Node:
        """Add the proposed child; raises `ValueError` unless its number is the next one."""
        if proposal.node != len(self.nodes):
            raise ValueError(f"node {proposal.node} proposed, the next one is {len(self.nodes)}")
        node = Node(proposal.node, parent, proposal)
        parent.children.append(node)
        self._show(node)
        self._append(node)
        return node

    def launch(self, node: Node, attempt: int) -> None:
        """Mark the node as in flight."""
        self._hide(node)
        node.status = "running"
        node.attempt = attempt
        for above in node.path():
            above.unsettled -= 1
            above.in_flight += 1
        self._refresh(node)

    def score(self, node: Node, score: float, reward: float) -> None:
        """Settle a node in flight with a score, and back its reward up unless it is pruned.

        The paper's rule: pruned if its reward is more than `delta` below the parent's branch
        value before this outcome counts in it, and that value is above 0.
        """
        self._land(node)
        node.status, node.score, node.reward = "scored", score, reward
        parent = node.parent
        if parent is not None and self._falls_short(reward, parent):
            node.pruned = True
        else:
            self._back_up(node, reward)
            self._show(node)
        self._refresh(node)

    def settle_without_score(self, node: Node, status: Literal["failed", "lost"]) -> None:
        """Settle a node in flight as failed or lost: no reward, and no way through it."""
        self._land(node)
        node.status = status
        self._refresh(node)

    def score_root(self, score: float, reward: float) -> None:
        """Score the root from the baseline, which is a measurement and not an attempt."""
        root = self.root
        root.status, root.score, root.reward = "scored", score, reward
        root.unsettled -= 1
        self._back_up(root, reward)
        self._refresh(root)

    def exhaust(self, node: Node) -> None:
        """Mark that nothing more can be proposed from the node."""
        node.exhausted = True
        self._refresh(node)

    def _append(self, node: Node) -> None:
        self.nodes.append(node)
        for above in node.path():
            above.unsettled += 1
        self._refresh(node)

    def _land(self, node: Node) -> None:
        for above in node.path():
            above.in_flight -= 1

    def _back_up(self, node: Node, reward: float) -> None:
        for above in node.path():
            above.total += reward
            above.count += 1

    def _show(self, node: Node) -> None:
        if node.parent is not None:
            node.parent.visible[node.id] = node
            node.parent.visible_plans += node.counts_as_plan

    def _hide(self, node: Node) -> None:
        if node.parent is not None:
            del node.parent.visible[node.id]
            node.parent.visible_plans -= node.counts_as_plan

    def _falls_short(self, reward: float, parent: Node) -> bool:
        value = parent.value
        return self.prune_below > 0 and value > 0 and reward < value - self.prune_below

    def _refresh(self, node: Node) -> None:
        self._refresh_one(node)
        if node.parent is not None:
            self._refresh_one(node.parent)

    def _refresh_one(self, node: Node) -> None:
        now = node.status == "open" or (
            node.status == "scored"
            and not node.pruned
            and not node.exhausted
            and node.visible_plans < self.children
        )
        if now != node.self_actionable:
            node.self_actionable = now
            step = 1 if now else -1
            for above in node.path():
                above.actionable += step
