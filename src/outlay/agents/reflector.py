"""From a node of the tree to its next children, as events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from outlay.agents.levers import Proposal, propose
from outlay.events import Child, Reflected

if TYPE_CHECKING:
    from outlay.allocation.tree import Node
    from outlay.state import State


def reflect(state: State, node: Node, asked: int) -> Reflected:
    """Return up to `asked` new plans below the node; fewer mark it exhausted, with the reason."""
    proposals = _proposals(state, node, asked)
    children = tuple(
        _child(proposal, place, "plan")
        for place, proposal in enumerate(proposals, len(state.tree.nodes))
    )
    reason = "" if len(children) == asked else _why_fewer(state)
    return Reflected(node=node.id, asked=asked, children=children, reason=reason)


def go_on(state: State, node: Node) -> Reflected:
    """Return one child that continues from the node, at no planning charge.

    With levers it is the reflector's next proposal; otherwise the plan stays and the executor is
    asked to improve on what is there.
    """
    number = len(state.tree.nodes)
    if not state.with_levers:
        child = Child(node=number, kind="continue")
        return Reflected(node=node.id, asked=1, children=(child,))
    children = tuple(
        _child(proposal, number, "continue") for proposal in _proposals(state, node, 1)
    )
    reason = "" if children else _why_fewer(state)
    return Reflected(node=node.id, asked=1, children=children, reason=reason)


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


def _child(proposal: Proposal, number: int, kind: Literal["plan", "continue"]) -> Child:
    return Child(
        node=number,
        kind=kind,
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
