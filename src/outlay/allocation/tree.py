"""The plan tree with its branch statistics, kept up to date in time proportional to the depth.

Counts that the walk needs are kept on every node for its whole subtree, so that one decision never
scans the tree. Pruned and failed nodes are left out of all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from outlay.events import Child

NodeStatus = Literal["open", "running", "scored", "failed", "lost"]


class Node:
    """One plan. Its own score and its branch value are different things and have different names.

    Attributes:
        id: Number in the tree; the root is 0.
        parent: The parent, or `None` for the root.
        proposal: How it differs from its parent; of the root, its draft if it has one.
        prior: The proposal's prior `P`, 1 for the root.
        counts_as_plan: Whether it counts towards its parent's `m`.
        status: `open` until launched, `running` while in flight; `scored`, `failed` and `lost`
            are final.
        attempt: The attempt that executed it, 0 for none.
        score: Mean metric over the selection seeds, metric units; `None` without a score.
        reward: The score's reward in [0, 1]; `None` without a score.
        pruned: Left out of later selection and of the means.
        exhausted: A reflection on it yielded fewer children than asked.
        reflecting: A reflection on it is in flight.
        visible: Children that the walk may enter, by number and in that order: neither pruned,
            failed nor in flight.
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
        "counts_as_plan",
        "depth",
        "exhausted",
        "id",
        "in_flight",
        "parent",
        "prior",
        "proposal",
        "pruned",
        "reflecting",
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
        self.prior = 1.0 if proposal is None else proposal.prior
        self.counts_as_plan = proposal is None or proposal.kind == "plan"
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.status: NodeStatus = "open"
        self.attempt = 0
        self.score: float | None = None
        self.reward: float | None = None
        self.pruned = False
        self.exhausted = False
        self.reflecting = False
        self.children: list[Node] = []
        self.visible: dict[int, Node] = {}
        self.visible_plans = 0
        self.total = 0.0
        self.count = 0
        self.unsettled = 1
        self.actionable = 1
        self.self_actionable = True
        self.in_flight = 0

    @property
    def value(self) -> float:
        """Branch value `Q`: mean reward over the retained scored subtree; 0 without any."""
        return self.total / self.count if self.count else 0.0

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
        self.nodes = [Node(0, None, None)]

    @property
    def root(self) -> Node:
        """The first plan."""
        return self.nodes[0]

    def add(self, parent: Node, proposal: Child) -> Node:
        """Add one proposed child; see `extend`."""
        return self.extend(parent, (proposal,))[0]

    def extend(self, parent: Node, proposals: Sequence[Child]) -> list[Node]:
        """Add the proposed children; raises `ValueError` if their numbers are not the next."""
        added = [Node(proposal.node, parent, proposal) for proposal in proposals]
        for place, node in enumerate(added, len(self.nodes)):
            if node.id != place:
                raise ValueError(f"node {node.id} proposed, the next one is {place}")
        self.nodes += added
        parent.children += added
        for node in added:  # in order, unlike those that come back from flight
            parent.visible[node.id] = node
            parent.visible_plans += node.counts_as_plan
        self._update(parent, unsettled=len(added), actionable=len(added))
        return added

    def launch(self, node: Node, attempt: int) -> None:
        """Mark the node as in flight."""
        self._hide(node)
        node.status = "running"
        node.attempt = attempt
        self._update(node, unsettled=-1, in_flight=1)

    def score(self, node: Node, score: float, reward: float) -> None:
        """Settle a node in flight with a score, and back its reward up unless it is pruned.

        The paper's rule: pruned if its reward is more than `delta` below the parent's branch
        value before this outcome counts in it, and that value is above 0.
        """
        node.status, node.score, node.reward = "scored", score, reward
        parent = node.parent
        if parent is not None and self._falls_short(reward, parent):
            node.pruned = True
            self._update(node, in_flight=-1)
        else:
            self._show(node)
            self._update(node, in_flight=-1, reward=reward)

    def settle_without_score(self, node: Node, status: Literal["failed", "lost"]) -> None:
        """Settle a node in flight as failed or lost: no reward, and no way through it."""
        node.status = status
        self._update(node, in_flight=-1)

    def score_root(self, score: float, reward: float) -> None:
        """Score the root from the baseline, which is a measurement and not an attempt."""
        root = self.root
        root.status, root.score, root.reward = "scored", score, reward
        self._update(root, unsettled=-1, reward=reward)

    def draft_root(self, proposal: Child) -> None:
        """Give the root its plan; one that failed is open again with another plan."""
        root = self.root
        again = root.status == "failed"
        root.proposal, root.status = proposal, "open"
        self._update(root, unsettled=int(again))

    def reflect(self, node: Node, *, begins: bool) -> None:
        """Mark that a reflection on the node began or ended."""
        node.reflecting = begins
        self._update(node)

    def exhaust(self, node: Node) -> None:
        """Mark that nothing more can be proposed from the node."""
        node.exhausted = True
        self._update(node)

    def _show(self, node: Node) -> None:
        parent = node.parent
        if parent is None:
            return
        visible = parent.visible
        in_order = not visible or node.id > next(reversed(visible))
        visible[node.id] = node
        if not in_order:
            parent.visible = dict(sorted(visible.items()))
        parent.visible_plans += node.counts_as_plan

    def _hide(self, node: Node) -> None:
        if node.parent is not None:
            del node.parent.visible[node.id]
            node.parent.visible_plans -= node.counts_as_plan

    def _falls_short(self, reward: float, parent: Node) -> bool:
        value = parent.value
        return self.prune_below > 0 and value > 0 and reward < value - self.prune_below

    def _update(
        self,
        node: Node,
        *,
        unsettled: int = 0,
        in_flight: int = 0,
        actionable: int = 0,
        reward: float | None = None,
    ) -> None:
        """Add to the subtree's counts on the node and on all above it.

        What changed at the node may also decide whether it and its parent can be acted on.
        """
        actionable += self._turn(node)
        if node.parent is not None:
            turned = self._turn(node.parent)
            actionable += turned
            node.actionable -= turned  # the parent is no part of this subtree
        above: Node | None = node
        while above is not None:  # most changes are 0, and every test is cheaper than an addition
            if unsettled:
                above.unsettled += unsettled
            if in_flight:
                above.in_flight += in_flight
            if actionable:
                above.actionable += actionable
            if reward is not None:
                above.total += reward
                above.count += 1
            above = above.parent

    def _turn(self, node: Node) -> int:
        """Note whether the node itself can be acted on; return the change, -1, 0 or 1."""
        now = node.status == "open" or (
            node.status == "scored"
            and not node.pruned
            and not node.exhausted
            and not node.reflecting
            and node.visible_plans < self.children
        )
        before, node.self_actionable = node.self_actionable, now
        return now - before
