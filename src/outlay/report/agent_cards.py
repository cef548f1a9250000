"""What coding agents and models used: in all, and in each attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlay.report.blocks import Table, Text
from outlay.report.words import money, tokens
from outlay.usage import used_by

if TYPE_CHECKING:
    from outlay.events import AttemptSettled
    from outlay.report.blocks import Block
    from outlay.report.view import View
    from outlay.usage import Used


def agents(view: View) -> list[Block]:
    """Return what each client used as executor and as reflector, and who counted."""
    found = list(view.state.agents.values())
    rows = [(used.role, used.who, *_numbers(used), used.known) for used in found]
    if len(found) > 1:
        total = found[0]
        for used in found[1:]:
            total = total.plus(used)
        rows.append(("in all", "", *_numbers(total), total.known))
    head = ("role", "client", "tries", "requests", "input", "cached", "output", "reasoning")
    table = Table(
        head=(*head, "money", "counted by"), rows=rows, numeric=frozenset(range(2, len(head) + 1))
    )
    return [table, Text(text=_HOW, tone="note")]


def _numbers(used: Used) -> tuple[str, ...]:
    counts = (used.tries, used.requests, used.input, used.cached, used.output, used.reasoning)
    return (*(f"{count:,}" for count in counts), money(used.usd, priced=used.priced))


def of_attempt(view: View, event: AttemptSettled) -> list[Block]:
    """Return who drafted an attempt's plan, who carried it out, and what that used."""
    state = view.state
    lines = []
    if (draft := view.history.drafted.get(state.nodes[event.attempt])) is not None:
        lines.append(f"Plan drafted by {state.clients['reflector']} ({draft.work}).")
    if (used := used_by(event, "executor", state)) is not None:
        lines.append(f"Carried out by {used.who}: {tokens(used)}.")
    return [Text(text=" ".join(lines))] if lines else []


_HOW = (
    "Input holds what a cache gave, output holds reasoning. The proxy counts what the provider "
    "tells with each answer; stream, session and told are the client's own word. Incomplete: a "
    "request that was in flight, or all since the last count, may be missing. An estimate is made "
    "from the length of the texts, for a client that tells nothing."
)
