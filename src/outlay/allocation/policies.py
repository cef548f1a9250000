"""The policies: who gets the next piece of effort.

All of them share the tree, the agents and the accounting. Each states its ties and its treatment
of work in flight; a failed node is invisible to all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, sqrt
from typing import TYPE_CHECKING, Protocol

from outlay.allocation.walk import Move, walk
from outlay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from outlay.allocation.tree import Node, Tree

FLOOR = 1e-6
"""Smallest base of a sampling weight, applied before the power."""

MAX_EXPONENT = 10.0
"""`alpha_max` of PrimeScientist, Eq. 5."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a policy may look at besides the tree.

    Attributes:
        remaining: `r_t`, the smallest remaining share of any limit, in [0, 1].
        incumbent: The scored node with the best selection score so far; ties to the earlier one.
        attempts: Attempts launched so far.
        random: The decision's own random stream.
    """

    remaining: float
    incumbent: Node
    attempts: int
    random: Random


class Policy(Protocol):
    """Chooses the next action.

    A policy keeps no state of its own: the same tree and situation give the same move, so that a
    log can be replayed. It returns `None` if nothing can be done now, and raises nothing.
    """

    def move(self, tree: Tree, situation: Situation) -> Move | None:
        """Return the next action."""


def exponent(remaining: float) -> float:
    """Return `alpha_t = min(1 / r_t, 10)`, PrimeScientist, Eq. 5."""
    return MAX_EXPONENT if remaining <= 0 else min(1.0 / remaining, MAX_EXPONENT)


def base(parent: Node, child: Node) -> float:
    """Return the base of the child's weight, PrimeScientist, Eq. 4, at least `FLOOR`.

    `Q(v)` for a scored child; `Q(u) sqrt(P(v))` for an unvisited one, `sqrt(P(v))` if `Q(u) = 0`.
    """
    # Written out because this is the inner loop of every walk.
    value = child.total / child.count if child.count else (parent.value or 1.0) * sqrt(child.prior)
    return value if value > FLOOR else FLOOR


def weights(parent: Node, children: Sequence[Node], power: float) -> list[float]:
    """Return sampling weights, the largest base scaled to 1, divided by 1 + attempts in flight."""
    # Loops, which take half as long as comprehensions: every walk comes by here at every level.
    found: list[float] = []
    top, unvisited = FLOOR, parent.value or 1.0
    for child in children:  # `base`, written out
        count = child.count
        value = child.total / count if count else unvisited * sqrt(child.prior)
        if value < FLOOR:
            value = FLOOR
        elif value > top:
            top = value
        found.append(value)
    for place, child in enumerate(children):
        share = (found[place] / top) ** power
        found[place] = share / (1 + child.in_flight) if child.in_flight else share
    return found


def _draw(random: Random, children: Sequence[Node], shares: Sequence[float]) -> Node:
    left = random.random() * sum(shares)
    for place, share in enumerate(shares):
        left -= share
        if left < 0:
            return children[place]
    return children[-1]


class Adaptive:
    """PrimeScientist: sampling that sharpens as the budget runs out. No ties: it is a draw."""

    def move(self, tree: Tree, situation: Situation) -> Move | None:
        """Return the next action."""
        return _sampled(tree, situation.random, exponent(situation.remaining))


@dataclass(frozen=True, slots=True)
class Fixed:
    """Sampling with one exponent throughout; 0 weighs all children alike."""

    power: float

    def move(self, tree: Tree, situation: Situation) -> Move | None:
        """Return the next action."""
        return _sampled(tree, situation.random, self.power)


def _sampled(tree: Tree, random: Random, power: float) -> Move | None:
    def choose(node: Node, children: Sequence[Node]) -> Node:
        return _draw(random, children, weights(node, children, power))

    return walk(tree, choose)


class Uniform:
    """`random`: all children alike, busy ones less."""

    def move(self, tree: Tree, situation: Situation) -> Move | None:
        """Return the next action."""
        return _sampled(tree, situation.random, 0.0)


class Greedy:
    """The child with the largest weight base over 1 + attempts in flight; ties to the earliest."""

    def move(self, tree: Tree, situation: Situation) -> Move | None:
        """Return the next action."""

        def choose(node: Node, children: Sequence[Node]) -> Node:
            return max(children, key=lambda child: base(node, child) / (1 + child.in_flight))

        return walk(tree, choose)


class Uct:
    """UCT with `c = sqrt 2`: unvisited children first, by prior, then the largest bound.

    The bound is `Q(v) + c sqrt(ln N(u) / N(v))` over 1 + attempts in flight, `N` the retained
    scored nodes of a subtree. Ties to the earliest child.
    """

    def move(self, tree: Tree, situation: Situation) -> Move | None:
        """Return the next action."""

        def bound(node: Node, child: Node) -> tuple[float, float]:
            if not child.count:
                return (inf, child.prior)
            spread = sqrt(2.0 * log(max(node.count, 1)) / child.count)
            return ((child.value + spread) / (1 + child.in_flight), 0.0)

        def choose(node: Node, children: Sequence[Node]) -> Node:
            return max(children, key=lambda child: bound(node, child))

        return walk(tree, choose)


class Linear:
    """AutoResearch: go on from the incumbent, keep what scores better, never reflect.

    A failure or a worse score leaves the incumbent as it was; a tie keeps the earlier one.
    Attempts in flight do not hold the next one up. A child that was just made is executed.
    """

    def move(self, tree: Tree, situation: Situation) -> Move | None:
        """Return the next action."""
        if tree.root.status == "open":
            return Move("execute", tree.root)
        incumbent = situation.incumbent
        if incumbent.children and incumbent.children[-1].status == "open":
            return Move("execute", incumbent.children[-1])
        if tree.root.status == "running" or incumbent.exhausted:
            return None
        return Move("continue", incumbent)


class BestOfN:
    """`best-of-n`: the first plan again and again, each time from the start; never reflects.

    A child that was just made is executed first, and attempts in flight hold nothing up.
    """

    def move(self, tree: Tree, situation: Situation) -> Move | None:
        """Return the next action."""
        root = tree.root
        if root.status == "open":
            return Move("execute", root)
        if root.children and root.children[-1].status == "open":
            return Move("execute", root.children[-1])
        return None if root.exhausted else Move("repeat", root)


class Star:
    """`outlay ablate`: every attempt continues from the root.

    A child that was just made is executed first, and attempts in flight hold nothing up.
    """

    def move(self, tree: Tree, situation: Situation) -> Move | None:
        """Return the next action."""
        root = tree.root
        if root.children and root.children[-1].status == "open":
            return Move("execute", root.children[-1])
        if root.status != "scored" or root.exhausted:
            return None
        return Move("continue", root)


class Single:
    """One attempt, then nothing."""

    def move(self, tree: Tree, situation: Situation) -> Move | None:
        """Return the next action."""
        return None if situation.attempts else Linear().move(tree, situation)


_BUILT_IN: dict[str, Callable[[], Policy]] = {
    "adaptive": Adaptive,
    "random": Uniform,
    "greedy": Greedy,
    "uct": Uct,
    "linear": Linear,
    "single": Single,
    "best-of-n": BestOfN,
}

NAMES = (*_BUILT_IN, "fixed:A")

WITHOUT_REFLECTION = ("linear", "single", "best-of-n")
"""Policies that never ask a reflector."""

STAR = "star"
"""Name of the policy of `outlay ablate`, whose runs have it and which no search may choose."""


def by_name(name: str) -> Policy:
    """Return the policy of that name; `fixed:3` fixes the exponent at 3.

    Further policies come from entry points of the group `outlay.policies`: a class without
    arguments that keeps the contract of `Policy`. Raises `InputError` for an unknown name.
    """
    if name == STAR:
        return Star()
    if name in _BUILT_IN:
        return _BUILT_IN[name]()
    kind, _, power = name.partition(":")
    if kind == "fixed":
        try:
            value = float(power)
        except ValueError:
            value = -1.0
        if 0 <= value < inf:
            return Fixed(value)
        raise InputError(f"policy: found {name!r}, allowed: fixed:A with a number A of 0 or more")
    return _from_entry_point(name)


def _from_entry_point(name: str) -> Policy:
    from importlib.metadata import entry_points

    for point in entry_points(group="outlay.policies", name=name):
        policy: Policy = point.load()()
        return policy
    raise InputError(f"policy: found {name!r}, allowed: {', '.join(NAMES)}")
