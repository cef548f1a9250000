"""What happens next, given the state: the next event to record, or nothing until work settles.

A pure function of the log and of the drivers' clock as recorded with each event, so that
replaying a log reproduces every decision in it.
"""

from __future__ import annotations

from math import ceil
from statistics import fmean, stdev
from typing import TYPE_CHECKING

import msgspec

from outlay import events
from outlay.agents.reflector import BUILT_IN, go_on
from outlay.allocation.policies import Situation, by_name
from outlay.allocation.reward import fix_scale
from outlay.budget import Charge, Remaining
from outlay.coordination.contest import PAIRS

if TYPE_CHECKING:
    from outlay.agents.reflector import Reflector
    from outlay.allocation.walk import Move
    from outlay.coordination.confirmation import Judgement
    from outlay.events import AnyEvent
    from outlay.records import Work
    from outlay.state import State

NOISE_SEEDS = 2
"""Seeds of the baseline beyond the selection seeds, from the head of the confirmation stream."""

ROOT_DRAFTS = 2
"""First plans that are asked for: one more where the first one failed."""

FINAL_MARGIN = 1.25
"""Reserve for the final measurement over its expected seconds."""


def decide(state: State, elapsed: float, reflector: Reflector = BUILT_IN) -> AnyEvent | None:
    """Return the next event, or `None` if nothing can happen before work in flight settles.

    Args:
        state: The state so far, of a run that has started.
        elapsed: Seconds that drivers were alive, as will be recorded with the event.
        reflector: Who drafts new plans.
    """
    if state.ended is not None:
        return None
    again = follow(state) or _try_again(state)
    if again is not None or state.reward is None:
        return again or _measure_baseline(state)
    finishing = _final_begun(state)
    free = len(_in_flight(state)) < state.workers
    if free and not finishing:
        more = _confirm(state, elapsed) or _explore(state, elapsed, reflector)
        if more is not None:
            return more
    return _finish(state, elapsed) if free else None


def follow(state: State) -> AnyEvent | None:
    """Return what follows from what was settled, without any choice: a scale or a judgement."""
    if state.ended is not None:
        return None
    if state.reward is None:
        return _fix_scale(state)
    return _judge(state)


def final_reserve(state: State) -> float:
    """Return the seconds of wall clock that are held for the final measurement."""
    subjects = 1 if state.contest.champion == state.baseline and not state.attempts else 2
    runs = subjects * len(state.task.seeds.final)
    return FINAL_MARGIN * runs * state.baseline_seconds / _side_by_side(state)


def affordable_rest(state: State, elapsed: float) -> Remaining:
    """Return what is left for anything but the final measurement."""
    left = state.ledger.remaining(state.budget, elapsed)
    if left.seconds is None:
        return left
    return msgspec.structs.replace(left, seconds=left.seconds - final_reserve(state))


def attempt_reserve(state: State) -> Charge:
    """Return what an attempt holds: its limit, or the 90th percentile of those so far.

    Tokens and money are held up to what is left of them, so that the last attempt may begin.
    """
    usual, limit = state.usual_charge(), state.task.limits.seconds
    if not (usual.tokens_in or usual.usd):
        return Charge(attempts=1, seconds=_at_most(usual.seconds, limit))
    left = state.ledger.remaining(state.budget, 0.0)
    return Charge(
        attempts=1,
        tokens_in=ceil(_at_most(usual.tokens, left.tokens)),
        usd=_at_most(usual.usd, left.usd),
        seconds=_at_most(usual.seconds, limit),
    )


def reflection_reserve(state: State) -> Charge:
    """Return what a reflection by a model holds: the 90th percentile of those so far."""
    usual, left = state.usual_planning(), state.ledger.remaining(state.budget, 0.0)
    return Charge(
        tokens_in=ceil(_at_most(usual.tokens, left.tokens)),
        usd=_at_most(usual.usd, left.usd),
        seconds=usual.seconds,
    )


def _at_most(usual: float, left: float | None) -> float:
    return usual if left is None else min(usual, max(left, 0.0))


def lacking_for_attempt(state: State, elapsed: float) -> str:
    """Return the limit that no further attempt fits under, or an empty text."""
    rest = affordable_rest(state, elapsed)
    spent = [
        name
        for name in ("tokens", "usd")
        if (left := getattr(rest, name)) is not None and left <= 0
    ]
    return spent[0] if spent else rest.lacking(attempt_reserve(state))


def lacking_for_reflection(state: State, elapsed: float) -> str:
    """Return the limit that no reflection, with an attempt after it, fits under; or nothing."""
    both = reflection_reserve(state) + attempt_reserve(state)
    return affordable_rest(state, elapsed).lacking(both)


# The baseline and what follows from it.


def baseline_seeds(state: State) -> tuple[int, ...]:
    """Return the seeds of the baseline: selection seeds, then `NOISE_SEEDS` for the noise."""
    seeds = state.task.seeds
    return (*seeds.selection, *range(seeds.confirmation, seeds.confirmation + NOISE_SEEDS))


def _measure_baseline(state: State) -> AnyEvent | None:
    if state.baseline_fault is not None:
        fault = state.baseline_fault
        return events.RunEnded(status="failed", reason=f"baseline: {fault.reason}")
    if state.defaults_differ:
        return events.RunEnded(status="failed", reason=state.problems[-1])
    if state.works:
        return None
    first = state.task.seeds.selection[0]
    checks = [("repeat", first)]
    if any(not lever.options[0].is_plain for lever in state.task.levers):
        checks.append(("bare", first))
    return events.MeasurementLaunched(
        work="m1",
        trial=1,
        purpose="baseline",
        runs=tuple((state.baseline, seed) for seed in baseline_seeds(state)),
        checks=tuple(checks),
    )


def _fix_scale(state: State) -> AnyEvent | None:
    values = list(state.baseline_values.values())
    if not values or state.defaults_differ:
        return None
    spread = stdev(values) if len(values) > 1 else 0.0
    scale = fix_scale(state.task.metric, fmean(values), spread)
    return events.ScaleFixed(center=fmean(values), scale=scale)


# Work whose last try was lost.


def _try_again(state: State) -> AnyEvent | None:
    if len(_in_flight(state)) >= state.workers:
        return None
    for work in state.works.values():
        if not work.in_flight:
            return msgspec.structs.replace(work.launch, trial=work.launch.trial + 1)
    return None


# Challengers.


def _judge(state: State) -> AnyEvent | None:
    contest = state.contest
    if contest.challenge is not None:
        return None if _confirming(state) else _judge_evidence(state)
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


def _confirm(state: State, elapsed: float) -> AnyEvent | None:
    contest = state.contest
    if _confirming(state) or not (contest.challenge or contest.queue):
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


# The next attempt.


def _explore(state: State, elapsed: float, reflector: Reflector) -> AnyEvent | None:
    if state.stopping or lacking_for_attempt(state, elapsed):
        return None
    if state.drafting:
        return _draft(state, elapsed)
    if state.ask_again:
        return _reflect(state, elapsed, state.ask_again[0])
    move = next_move(state, elapsed)
    if move is None:
        return None
    if move.action == "execute":
        return events.AttemptLaunched(
            attempt=state.attempts + 1, trial=1, node=move.node.id, reserve=attempt_reserve(state)
        )
    if move.action != "reflect":
        return go_on(state, move.node, reflector, move.action)
    asked = state.task.search.children - move.node.visible_plans
    if not state.model_drafts:
        return reflector.reflect(state, move.node, asked)
    launch = events.ReflectionLaunched(work="", trial=1, node=move.node.id, asked=asked)
    return _reflect(state, elapsed, launch)


def _draft(state: State, elapsed: float) -> AnyEvent | None:
    """Ask for the first plan: at first, and once more where the root failed."""
    if any(_purpose(work) == "reflection" for work in state.works.values()):
        return None
    if state.ask_again:
        return _reflect(state, elapsed, state.ask_again[0])
    if state.drafts >= ROOT_DRAFTS or (state.drafts and state.tree.root.status == "open"):
        return None
    launch = events.ReflectionLaunched(work="", trial=1, node=events.ROOT_DRAFT, asked=1)
    return _reflect(state, elapsed, launch)


def _reflect(
    state: State, elapsed: float, launch: events.ReflectionLaunched
) -> events.ReflectionLaunched | None:
    """Ask a model, if there is enough for its answer and for an attempt at what it proposes."""
    if lacking_for_reflection(state, elapsed):
        return None
    work = f"r{state.reflections + 1}"
    return msgspec.structs.replace(launch, work=work, trial=1, reserve=reflection_reserve(state))


def next_move(state: State, elapsed: float) -> Move | None:
    """Return what the run's policy would do next, whether or not it is affordable."""
    situation = Situation(
        remaining=state.ledger.remaining_ratio(state.budget, elapsed),
        incumbent=state.incumbent,
        attempts=state.attempts,
        random=state.random("walk"),
    )
    return by_name(state.task.search.policy).move(state.tree, situation)


# The end.


def _finish(state: State, elapsed: float) -> AnyEvent | None:
    if any(not _is_final(work) for work in _in_flight(state)):
        return None
    if not (state.attempts or state.stopping or state.works or state.final):
        lacking = lacking_for_attempt(state, elapsed)
        if lacking:
            reason = f"{lacking}: what is left does not cover one attempt"
            return events.RunEnded(status="budget", reason=reason)
    open_seeds = _open_final_seeds(state)
    if open_seeds:
        return _measure_final(state, open_seeds)
    if state.works:
        return None
    return _end(state, elapsed)


def _end(state: State, elapsed: float) -> AnyEvent:
    if state.stopping:
        return events.RunEnded(status="stopped", reason="asked to stop")
    waiting = untested(state)
    if waiting:
        named = ", ".join(str(node) for node in waiting)
        reason = f"seconds: the rest does not cover comparing node {named} with the champion"
        return events.RunEnded(status="budget", reason=reason)
    move = next_move(state, elapsed)
    lacking = lacking_for_attempt(state, elapsed)
    if state.model_drafts and (state.drafting or (move is not None and move.action == "reflect")):
        lacking = lacking or lacking_for_reflection(state, elapsed)
    if lacking and move is not None:
        why = "the rest is held for the final measurement" if lacking == "seconds" else "spent"
        return events.RunEnded(status="budget", reason=f"{lacking}: {why}")
    reason = "nothing is left to try"
    if state.drafting:
        why = f": {state.complaint}" if state.complaint else ""
        reason = f"no first plan could be carried out{why}"
    return events.RunEnded(status="exhausted", reason=reason)


def untested(state: State) -> list[int]:
    """Return the nodes whose selection score beats the champion's and that await comparison."""
    under_way = state.contest.challenge
    return [*([under_way.node] if under_way is not None else []), *state.contest.queue]


def final_seeds(state: State) -> tuple[int, ...]:
    """Return the seeds of the final measurement; none for an ablation.

    A run that was opened again after one takes fresh ones, shifted past those already used.
    """
    seeds = state.task.seeds.final
    if not seeds:
        return ()
    shift = state.finals * (max(seeds) - min(seeds) + 1)
    return tuple(seed + shift for seed in seeds)


def _open_final_seeds(state: State) -> list[int]:
    begun = {e.seed for e in state.final}
    begun |= {seed for w in state.works.values() if _is_final(w) for _, seed in _runs(w)}
    return [seed for seed in final_seeds(state) if seed not in begun]


def _measure_final(state: State, open_seeds: list[int]) -> AnyEvent:
    share = ceil(len(state.task.seeds.final) / _side_by_side(state))
    nodes = dict.fromkeys((state.contest.champion, state.baseline))
    runs = tuple((node, seed) for seed in open_seeds[:share] for node in nodes)
    return events.MeasurementLaunched(
        work=f"m{state.measurements + 1}",
        trial=1,
        purpose="final",
        runs=runs,
        reserve=Charge(seconds=len(runs) * state.baseline_seconds),
    )


def _side_by_side(state: State) -> int:
    """Return how many parts the final measurement is split into; machine noise forbids it."""
    return state.workers if state.task.evaluator.noise == "seed" else 1


def _in_flight(state: State) -> list[Work]:
    return [work for work in state.works.values() if work.in_flight]


def _confirming(state: State) -> bool:
    return any(_purpose(work) == "confirmation" for work in state.works.values())


def _final_begun(state: State) -> bool:
    return bool(state.final) or any(_is_final(work) for work in state.works.values())


def _is_final(work: Work) -> bool:
    return _purpose(work) == "final"


def _purpose(work: Work) -> str:
    launch = work.launch
    if isinstance(launch, events.MeasurementLaunched):
        return launch.purpose
    return "attempt" if isinstance(launch, events.AttemptLaunched) else "reflection"


def _runs(work: Work) -> tuple[tuple[int, int], ...]:
    launch = work.launch
    return launch.runs if isinstance(launch, events.MeasurementLaunched) else ()
