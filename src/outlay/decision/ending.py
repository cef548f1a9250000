"""The final measurement, and how a run ends."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from outlay import events
from outlay.budget import Charge
from outlay.decision.challengers import untested
from outlay.decision.exploring import next_move
from outlay.decision.reserves import lacking_for_attempt, lacking_for_reflection, side_by_side
from outlay.decision.under_way import in_flight, is_final, runs_of

if TYPE_CHECKING:
    from outlay.events import AnyEvent
    from outlay.state import State


def finish(state: State, elapsed: float) -> AnyEvent | None:
    """Return the rest of the final measurement, and then the end."""
    if any(not is_final(work) for work in in_flight(state)):
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
    begun |= {seed for w in state.works.values() if is_final(w) for _, seed in runs_of(w)}
    return [seed for seed in final_seeds(state) if seed not in begun]


def _measure_final(state: State, open_seeds: list[int]) -> AnyEvent:
    share = ceil(len(state.task.seeds.final) / side_by_side(state))
    nodes = dict.fromkeys((state.contest.champion, state.baseline))
    runs = tuple((node, seed) for seed in open_seeds[:share] for node in nodes)
    return events.MeasurementLaunched(
        work=f"m{state.measurements + 1}",
        trial=1,
        purpose="final",
        runs=runs,
        reserve=Charge(seconds=len(runs) * state.baseline_seconds),
    )
