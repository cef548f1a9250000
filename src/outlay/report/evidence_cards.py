"""What the evidence says: levers, judgements and dead ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlay.report import contrasts, svg
from outlay.report.blocks import Picture, Table, Text
from outlay.report.words import cut, interval, node_name, number, signed

if TYPE_CHECKING:
    from outlay.report.blocks import Block
    from outlay.report.contrasts import Effect
    from outlay.report.view import View

SHOWN = 60
"""Rows of a table that are written out."""


def levers(view: View) -> list[Block]:
    """Return which levers helped, hurt or are unknown; nothing for a task without levers."""
    state = view.state
    if state.started is None or not state.with_levers or not state.task.levers:
        return []
    if not state.baseline_values:
        return [Text(text="Nothing is known of any lever: the baseline has no score.")]
    blocks: list[Block] = []
    if never := contrasts.untried(state):
        names = ", ".join(f"{lever}={option}" for lever, option in never)
        blocks.append(Text(text=f"No score tells of {cut(names, 1000)}."))
    if tried := contrasts.modelled(state):
        blocks = [_picture(tried), *blocks, Text(text=_HOW, tone="note")]
    taken_back = contrasts.undone(state)
    if len(taken_back) > 1:
        what = "Taking back one change of the champion, its others kept, by the same model:"
        blocks += [Text(text=what), _picture(taken_back)]
    direct = contrasts.measured(state)
    if direct:
        what = "Measured on fresh seeds, between two programs that differ in this lever only:"
        blocks += [Text(text=what), _picture(direct), Text(text=_DIRECT, tone="note")]
    if differ := _differ(tried, taken_back if len(taken_back) > 1 else [], direct):
        blocks.append(Text(text=f"{', '.join(differ)}: {_DIFFER}", tone="note"))
    return blocks


def _differ(tried: list[Effect], taken_back: list[Effect], direct: list[Effect]) -> list[str]:
    """Return the changes that two of the tables give different verdicts on."""
    verdicts: dict[tuple[str, str, str], set[str]] = {}
    for effect in (*tried, *direct):
        verdicts.setdefault(effect[:3], set()).add(effect.verdict)
    for effect in taken_back:
        change = (effect.lever, effect.option, effect.before)
        verdicts.setdefault(change, set()).add(_OPPOSITE[effect.verdict])
    return [f"{lever}={option}" for (lever, _, option), v in verdicts.items() if len(v) > 1]


def _picture(found: list[Effect]) -> Picture:
    found = sorted(found, key=lambda e: (_ORDER[e.verdict], -abs(e.mean)))[:SHOWN]
    bars = [
        svg.Bar(
            cut(f"{e.lever}: {e.before} → {e.option}", 40),
            f"{e.verdict} {signed(e.mean)} ({interval(e.low, e.high)})",
            e.mean,
            e.low,
            e.high,
            e.verdict,
        )
        for e in found
    ]
    rows = [
        (*e[:3], e.verdict, signed(e.mean), interval(e.low, e.high), str(e.basis)) for e in found
    ]
    head = ("lever", "from", "to", "verdict", "effect", "95 % interval", "rests on")
    return Picture(
        svg=svg.bars(bars), instead=Table(head=head, rows=rows, numeric=frozenset({4, 6}))
    )


def judgements(view: View) -> list[Block]:
    """Return how each comparison of a challenger with the champion of its time ended."""
    state = view.state
    if not state.judgements:
        return [Text(text="No attempt looked good enough to be compared with the champion.")]
    rows = []
    for found in state.judgements[-SHOWN:]:
        event = found.event
        rows.append(
            (
                f"node {found.node}",
                node_name(state, found.incumbent),
                "promoted" if event.promoted else "rejected",
                str(event.pairs),
                signed(event.estimate),
                "–" if event.low is None else interval(event.low, event.high),
                event.reason,
            )
        )
    head = ("challenger", "against", "verdict", "pairs", "gain", "limits of the rule", "why")
    left_out = len(state.judgements) - len(rows)
    blocks: list[Block] = [Table(head=head, rows=rows, numeric=frozenset({3, 4}))]
    if left_out:
        blocks.append(Text(text=f"{left_out} earlier ones are left out.", tone="note"))
    sd = state.contest.noise.sd
    noise = f"One evaluation scatters by {number(sd)} (standard deviation, pooled). " if sd else ""
    return [*blocks, Text(text=noise + _LIMITS, tone="note")]


def dead_ends(view: View) -> list[Block]:
    """Return the directions that were given up, and nodes that yielded nothing more.

    Nothing where neither happened to plans that are no settings of levers.
    """
    state = view.state
    if state.started is None:
        return [Text(text="The run has not begun.")]
    if not (state.with_levers or state.directions.dead_ends.retired or view.history.reflections):
        return []
    retired = sorted(state.directions.dead_ends.retired)
    blocks: list[Block] = []
    if retired:
        text = (
            "Three outcomes in a row without improvement. A direction opens again if the champion "
            "changes on a lever that it interacts with."
        )
        blocks = [Text(text=text), Table(head=("axis", "direction"), rows=list(retired))]
    else:
        blocks = [Text(text="No direction was given up.")]
    if not state.task.coordination.dead_ends:
        blocks.append(Text(text="The registry was only kept, not obeyed (dead_ends = false)."))
    exhausted: dict[str, list[str]] = {}
    for node, reason in view.history.reflections:
        exhausted.setdefault(reason, []).append(str(node))
    for reason, nodes in exhausted.items():
        names = ", ".join(nodes[:20]) + (" …" if len(nodes) > 20 else "")
        blocks.append(Text(text=f"Exhausted nodes {names}: {cut(reason, 200)}.", tone="note"))
    return blocks


_OPPOSITE = {"helped": "hurt", "hurt": "helped", "unknown": "unknown"}

_DIFFER = (
    "the verdicts above differ because they answer different questions: the option alone in the "
    "program as it stands, within the champion, or on fresh seeds, where pairs tell smaller "
    "effects apart. Unknown says only that this evidence does not tell the effect from 0."
)

_ORDER = {"helped": 0, "hurt": 1, "unknown": 2}

_HOW = (
    "What one option does, set alone in the program as it stands, in units of the metric; "
    "positive is better. Estimated from all scored attempts together, pulled towards no effect "
    "where there is little evidence. A lever helped or hurt where the 95 % interval leaves out 0; "
    "otherwise it is unknown, which is not the same as without effect. The intervals hold one at "
    "a time, not for all levers together. (A linear model of all selection scores, with an effect "
    "for each option and each pair; effects are shrunken towards their common mean, pairs "
    "towards 0.)"
)

_DIRECT = (
    "A paired difference with its 95 % t interval. Pairs of a comparison stop when the rule has "
    "seen enough, which favours what was promoted a little; the final seeds do not."
)

_LIMITS = (
    "A challenger is promoted once the lower limit lies above 0. The limits are those of the "
    "confirmation rule, which may stop at any pair, so they are wider than a 95 % interval of the "
    "same pairs."
)
