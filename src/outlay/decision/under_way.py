"""What is under way, by purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlay import events

if TYPE_CHECKING:
    from outlay.records import Work
    from outlay.state import State


def in_flight(state: State) -> list[Work]:
    """Return the work whose latest try runs."""
    return [work for work in state.works.values() if work.in_flight]


def is_confirming(state: State) -> bool:
    """Return whether a challenger is being compared."""
    return any(_purpose(work) == "confirmation" for work in state.works.values())


def is_reflecting(state: State) -> bool:
    """Return whether a model is being asked."""
    return any(_purpose(work) == "reflection" for work in state.works.values())


def final_begun(state: State) -> bool:
    """Return whether the final measurement has begun."""
    return bool(state.final) or any(is_final(work) for work in state.works.values())


def is_final(work: Work) -> bool:
    """Return whether the work is of the final measurement."""
    return _purpose(work) == "final"


def _purpose(work: Work) -> str:
    launch = work.launch
    if isinstance(launch, events.MeasurementLaunched):
        return launch.purpose
    return "attempt" if isinstance(launch, events.AttemptLaunched) else "reflection"


def runs_of(work: Work) -> tuple[tuple[int, int], ...]:
    """Return the (node, seed) of a measurement; none of other work."""
    launch = work.launch
    return launch.runs if isinstance(launch, events.MeasurementLaunched) else ()
