"""What a run knows around a node, in words: scores, siblings, dead ends, effects, what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outlay.allocation.tree import Node
    from outlay.state import State

RECENT = 12
"""Nodes, judgements or directions of one kind that are listed, the latest ones."""

_LINE = 160


def standing(state: State, node: Node) -> str:
    """Return where the node, the baseline and the champion stand."""
    name = state.task.metric.name
    lines = [f"- baseline: {name} = {state.reward.center:.6g}"] if state.reward else []
    if node.score is not None:
        lines.append(f"- this plan (node {node.id}): {name} = {node.score:.6g}")
    if node.parent is not None and node.parent.score is not None:
        lines.append(f"- its parent (node {node.parent.id}): {node.parent.score:.6g}")
    champion = state.contest.champion
    if champion != state.baseline and (best := state.tree.nodes[champion].score) is not None:
        lines.append(f"- champion (node {champion}): {best:.6g}")
    return "# Where things stand\n\n" + "\n".join([*lines, _left(state)])


def _left(state: State) -> str:
    left = state.ledger.remaining(state.budget, state.elapsed)
    usual = state.usual_charge()
    parts = []
    for name in ("attempts", "tokens", "usd", "seconds"):
        amount = getattr(left, name)
        if amount is not None:
            each = getattr(usual, name)
            price = f" (an attempt usually takes {each:.4g})" if each else ""
            parts.append(f"{max(amount, 0.0):.6g} {name}{price}")
    return f"- left: {', '.join(parts)}"


def evidence(state: State) -> str:
    """Return how much of a difference is noise, and what comparisons said so far."""
    sd = state.contest.noise.sd
    lines = []
    if sd is not None:
        lines.append(f"- noise of one evaluation: standard deviation {sd:.3g}")
    judged = state.judgements
    if judged:
        promoted = sum(j.event.promoted for j in judged)
        lines.append(f"- compared on fresh seeds: {len(judged)}, confirmed: {promoted}")
    if state.contest.settings.confirmation == "none":
        lines.append("- a better score is enough to become champion")
    else:
        pairs = state.contest.pairs_allowed
        lines.append(f"- a better score becomes champion if up to {pairs} fresh seeds confirm it")
    return "# What counts as better\n\n" + "\n".join(lines)


def history(state: State, node: Node) -> str:
    """Return the plans next to the node, ways that were given up, and effects, as data."""
    beside = node.parent.children if node.parent is not None else []
    pruned = [other for other in state.tree.nodes if other.pruned]
    sections = {
        "Children of this plan": _nodes(state, node.children),
        "Its siblings": _nodes(state, [other for other in beside if other is not node]),
        "Given up after three outcomes without gain (axis: direction)": _given_up(state),
        "Mean absolute change of the metric by axis, largest first": _effects(state),
        "Left out of the search (pruned)": _nodes(state, pruned),
    }
    return "\n\n".join(
        "\n".join([f"{title}:", *lines]) for title, lines in sections.items() if lines
    )


def _nodes(state: State, nodes: list[Node]) -> list[str]:
    return [f"- node {n.id}, {_outcome(state, n)}: {_idea(n)}" for n in nodes[-RECENT:]]


def _outcome(state: State, node: Node) -> str:
    if node.score is None:
        return {"open": "not tried yet", "running": "under way"}.get(node.status, node.status)
    pruned = ", pruned" if node.pruned else ""
    confirmed = ", champion" if node.id == state.contest.champion else ""
    return f"{node.score:.6g}{pruned}{confirmed}"


def _idea(node: Node) -> str:
    proposal = node.proposal
    if proposal is None:
        return "the first plan"
    if proposal.kind == "continue":
        return "went on with its parent's plan"
    changes = ", ".join(f"{lever} = {option}" for lever, option in proposal.changes.items())
    about = f"[{proposal.axis}: {proposal.direction}] " if proposal.axis else ""
    idea = " ".join((proposal.summary or changes or proposal.hypothesis).split())
    return f"{about}{idea[:_LINE]} (expected {proposal.prior:.0%})"


def _given_up(state: State) -> list[str]:
    directions = state.directions
    retired = directions.dead_ends.retired if directions.settings.dead_ends else ()
    return [f"- {axis}: {direction}" for axis, direction in sorted(retired)[-RECENT:]]


def _effects(state: State) -> list[str]:
    ranking = state.directions.ranking
    axes = ranking.tried()[:RECENT] if state.directions.settings.ranking else []
    return [f"- {axis}: {ranking.effect(axis):.3g}" for axis in axes]
