"""From a node of the tree to its next children, as events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from outlay.agents.levers import Proposal, propose
from outlay.events import Child, Reflected

if TYPE_CHECKING:
    from outlay.allocation.tree import Node
    from outlay.state import State


class Reflector(Protocol):
    """Drafts the plans below a node.

    A reflector keeps nothing of its own and reads no clock: the same state and node give the same
    event, so that a log can be replayed. Randomness comes from `state.random`, and what it used
    stands in the event's charge.
    """

    def reflect(self, state: State, node: Node, asked: int) -> Reflected:
        """Return up to `asked` new plans below the node; fewer mark it exhausted, with the reason.

        The children are numbered on from `len(state.tree.nodes)`.
        """


class LeverReflector:
    """Proposes settings of the task's levers; without levers it has nothing to propose."""

    def reflect(self, state: State, node: Node, asked: int) -> Reflected:
        """Return up to `asked` configurations that are not in the tree yet."""
        proposals = _proposals(state, node, asked)
        children = tuple(
            _child(proposal, place)
            for place, proposal in enumerate(proposals, len(state.tree.nodes))
        )
        reason = "" if len(children) == asked else _why_fewer(state)
        return Reflected(node=node.id, asked=asked, children=children, reason=reason)


BUILT_IN = LeverReflector()


def go_on(
    state: State, node: Node, reflector: Reflector, kind: Literal["continue", "repeat"]
) -> Reflected:
    """Return one child that goes on from the node, at no planning charge.

    With levers it is the reflector's next proposal. Otherwise the plan stays, and the executor is
    asked to improve on what is there (`continue`) or to begin again (`repeat`).
    """
    if not state.with_levers:
        child = Child(node=len(state.tree.nodes), kind=kind)
        return Reflected(node=node.id, asked=1, children=(child,))
    found = reflector.reflect(state, node, 1)
    children = tuple(msgspec.structs.replace(c, kind="continue") for c in found.children)
    return Reflected(node=node.id, asked=1, children=children, reason=found.reason)


def _proposals(state: State, node: Node, asked: int) -> list[Proposal]:
    if not state.with_levers:
        return []
    directions = state.directions
    retired = directions.dead_ends.retired if directions.settings.dead_ends else frozenset()
    return propose(
        state.effects,
        state.configuration(node),
        asked,
        known=state.configurations,
        retired=retired,
        axes=directions.order(state.attempts),
    )


def _child(proposal: Proposal, number: int) -> Child:
    return Child(
        node=number,
        changes=dict(proposal.changes),
        axis=proposal.axis,
        direction=proposal.direction,
        prior=proposal.prior,
        hypothesis=proposal.hypothesis,
        rationale=proposal.rationale,
        risks=proposal.risks,
    )


def _why_fewer(state: State) -> str:
    if not state.with_levers:
        return "no reflector: this agent can only continue"
    if state.directions.settings.dead_ends and state.directions.dead_ends.retired:
        return "every other configuration is in the tree or lies in a retired direction"
    return "every configuration within reach is in the tree"
