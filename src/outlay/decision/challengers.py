"""Challengers: comparing them with the champion, and judging them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlay import events
from outlay.budget import Charge
from outlay.coordination.contest import PAIRS
from outlay.decision.reserves import affordable_rest
from outlay.decision.under_way import is_confirming

if TYPE_CHECKING:
    from outlay.coordination.confirmation import Judgement
    from outlay.events import AnyEvent
    from outlay.state import State


def judge(state: State) -> AnyEvent | None:
    """Return how a challenger fared, once that is known."""
    contest = state.contest
    if contest.challenge is not None:
        return None if is_confirming(state) else _judge_evidence(state)
    if not contest.queue:
        return None
    node = contest.queue[0]
    score = state.tree.nodes[node].score
    ahead = score is not None and contest.is_challenger(state.oriented(score))
    if contest.settings.confirmation == "none":
        reason = "selection score alone" if ahead else "no longer ahead of the champion"
        return _judged(state, node, None, promoted=ahead, reason=reason)
    if not ahead:
        reason = "no longer ahead of the champion"
        return _judged(state, node, None, promoted=False, reason=reason)
    return None


def _judge_evidence(state: State) -> AnyEvent | None:
    challenge = state.contest.challenge
    if challenge is None:
        return None
    found = state.contest.judgement()
    if challenge.broke:
        reason = "has no score on a confirmation seed"
        return _judged(state, challenge.node, found, promoted=False, reason=reason)
    if found is not None and found.verdict != "continue":
        promoted = found.verdict == "promote"
        reason = "confirmed" if promoted else "not better beyond the noise"
        return _judged(state, challenge.node, found, promoted=promoted, reason=reason)
    if len(challenge.pairs) >= state.contest.pairs_allowed:
        reason = "the incumbent has no score on too many seeds"
        return _judged(state, challenge.node, found, promoted=False, reason=reason)
    return None


def _judged(
    state: State, node: int, found: Judgement | None, *, promoted: bool, reason: str
) -> AnyEvent:
    challenge = state.contest.challenge
    return events.Judged(
        attempt=state.tree.nodes[node].attempt,
        promoted=promoted,
        pairs=len(challenge.pairs) if challenge is not None else 0,
        estimate=None if found is None else found.estimate,
        low=_finite(found.low) if found else None,
        high=_finite(found.high) if found else None,
        reason=reason,
    )


def _finite(value: float) -> float | None:
    return value if abs(value) != float("inf") else None


def confirm(state: State, elapsed: float) -> AnyEvent | None:
    """Return the next pairs of a challenger and the champion, if they are affordable."""
    contest = state.contest
    if is_confirming(state) or not (contest.challenge or contest.queue):
        return None
    node = contest.challenge.node if contest.challenge else contest.queue[0]
    place = contest.challenge.place if contest.challenge else contest.begun
    done = len(contest.challenge.pairs) if contest.challenge else 0
    more = contest.pairs_allowed if contest.settings.confirmation == "band" else 1
    first = state.task.seeds.confirmation + PAIRS * (place + 1) + done
    runs = [(n, s) for s in range(first, first + more) for n in (node, contest.champion)]
    reserve = Charge(seconds=len(runs) * state.baseline_seconds)
    if affordable_rest(state, elapsed).lacking(reserve):
        return None  # no verdict: it waits, and goes first if the limit is raised
    return events.MeasurementLaunched(
        work=f"m{state.measurements + 1}",
        trial=1,
        purpose="confirmation",
        runs=tuple(runs),
        attempt=state.tree.nodes[node].attempt,
        reserve=reserve,
    )


def untested(state: State) -> list[int]:
    """Return the nodes whose selection score beats the champion's and that await comparison."""
    under_way = state.contest.challenge
    return [*([under_way.node] if under_way is not None else []), *state.contest.queue]
