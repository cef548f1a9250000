"""What is wanted of a reflection: the form of the answer and all that it is checked against."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from outlay.agents.reflections.texts import plan_of, plans_of, same_plan

if TYPE_CHECKING:
    from outlay.allocation.tree import Node
    from outlay.designs.states import ResearchState
    from outlay.state import State


class Ask(NamedTuple):
    """One reflection.

    Attributes:
        plan: The plan to revise; empty if the first plan is asked for.
        asked: Children asked for, at least 1; a first plan is one.
        first: Number of the first of them in the tree.
        known: Plans in the tree as `same_plan` gives them; none of them is wanted again.
        retired: (axis, direction) that were given up.
        hypotheses: What the experiments are to tell apart, if anything, under the present
            beliefs; then every child may name a design, which passes a gate or is sent back.
    """

    plan: str
    asked: int
    first: int
    known: frozenset[str] = frozenset()
    retired: frozenset[tuple[str, str]] = frozenset()
    hypotheses: ResearchState | None = None


def ask_for(state: State, node: Node, asked: int) -> Ask:
    """Return what is asked below a node; the first plan, while the node has none."""
    directions = state.directions
    plan = plan_of(node)
    return Ask(
        plan=plan,
        asked=asked if plan else 1,
        first=len(state.tree.nodes) if plan else node.id,
        known=frozenset(same_plan(text) for text in plans_of(state.tree.nodes) if text),
        retired=directions.dead_ends.retired if directions.settings.dead_ends else frozenset(),
        hypotheses=state.beliefs.now if state.beliefs is not None else None,
    )
