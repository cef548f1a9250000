"""What two runs must share to have reached the same final state."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from msgspec.structs import replace

from outlay import events
from outlay.task import Budget

if TYPE_CHECKING:
    from collections.abc import Iterable

    from outlay.budget import Charge
    from outlay.events import AnyEvent, Entry


def digest(entries: Iterable[Entry]) -> str:
    """Return 64 hexadecimal digits that equal runs share.

    They stand for the plan tree, outcomes, decisions, champion and charges. Left out are times,
    process ids, everything of tries that were interrupted, and what only concerns sittings: a run
    that was killed and taken up again has the digest of one that was not, with one worker.
    """
    found = hashlib.sha256()
    for event in essence(entries):
        found.update(events.encode(event) + b"\n")
    return found.hexdigest()


def essence(entries: Iterable[Entry]) -> list[AnyEvent]:
    """Return the events that the digest is made of, without what it leaves out."""
    stripped = (_stripped(entry.event) for entry in entries)
    return [event for event in stripped if event is not None]


def _stripped(event: AnyEvent) -> AnyEvent | None:
    match event:
        case events.RunStarted():
            return replace(event, uid="", task="", dirty=False, workers=1, budget=Budget())
        case events.MeasurementLaunched() | events.AttemptLaunched() | events.ReflectionLaunched():
            first = event.trial == 1
            return replace(event, reserve=_timeless(event.reserve)) if first else None
        case events.MeasurementSettled() | events.AttemptSettled():
            return _settled(event)
        case events.ReflectionSettled():
            return _answered(event)
        case events.Reflected():
            return replace(event, charge=_timeless(event.charge))
        case events.ScaleFixed() | events.Judged() | events.RunEnded():
            return event
        case _:
            return None


def _settled(
    event: events.MeasurementSettled | events.AttemptSettled,
) -> events.MeasurementSettled | events.AttemptSettled | None:
    if event.outcome in ("interrupted", "infrastructure"):
        return None
    return replace(
        event,
        trial=1,
        detail="",
        sandbox="",
        charge=_timeless(event.charge),
        evaluations=tuple(
            replace(evaluation, seconds=0.0, fault="fault" if evaluation.fault else "")
            for evaluation in event.evaluations
        ),
    )


def _answered(event: events.ReflectionSettled) -> events.ReflectionSettled | None:
    if event.outcome in ("interrupted", "infrastructure"):
        return None
    charge = _timeless(event.charge)
    return replace(event, trial=1, detail="", sandbox="", charge=charge)


def _timeless(charge: Charge) -> Charge:
    return replace(charge, seconds=0.0)
