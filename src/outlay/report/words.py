"""How numbers, nodes and findings are said, the same in the report and in the terminal."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from outlay.allocation.policies import STAR
from outlay.decision.under_way import in_flight
from outlay.events import AttemptLaunched
from outlay.summary import difference, standing
from outlay.trust import self_reported

if TYPE_CHECKING:
    from collections.abc import Mapping

    from outlay.allocation.tree import Node
    from outlay.events import RunEnded
    from outlay.state import State
    from outlay.summary import Estimate
    from outlay.usage import Used


def number(value: float | None) -> str:
    """Return the value with four significant digits, or a dash for none."""
    return "–" if value is None else f"{value:.4g}"


def signed(value: float | None) -> str:
    """Return the value with its sign."""
    return "–" if value is None else f"{value:+.4g}"


def interval(low: float | None, high: float | None) -> str:
    """Return the interval's limits in words, to three digits of its width."""
    if low is None or high is None:
        return "interval unknown"
    if high - low <= 1e-9 * abs(low) or high - low < 1e-300:
        return f"{low:.4g} to {high:.4g}"
    places = min(max(2 - math.floor(math.log10(high - low)), 0), 12)
    return f"{low:.{places}f} to {high:.{places}f}"


def many(count: int, noun: str) -> str:
    """Return the count with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def duration(seconds: float) -> str:
    """Return the seconds in the largest unit that fits."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    if seconds < 6000:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h"


def cut(text: str, length: int) -> str:
    """Return the text on one line, no longer than that."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"


def title(question: str) -> str:
    """Return the question's first paragraph, without the marks of a Markdown heading."""
    return question.strip().split("\n\n")[0].lstrip("# ")


def printable(text: str) -> str:
    """Return the text without control characters, which a terminal would obey."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )


_CODE = re.compile(r"(?<!`)`([\w .+/=-]{1,80})`(?!`)")


def spans(text: str) -> list[tuple[str, bool]]:
    """Return the text in pieces, each with whether it is code: what stood between backticks.

    Only letters, digits and `_ .+/=-` count as code, so that a piece of it can hold no markup.
    """
    pieces = _CODE.split(text)
    return [(piece, k % 2 == 1) for k, piece in enumerate(pieces) if piece]


def settings(changes: Mapping[str, str]) -> str:
    """Return levers and options, such as `depth=8, scale=on`."""
    return ", ".join(f"{lever}={option}" for lever, option in changes.items())


UNPRICED = "no price known"
"""In place of money that a model without a price would have cost."""

_SMALL = 0.1
"""US dollars below which cents are too coarse."""


def amount(value: float) -> str:
    """Return US dollars to the cent, and small ones to three digits."""
    if not 0 < value < _SMALL:
        return f"{value:,.2f}"
    return f"{value:.{2 - math.floor(math.log10(value))}f}".rstrip("0")


def usd(value: float) -> str:
    """Return US dollars with their unit."""
    return f"{amount(value)} USD"


def money(value: float, *, priced: bool) -> str:
    """Return dollars, of which some are missing where a model has no price."""
    if priced:
        return usd(value)
    return f"at least {usd(value)}" if value else UNPRICED


_ROLES = {"planning": "reflector", "execution": "executor"}


def spent_usd(state: State, count: float, value: float, kind: str = "") -> str:
    """Return what a number of tokens cost, of one kind of work or of all, as far as is known."""
    priced = not count or all(
        used.priced for used in state.agents.values() if used.role == _ROLES.get(kind, used.role)
    )
    return money(value, priced=priced)


def tokens(used: Used) -> str:
    """Return what an agent used in words, and how surely that is known."""
    parts = [
        f"{many(used.input, 'token')} in ({used.cached:,} cached)",
        f"{used.output:,} out ({used.reasoning:,} reasoning)",
        money(used.usd, priced=used.priced),
    ]
    return f"{', '.join(parts)}; {_KNOWN.get(used.known, f'counted by: {used.known}')}"


_KNOWN = {"estimate": "an estimate", "proxy": "counted by the proxy"}


def limit(name: str, value: float) -> str:
    """Return a limit of the budget in words, such as `12 attempts` or `10.0 min`."""
    if name == "seconds":
        return f"{duration(value)} of time"
    if name == "usd":
        return usd(value)
    return many(round(value), name.removesuffix("s"))


def node_name(state: State, number: int) -> str:
    """Return what people call a node."""
    return "the baseline" if number == state.baseline else f"node {number}"


def change(state: State, node: Node) -> str:
    """Return what sets the node apart from its parent."""
    proposal = node.proposal
    if proposal is None or (node.parent is None and not state.with_levers):
        return "baseline" if state.with_levers else "first plan"
    if proposal.changes:
        return settings(proposal.changes)
    if proposal.kind == "continue" and node.parent is not None:
        return f"goes on from node {node.parent.id}"
    if proposal.kind == "repeat":
        return "the first plan once more"
    return proposal.hypothesis or "no change named"


def whole(state: State, node: Node) -> str:
    """Return all that sets the node apart from the program as it stands."""
    return settings(off_baseline(state, node.id)) or change(state, node)


STATUS = {"open": "not tried", "running": "in flight"}
"""What people call the states of a node whose names say something else to them."""


def standing_word(state: State, node: Node) -> str:
    """Return in one word where the node stands."""
    compared = state.task.search.policy != STAR
    if compared and node.id == state.contest.champion and node.status == "scored":
        return "champion"
    if node.status == "scored" and node.pruned:
        return "pruned"
    return node.status


def better(state: State) -> str:
    """Return which way the metric is better."""
    return "higher is better" if state.task.metric.sign > 0 else "lower is better"


def off_baseline(state: State, number: int) -> dict[str, str]:
    """Return the levers that the node sets otherwise than the baseline."""
    if not state.with_levers or number < 0:
        return {}
    chosen = state.configuration(state.tree.nodes[number])
    return {
        lever.name: chosen[lever.name]
        for lever in state.task.levers
        if chosen[lever.name] != lever.options[0].name
    }


def status(state: State) -> str:
    """Return how the run ended, or that it did not."""
    if state.ended is None:
        return "not ended: it is running, or was interrupted and can be resumed"
    return f"ended: {ending(state, state.ended)}"


def ending(state: State, ended: RunEnded) -> str:
    """Return in words why a run ended."""
    name, _, what = ended.reason.partition(": ")
    allowed = getattr(state.budget, name, None) if ended.status == "budget" else None
    if allowed is None:
        return f"{ended.status}, {ended.reason}"
    left = getattr(state.ledger.remaining(state.budget, state.elapsed), name)
    if what == "spent" and name in ("tokens", "usd") and left > 0:
        what = f"the {limit(name, left)} that is left does not cover another attempt"
    if what == "spent":
        return f"the budget of {limit(name, allowed)} is spent"
    return f"the budget of {limit(name, allowed)}: {what}"


def finding(state: State) -> str:
    """Return what was found, in a sentence that claims no more than was measured."""
    if state.started is None:
        return "The run has not begun."
    if not state.baseline_values:
        found = _no_baseline(state)
    elif state.task.search.policy == STAR:
        count = many(state.attempts + 1, "configuration")
        found = f"An ablation: {count} measured, none on fresh seeds. See ablation.html."
    elif state.contest.champion == state.baseline:
        found = _no_gain(state)
    else:
        found = _gain(state)
    return f"{found} {_SELF_REPORTED}" if self_reported(state) else found


_SELF_REPORTED = (
    "All scores are self-reported: a file that the agent may edit prints the metric, so they say "
    "what that file says, not what an untouched evaluator found."
)


def _no_baseline(state: State) -> str:
    fault = state.baseline_fault
    if fault is None:
        return "The baseline is not measured yet, so nothing can be said."
    return (
        f"The baseline has no score ({fault.reason or fault.outcome}: {fault.detail}), "
        "so nothing else was tried."
    )


def _no_gain(state: State) -> str:
    baseline = standing(state, state.baseline)
    level = baseline.fresh.mean if baseline.fresh else baseline.selected
    tested = sum(found.event.pairs > 0 for found in state.judgements)
    untested = len(state.judgements) - tested
    flying = sum(isinstance(w.launch, AttemptLaunched) for w in in_flight(state))
    under_way = f" ({flying} under way)" if flying else ""
    tried = f"{many(state.attempts, 'attempt')}{under_way}"
    looked = f"Of {tried}, {tested} scored well enough to be tested on"
    spare = f", {untested} more could not be for lack of budget" if untested else ""
    return (
        f"No confirmed gain. {looked} fresh seeds{spare}, and none proved better; the "
        f"program as it stands ({state.task.metric.name} {number(level)}) remains the champion."
    )


def _gain(state: State) -> str:
    champion = state.contest.champion
    changed = settings(off_baseline(state, champion))
    who = f"Node {champion}" + (f" ({changed})" if changed else "")
    found = difference(state)
    if found is None:
        compared = state.task.coordination.confirmation != "none"
        why = (
            "it beat the incumbent on fresh seeds" if compared else "it has the best score so far"
        )
        return (
            f"{who} is the champion: {why}. By how much it beats "
            "the baseline is measured at the end, on seeds that chose nothing; that is to come."
        )
    return f"{who} {_verdict(state, found)}"


def _verdict(state: State, found: Estimate) -> str:
    metric = state.task.metric.name
    sides = [standing(state, node).fresh for node in (state.contest.champion, state.baseline)]
    levels = " against ".join(number(side.mean) for side in sides if side is not None)
    measured = (
        f"{metric} {levels} on {found.n} fresh seeds ({better(state)}), a paired gain of "
        f"{signed(found.mean)} (95 % interval {interval(found.low, found.high)})"
    )
    if found.low is not None and found.low > 0:
        return f"beats the baseline: {measured}."
    return (
        "was confirmed during the search, but the final measurement does not settle that it "
        f"beats the baseline: {measured}."
    )
