"""Checking a log against itself: every decision in it follows from what came before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlay import events
from outlay.agents.reflector import BUILT_IN
from outlay.decision import decide
from outlay.state import State

if TYPE_CHECKING:
    from collections.abc import Iterable

    from outlay.agents.reflector import Reflector
    from outlay.events import Entry

DECISIONS = (
    events.MeasurementLaunched,
    events.ScaleFixed,
    events.Reflected,
    events.ReflectionLaunched,
    events.AttemptLaunched,
    events.Judged,
    events.RunEnded,
)
"""Events that follow from the log; the others come from outside."""


def verify(entries: Iterable[Entry], reflector: Reflector = BUILT_IN) -> list[str]:
    """Return one line for each decision that does not follow from the log before it.

    Each is made again from the state before it and the clock that was recorded with it.

    Args:
        entries: The log of a run, from its beginning.
        reflector: Who drafted its plans.
    """
    state, wrong = State(), []
    for entry in entries:
        if isinstance(entry.event, DECISIONS):
            made = decide(state, entry.elapsed, reflector)
            if made != entry.event:
                wrong.append(f"event {entry.sequence}: recorded {entry.event}, decided {made}")
        state.apply(entry.event, entry.elapsed)
    return wrong
