"""What a run believes about its task's hypotheses, and what it did about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlay.believed import believed
from outlay.report import svg
from outlay.report.blocks import Picture, Table, Text
from outlay.report.words import cut, many, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlay.believed import Believed, Experimented, Hypothesis
    from outlay.report.blocks import Block
    from outlay.report.view import View
    from outlay.state import State

SHOWN = 60
"""Rows of a table that are written out; of more, the latest."""


def hypotheses(view: View) -> list[Block]:
    """Return what is believed now, and which designs told so."""
    beliefs = view.state.beliefs
    if beliefs is None:
        return [Text(text="Not applicable: the task names no hypotheses.")]
    found = believed(beliefs)
    blocks: list[Block] = [Text(text=favourite(found), tone="lead"), _picture(found.hypotheses)]
    blocks += [Text(text=taken(found)), *_experiments(found)]
    blocks += [Text(text=saved(found)), *_sent_back(found)]
    return [*blocks, Text(text=_HOW, tone="note")]


def favourite(found: Believed) -> str:
    """Return in a sentence what is believed most."""
    if not any(one.outcome for one in found.experiments):
        return "No experiment has told anything, so the beliefs are those of the task."
    most = max(found.hypotheses, key=lambda one: one.posterior)
    return (
        f"Most believed: {cut(most.name, 200)}, {probability(most.posterior)} after "
        f"{probability(most.prior)} at the start."
    )


def taken(found: Believed) -> str:
    """Return in a sentence what the designs that passed took."""
    return (
        f"{many(len(found.experiments), 'design')} passed the gate and took "
        f"{number(found.budget - found.left)} of {number(found.budget)} {found.unit}; "
        f"{number(found.left)} are left."
    )


def saved(found: Believed) -> str:
    """Return in a sentence what the gate saved."""
    if not found.sent_back:
        return "No plan was sent back."
    return (
        f"{many(len(found.sent_back), 'plan')} sent back before an attempt was spent: "
        f"{number(found.saved)} {found.unit} saved."
    )


def probability(value: float) -> str:
    """Return the probability with as many digits as tell it from 0 and 1."""
    if value in (0, 1):
        return str(int(value))
    if value < 0.001:
        return "below 0.001"
    return "above 0.999" if value > 0.999 else f"{value:.3f}"


def outcome(found: Experimented) -> str:
    """Return what an experiment showed, or why it showed nothing."""
    if found.outcome:
        return ", ".join(f"{arm} {number(value)}" for arm, value in found.outcome.items())
    return found.problem or "not ended"


def learned(state: State, node: int) -> str:
    """Return what a node's design told, to be put after its score; empty without a design."""
    if state.beliefs is None or node not in state.beliefs.experiments:
        return ""
    found = believed(state.beliefs)
    one = next(one for one in found.experiments if one.node == node)
    now = f"; most believed: {_after(one, found.hypotheses)}" if one.posterior else ""
    return f"; its design: {cut(outcome(one), 120)}{now}"


def lines(found: Believed) -> list[str]:
    """Return the beliefs for a terminal: one line a hypothesis, then what was spent."""
    rows = sorted(found.hypotheses, key=lambda one: -one.posterior)
    texts = [f"{probability(one.prior)} → {probability(one.posterior)}" for one in rows]
    width = max(map(len, texts))
    return [
        "hypotheses, with the belief at the start and now:",
        *(f"  {text:<{width}}  {one.name}" for text, one in zip(texts, rows, strict=True)),
        f"  {taken(found)} {saved(found)}",
    ]


def _picture(found: Sequence[Hypothesis]) -> Picture:
    rows = sorted(found, key=lambda one: -one.posterior)[:SHOWN]
    bars = [
        svg.Bar(
            cut(one.name, 60),
            f"{probability(one.prior)} → {probability(one.posterior)}",
            one.posterior,
            min(one.prior, one.posterior),
            max(one.prior, one.posterior),
            _mark(one),
        )
        for one in rows
    ]
    table = [(one.name, probability(one.prior), probability(one.posterior)) for one in rows]
    return Picture(
        svg=svg.bars(bars, "beliefs before and now"),
        instead=Table(head=("hypothesis", "prior", "now"), rows=table, numeric=frozenset({1, 2})),
        legend=(
            ("helped", "believed more than at the start"),
            ("hurt", "believed less than at the start"),
        ),
    )


def _mark(found: Hypothesis) -> str:
    if found.posterior == found.prior:
        return "unknown"
    return "helped" if found.posterior > found.prior else "hurt"


def _experiments(found: Believed) -> list[Block]:
    if not found.experiments:
        return []
    rows = [
        (
            str(one.node),
            str(one.attempt or "–"),
            f"{', '.join(one.arms)}; {many(one.seeds, 'seed')}",
            number(one.cost),
            cut(outcome(one), 200),
            _after(one, found.hypotheses),
        )
        for one in found.experiments[-SHOWN:]
    ]
    head = ("node", "attempt", "design", found.unit, "outcome", "most believed after it")
    return [Table(head=head, rows=rows, numeric=frozenset({0, 1, 3}))]


def _after(found: Experimented, named: Sequence[Hypothesis]) -> str:
    if not found.posterior:
        return "–"
    most = max(range(len(named)), key=lambda k: found.posterior[k])
    return f"{cut(named[most].name, 60)}, {probability(found.posterior[most])}"


def _sent_back(found: Believed) -> list[Block]:
    if not found.sent_back:
        return []
    rows = [
        (f"{', '.join(one.arms)}; {many(one.seeds, 'seed')}", number(one.saved), one.reason)
        for one in found.sent_back[-SHOWN:]
    ]
    head = ("sent back", f"{found.unit} saved", "why")
    return [Table(head=head, rows=rows, numeric=frozenset({1}))]


_HOW = (
    "Each line runs from the belief at the start to the present one, the dot. Beliefs follow from "
    "the outcomes by Bayes' rule and from what the task says that each hypothesis predicts: they "
    "are right only as far as that is, and a hypothesis that is not named cannot win. A design "
    "takes its cost when it passes the gate, tried or not."
)
