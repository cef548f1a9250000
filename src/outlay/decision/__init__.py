"""What happens next, given the state: the next event to record, or nothing until work settles.

A pure function of the log and of the drivers' clock as recorded with each event, so that
replaying a log reproduces every decision in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from outlay.agents.reflector import BUILT_IN
from outlay.decision.baseline import measure_baseline, scale_from_baseline
from outlay.decision.challengers import confirm, judge
from outlay.decision.ending import finish
from outlay.decision.exploring import explore
from outlay.decision.under_way import final_begun, in_flight

if TYPE_CHECKING:
    from outlay.agents.reflector import Reflector
    from outlay.events import AnyEvent
    from outlay.state import State


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
        return again or measure_baseline(state)
    finishing = final_begun(state)
    free = len(in_flight(state)) < state.workers
    if free and not finishing:
        more = confirm(state, elapsed) or explore(state, elapsed, reflector)
        if more is not None:
            return more
    return finish(state, elapsed) if free else None


def follow(state: State) -> AnyEvent | None:
    """Return what follows from what was settled, without any choice: a scale or a judgement."""
    if state.ended is not None:
        return None
    if state.reward is None:
        return scale_from_baseline(state)
    return judge(state)


def _try_again(state: State) -> AnyEvent | None:
    if len(in_flight(state)) >= state.workers:
        return None
    for work in state.works.values():
        if not work.in_flight:
            return msgspec.structs.replace(work.launch, trial=work.launch.trial + 1)
    return None
