"""The cards of a report, one analysis each. A card that fails says so and spoils no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlay.agents.reflections.texts import plan_of
from outlay.allocation.policies import STAR
from outlay.report import agent_cards, attempt_cards, belief_cards, evidence_cards, tree_cards
from outlay.report.blocks import Card, Code, Fold, Table, Text
from outlay.report.glossary import WORDS
from outlay.report.words import change, duration, finding, interval, limit, number, spent_usd
from outlay.summary import charges, standing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from outlay.allocation.tree import Node
    from outlay.report.blocks import Block
    from outlay.report.view import View
    from outlay.state import State
    from outlay.summary import Estimate

    Analysis = Callable[[View], Sequence[Block]]


def cards(view: View) -> list[Card]:
    """Return all cards of a run in the order of reading.

    An ablation compares no champions; cards about agents and hypotheses need some. A card that
    has nothing to say is left out.
    """
    left_out = OF_A_SEARCH if _is_ablation(view) else ()
    if not view.state.agents:
        left_out = (*left_out, OF_AGENTS)
    if view.state.beliefs is None:
        left_out = (*left_out, OF_HYPOTHESES)
    made = [
        _card(title, analysis, view)
        for title, analysis in ANALYSES.items()
        if title not in left_out
    ]
    return [card for card in made if card.blocks]


def _is_ablation(view: View) -> bool:
    return view.state.started is not None and view.state.task.search.policy == STAR


def _card(title: str, analysis: Analysis, view: View) -> Card:
    try:
        return Card(title=title, blocks=list(analysis(view)))
    except Exception as error:  # whatever one analysis meets, the others are worth reading
        reason = f"This analysis failed: {type(error).__name__}: {error}"
        return Card(title=title, blocks=[Text(text=reason, tone="bad")])


def found(view: View) -> list[Block]:
    """Return the finding in a sentence, and how it was arrived at."""
    state = view.state
    blocks: list[Block] = [Text(text=finding(state), tone="lead")]
    blocks += [Text(text=f"Evaluator: {problem}", tone="bad") for problem in state.problems]
    if not state.baseline_values or _is_ablation(view):
        return blocks
    rows = []
    for who, node in (("champion", state.contest.champion), ("baseline", state.baseline)):
        scores = standing(state, node)
        rows.append((who, str(scores.node), number(scores.selected), *_fresh(scores.fresh)))
    if state.contest.champion == state.baseline:
        rows[0] = ("champion", "none", "–", "–", "–")
    head = ("", "node", "selection seeds", "fresh seeds", "95 % interval")
    blocks.append(Table(head=head, rows=rows, numeric=frozenset({2, 3})))
    return blocks


def _fresh(found: Estimate | None) -> tuple[str, str]:
    return ("–", "–") if found is None else (number(found.mean), interval(found.low, found.high))


def champion(view: View) -> list[Block]:
    """Return what the champion changes, its plan, and how to run it."""
    state = view.state
    node = state.contest.champion if state.started is not None else 0
    if node == state.baseline:
        return [Text(text="The champion is the program as it stands; it changes nothing.")]
    blocks = _settings(state, node) if state.with_levers else _plan(state, state.tree.nodes[node])
    blocks += _patch(view.patch, node)
    commands = attempt_cards.command_lines(state, node)
    return [*blocks, Text(text="Command of its evaluation:"), Code(text="\n".join(commands))]


def _plan(state: State, node: Node) -> list[Block]:
    """Return what a node's plan comes to, and all of it to fold out."""
    proposal = node.proposal
    said = (proposal.summary.strip() or proposal.hypothesis) if proposal is not None else ""
    blocks: list[Block] = [Text(text=f"Node {node.id}: {said or change(state, node)}")]
    whole = plan_of(node)
    return [*blocks, Fold(title="Its whole plan", blocks=[Code(text=whole)])] if whole else blocks


def _patch(patch: str, node: int) -> list[Block]:
    """Return the first lines of a patch."""
    if not patch:
        return []
    lines = patch.splitlines()
    text = "What it changes of the files"
    if len(lines) > PATCH_LINES:
        text += f", {PATCH_LINES} of {len(lines):,} lines (`outlay diff baseline {node}` has all)"
    shown = "\n".join(line[:PATCH_COLUMNS] for line in lines[:PATCH_LINES])
    return [Text(text=f"{text}:"), Code(text=shown)]


def _settings(state: State, node: int) -> list[Block]:
    """Return the levers of a node beside the baseline's."""
    chosen = state.configuration(state.tree.nodes[node])
    rows = []
    for lever in state.task.levers:
        default = lever.options[0].name
        rows.append(
            (
                lever.name,
                default,
                chosen[lever.name],
                "" if chosen[lever.name] == default else "changed",
            )
        )
    return [Table(head=("lever", "baseline", "champion", ""), rows=rows)]


def budget(view: View) -> list[Block]:
    """Return what was spent on what, and what is left."""
    state = view.state
    rows = []
    for kind, charge in charges(state).items():
        rows.append(
            (
                kind,
                f"{charge['attempts']:.0f}",
                duration(charge["seconds"]),
                f"{charge['tokens']:,.0f}",
                spent_usd(state, charge["tokens"], charge["usd"], kind),
            )
        )
    left = state.ledger.remaining(state.budget, state.elapsed)
    limits = [
        (name, limit(key, allowed), limit(key, max(getattr(left, key), 0.0)))
        for key, name in LIMITS
        if (allowed := getattr(state.budget, key)) is not None
    ]
    head = ("kind", "attempts", "work", "tokens", "money")
    return [
        Table(head=head, rows=[*rows[1:], rows[0]], numeric=frozenset({1, 2, 3, 4})),
        Table(head=("limit", "allowed", "left"), rows=limits, numeric=frozenset({1, 2})),
        Text(text=f"Drivers were alive for {duration(state.elapsed)}: the clock of the run."),
    ]


def glossary(view: View) -> list[Block]:
    """Return the words of the other cards, one line each."""
    return [Table(head=("word", "what it means"), rows=WORDS)]


def again(view: View) -> list[Block]:
    """Return what is needed to run this again."""
    state, started = view.state, view.state.started
    if started is None:
        return [Text(text="The run has not begun.")]
    seeds = state.task.seeds
    rows = [
        ("run seed", str(started.seed)),
        ("selection seeds", ", ".join(map(str, seeds.selection))),
        ("confirmation seeds", f"{seeds.confirmation} and up, 12 for each challenger"),
        ("final seeds", ", ".join(map(str, seeds.final))),
        ("noise", state.task.evaluator.noise),
        ("policy", state.task.search.policy),
        ("confirmation", _rule(view)),
        ("agent", started.agent),
        ("workers", str(state.workers)),
        ("task", started.task_hash[:16]),
        ("files", started.files[:16] + (" (with uncommitted changes)" if started.dirty else "")),
        *view.versions,
    ]
    return [Table(head=("what", "value"), rows=rows)]


LIMITS = (("attempts", "attempts"), ("tokens", "tokens"), ("usd", "usd"), ("seconds", "time"))
"""Limits of a budget, as fields and as keys of the task file."""


def _rule(view: View) -> str:
    rule = view.state.task.coordination
    rate = f", {100 * rule.error_rate:g} % for any false promotion in the run"
    return rule.confirmation + (rate if rule.confirmation == "sequential" else "")


PATCH_LINES, PATCH_COLUMNS = 200, 300
"""Of the champion's patch, what is shown."""

OF_AGENTS = "Agents and models"
OF_HYPOTHESES = "Hypotheses"

ANALYSES: dict[str, Analysis] = {
    "What was found": found,
    "Champion": champion,
    "Champion curve": tree_cards.curve,
    "Plan tree": tree_cards.tree,
    "Which levers helped": evidence_cards.levers,
    "Judgements": evidence_cards.judgements,
    "Dead ends": evidence_cards.dead_ends,
    OF_HYPOTHESES: belief_cards.hypotheses,
    "Budget": budget,
    OF_AGENTS: agent_cards.agents,
    "Interrupted tries": attempt_cards.broken,
    "Attempts": attempt_cards.attempts,
    "To run it again": again,
    "Words": glossary,
}

OF_A_SEARCH = ("Champion", "Champion curve", "Which levers helped", "Judgements", "Dead ends")
"""Cards about champions, or about what the surface of an ablation says better."""
