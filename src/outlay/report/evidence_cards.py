"""What the evidence says: levers, judgements and dead ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from outlay.coordination.estimates import t_quantile
from outlay.report import svg
from outlay.report.blocks import Picture, Table, Text
from outlay.report.words import cut, interval, node_name, number, off_baseline, signed

if TYPE_CHECKING:
    from outlay.agents.effects import Estimate
    from outlay.report.blocks import Block
    from outlay.report.view import View
    from outlay.state import State

SHOWN = 60
"""Rows of a table that are written out."""


class Effect(NamedTuple):
    """What setting one lever to one option does; positive is better.

    Attributes:
        lever: The lever.
        option: What it is set to.
        mean: Estimate, metric units.
        low: Lower end of the 95 % interval.
        high: Upper end.
        tried: Attempts that made this change and no other.
        verdict: `helped`, `hurt` or `unknown`.
    """

    lever: str
    option: str
    mean: float
    low: float
    high: float
    tried: int
    verdict: str


def lever_effects(state: State) -> list[Effect]:
    """Return the effect of every option, set alone in the program as it stands."""
    default = {lever.name: lever.options[0].name for lever in state.task.levers}
    moves = [(lever.name, o.name) for lever in state.task.levers for o in lever.options[1:]]
    return _effects(state, default, moves)


def undoing(state: State) -> list[Effect]:
    """Return the effect of taking back each change of the champion, everything else kept."""
    champion = state.contest.champion
    default = {lever.name: lever.options[0].name for lever in state.task.levers}
    moves = [(lever, default[lever]) for lever in off_baseline(state, champion)]
    return _effects(state, state.configuration(state.tree.nodes[max(champion, 0)]), moves)


def _effects(state: State, base: dict[str, str], moves: list[tuple[str, str]]) -> list[Effect]:
    found = state.effects.differences(base, [{**base, lever: to} for lever, to in moves])
    return [_effect(state, *move, e) for move, e in zip(moves, found, strict=True)]


def _effect(state: State, lever: str, option: str, found: Estimate) -> Effect:
    half = t_quantile(0.975, found.df) * found.scale
    low, high = found.mean - half, found.mean + half
    verdict = "helped" if low > 0 else "hurt" if high < 0 else "unknown"
    tried = state.effects.direction(lever, option).tried
    return Effect(lever, option, found.mean, low, high, tried, verdict)


def levers(view: View) -> list[Block]:
    """Return which levers helped, hurt or are unknown."""
    state = view.state
    if state.started is None or not state.with_levers or not state.task.levers:
        return [Text(text="Not applicable: effects by lever need a task with levers.")]
    if not state.baseline_values:
        return [Text(text="Nothing is known of any lever: the baseline has no score.")]
    blocks: list[Block] = [_picture(lever_effects(state)), Text(text=_HOW, tone="note")]
    undone = undoing(state)
    if len(undone) > 1:
        what = "Taking back one change of the champion, with all of its others kept:"
        blocks += [Text(text=what), _picture(undone)]
    return blocks


def _picture(found: list[Effect]) -> Picture:
    found = sorted(found, key=lambda e: (_ORDER[e.verdict], -abs(e.mean)))[:SHOWN]
    bars = [
        svg.Bar(
            cut(f"{e.lever} = {e.option}", 40),
            f"{e.verdict} {signed(e.mean)} ({interval(e.low, e.high)})",
            e.mean,
            e.low,
            e.high,
            e.verdict,
        )
        for e in found
    ]
    rows = [
        (e.lever, e.option, e.verdict, signed(e.mean), interval(e.low, e.high), str(e.tried))
        for e in found
    ]
    head = ("lever", "option", "verdict", "effect", "95 % interval", "tried alone")
    return Picture(
        svg=svg.bars(bars), instead=Table(head=head, rows=rows, numeric=frozenset({3, 5}))
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
    """Return the directions that were given up, and nodes that yielded nothing more."""
    state = view.state
    if state.started is None:
        return [Text(text="The run has not begun.")]
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


_ORDER = {"helped": 0, "hurt": 1, "unknown": 2}

_HOW = (
    "Positive is better. Each bar is one option set alone in the program as it stands, with its "
    "95 % interval: the posterior of a linear model of all selection scores with an effect for "
    "each option and each pair, shrunken towards a common mean (pairs towards 0). A lever counts "
    "as helped or hurt where the interval leaves out 0; otherwise it is unknown, which is not the "
    "same as without effect. The intervals hold one at a time, not for all levers together."
)

_LIMITS = (
    "A challenger is promoted once the lower limit lies above 0. The limits are those of the "
    "confirmation rule, which may stop at any pair, so they are wider than a 95 % interval of the "
    "same pairs."
)
