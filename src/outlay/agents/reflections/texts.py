"""Plans that a model drafted, as text: written, rebuilt from edits, and taken apart into lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlay.agents.plans import Edit, apply_edits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlay.allocation.tree import Node

LONGEST_PLAN = 20_000
"""Characters of a plan, at most."""

EDITABLE = 200
"""Lines of a plan that a schema lists for editing, at most."""


def root_plan(title: str, hypothesis: str, approach: Sequence[str]) -> str:
    """Return the first plan as Markdown, ending with a newline."""
    lines = "\n".join(line.rstrip() for line in approach).strip("\n")
    return (
        f"# {title.strip()}\n\n## Hypothesis\n\n{hypothesis.strip()}\n\n## Approach\n\n{lines}\n"
    )


def plan_of(node: Node) -> str:
    """Return the node's complete plan, from the draft above it and all edits since.

    Empty for a node whose plan no model wrote.

    Raises:
        InputError: The edits do not fit the draft, which no run records.
    """
    edits: list[Edit] = []
    for above in node.path():
        if above.proposal is not None:
            edits = [*(Edit(*edit) for edit in above.proposal.edits), *edits]
            if above.proposal.plan:
                return apply_edits(above.proposal.plan, edits)
    return ""


def plans_of(nodes: Sequence[Node]) -> list[str]:
    """Return every node's complete plan as `plan_of` does; a parent comes before its children."""
    plans: dict[int, str] = {}
    for node in nodes:
        above = plans.get(node.parent.id, "") if node.parent is not None else ""
        if node.proposal is not None:
            edits = [Edit(*edit) for edit in node.proposal.edits]
            above = apply_edits(node.proposal.plan or above, edits)
        plans[node.id] = above
    return list(plans.values())


def editable_lines(plan: str) -> list[str]:
    """Return the lines that an edit may search for: not blank, no heading, found once."""
    lines = [line for line in plan.split("\n") if line.strip() and not line.startswith("#")]
    return [line for line in lines if plan.find(line) == plan.rfind(line)][:EDITABLE]


def same_plan(plan: str) -> str:
    """Return what two plans share if they differ in white space only."""
    return " ".join(plan.split())
