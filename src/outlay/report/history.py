"""What the state does not keep because no decision needs it: tries, times, reigns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from outlay import events

if TYPE_CHECKING:
    from collections.abc import Iterable

    from outlay.events import AttemptSettled, Entry, MeasurementSettled, ReflectionSettled

Settled = events.AttemptSettled | events.MeasurementSettled


class Try(NamedTuple):
    """One settled try: what it was of, when it ended on the drivers' clock, and how."""

    work: str
    elapsed: float
    event: AttemptSettled | MeasurementSettled


class Reign(NamedTuple):
    """A champion, and how many attempts had ended when it became one."""

    since: int
    node: int


@dataclass(slots=True, kw_only=True)
class History:
    """A run's course.

    Attributes:
        began: Wall clock of the first entry, seconds since 1970; 0 without any.
        last: Wall clock of the latest one.
        sittings: Drivers that took it up.
        hosts: Their machines.
        done: The last try of every attempt that is settled for good, in the order they ended.
        broken: Tries that were interrupted or met a fault of the machine.
        tries: Tries of each attempt.
        reigns: Champions, the baseline first.
        drafted: The reflection by a model that each node's plan is from.
        reflections: Reflections that yielded fewer children than asked: (node, reason).
    """

    began: float = 0.0
    last: float = 0.0
    sittings: int = 0
    hosts: set[str] = field(default_factory=set)
    done: list[Try] = field(default_factory=list)
    broken: list[Try] = field(default_factory=list)
    tries: dict[int, int] = field(default_factory=dict)
    reigns: list[Reign] = field(default_factory=list)
    drafted: dict[int, ReflectionSettled] = field(default_factory=dict)
    reflections: list[tuple[int, str]] = field(default_factory=list)


def history(entries: Iterable[Entry]) -> History:
    """Return the course of a run from its whole log."""
    found = History()
    nodes: dict[int, int] = {}
    for entry in entries:
        found.began = found.began or entry.at
        found.last = entry.at
        _take(found, nodes, entry)
    return found


def _take(found: History, nodes: dict[int, int], entry: Entry) -> None:
    event = entry.event
    if isinstance(event, events.RunStarted):
        found.reigns.append(Reign(0, 0 if event.agent == "levers" else -1))
    elif isinstance(event, events.SittingStarted):
        found.sittings += 1
        found.hosts.add(event.host)
    elif isinstance(event, events.AttemptLaunched):
        nodes[event.attempt] = event.node
        found.tries[event.attempt] = event.trial
    elif isinstance(event, events.AttemptSettled):
        _settle(found, Try(f"a{event.attempt}", entry.elapsed, event))
    elif isinstance(event, events.MeasurementSettled):
        _settle(found, Try(event.work, entry.elapsed, event))
    elif isinstance(event, events.ReflectionSettled):
        found.drafted |= dict.fromkeys((child.node for child in event.children), event)
    elif isinstance(event, events.Judged) and event.promoted:
        found.reigns.append(Reign(len(found.done), nodes[event.attempt]))
    elif isinstance(event, events.Reflected) and event.reason:
        found.reflections.append((event.node, event.reason))


def _settle(found: History, settled: Try) -> None:
    if settled.event.outcome in ("interrupted", "infrastructure"):
        found.broken.append(settled)
    elif isinstance(settled.event, events.AttemptSettled):
        found.done.append(settled)
