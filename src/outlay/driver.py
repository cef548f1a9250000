"""The loop of a run: decide, record, start, and record what came of it.

Only the driver writes the store. What it decides is in `outlay.decision`, what follows from it in
`outlay.state`; here are the clock, the store and the engine.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

from outlay import events
from outlay.agents.reflector import BUILT_IN
from outlay.decision import decide, follow
from outlay.decision.reserves import affordable_rest
from outlay.errors import MAKE_ROOM, OutlayError
from outlay.jobs import job_for, job_id, template, token
from outlay.settling import settle_attempt, settle_measurement, settle_reflection

if TYPE_CHECKING:
    from collections.abc import Callable

    from outlay.agents.reflector import Reflector
    from outlay.events import AnyEvent, Entry, Launch
    from outlay.execution.job import Job, Result
    from outlay.execution.pool import Engine
    from outlay.jobs import Place
    from outlay.state import State
    from outlay.store import Store

TICK = 10.0
"""Seconds after which a waiting driver records that it was alive."""

AGENT_SECONDS = 3600.0
"""Limit of an attempt by a client of a model where the task has none: such clients can hang."""

PATIENCE = 0.2
"""Seconds that the driver waits for a result before it looks at signals and requests again."""


class Driver:
    """Takes one run as far as it goes.

    Args:
        store: Open for writing.
        run: Name of the run in the store.
        state: Its state so far.
        place: Where jobs live.
        engine: What carries them out.
        reflector: Who drafts new plans.
        on_step: Called after each recorded step with its entries and the state.
        stop_requested: Polled; `True` starts nothing new and finishes.
        monotonic: Clock that limits count, seconds.
        now: Wall clock for people, seconds since 1970.
    """

    def __init__(
        self,
        store: Store,
        run: str,
        state: State,
        place: Place,
        engine: Engine,
        *,
        reflector: Reflector = BUILT_IN,
        on_step: Callable[[list[Entry], State], None] = lambda entries, state: None,
        stop_requested: Callable[[], bool] = lambda: False,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.store = store
        self.run = run
        self.state = state
        self.place = place
        self.engine = engine
        self.reflector = reflector
        self.interrupted: Literal["no", "waiting", "ending"] = "no"
        self.on_step = on_step
        self._stop_requested = stop_requested
        self._monotonic = monotonic
        self._now = now
        self._before = state.elapsed
        self._began = monotonic()
        self._jobs: dict[str, tuple[Launch, bool]] = {}
        self._adopted: set[str] = set()
        self._unwritten: list[AnyEvent] = []
        self._common: Job | None = None
        self._recorded_at = self._began

    @property
    def elapsed(self) -> float:
        """Seconds that drivers were alive in this run, this one included."""
        return self._before + (self._monotonic() - self._began)

    def drive(self, until: Callable[[State], bool] = lambda state: False) -> None:
        """Go on until the run has ended, or was interrupted and nothing is in flight.

        Args:
            until: Checked whenever work was settled; `True` returns at once.
        """
        self.adopt()
        while not until(self.state):
            if self.interrupted == "no":
                self.advance()
            else:
                self._write(self.elapsed)
                self._end_if_asked()
            if not self._jobs and (self.state.ended or self.interrupted != "no"):
                return
            self._wait()
        self._write(self.elapsed)

    def interrupt(self) -> None:
        """Start nothing new; called a second time, end what is in flight. Both can be resumed."""
        self.interrupted = "ending" if self.interrupted == "waiting" else "waiting"

    def record(self, *recorded: AnyEvent) -> None:
        """Apply and store events that come from outside, such as raised limits, as one step."""
        elapsed = self.elapsed
        for event in recorded:
            self._take(event, elapsed)
        self._write(elapsed)

    def advance(self) -> None:
        """Decide, record and start until nothing more can happen before a result comes in.

        What was settled just before is written with the first launch: both are on the disk before
        anything starts, and until then the result lies in its job's folder.
        """
        if not self.state.stopping and not self.state.ended and self._stop_requested():
            self.record(events.StopRequested())
        elapsed = self.elapsed
        while (event := decide(self.state, elapsed, self.reflector)) is not None:
            self._take(event, elapsed)
            if isinstance(event, events.Launch):
                self._write(elapsed)
                self._start(event)
                elapsed = self.elapsed
        self._write(elapsed)

    def _end_if_asked(self) -> None:
        if self.interrupted == "ending":
            for identity in self._jobs:
                self.engine.end(identity)

    def _start(self, launch: Launch) -> None:
        seconds, cut = self._limit(launch)
        self._jobs[job_id(launch)] = (launch, cut)
        if self._common is None:  # not before the run has begun, and its task is known
            self._common = template(self.state.task, self.place)
        self.engine.start(job_for(self.state, launch, self._common, self.place, seconds))

    def _limit(self, launch: Launch) -> tuple[float | None, bool]:
        """Return a job's limit in seconds, and whether it is the run's rather than its own."""
        if isinstance(launch, events.MeasurementLaunched):
            limit = self.state.task.limits.seconds
            return (None if limit is None else limit * max(1, len(launch.runs))), False
        own = self.state.task.limits.seconds
        if own is None and self.place.executor is not None:
            own = AGENT_SECONDS
        left = affordable_rest(self.state, self.elapsed).seconds
        if left is None or (own is not None and own <= left):
            return own, False
        return max(left, 0.0), True

    def adopt(self) -> None:
        """Take over what the log says is in flight from an earlier sitting."""
        for work in self.state.works.values():
            if work.in_flight:
                identity = job_id(work.launch)
                self._jobs[identity] = (work.launch, False)
                self._adopted.add(identity)
                self.engine.adopt(identity, token(self.state, work.launch))

    def _wait(self) -> None:
        for result in self.engine.wait(PATIENCE):
            self._settle(result)
        if self._monotonic() - self._recorded_at >= TICK and self._jobs:
            self.record(events.Ticked())

    def settle(self, result: Result) -> None:
        """Record what came of a job, and what follows from that, as one step."""
        self._settle(result)
        self._write(self.elapsed)

    def _settle(self, result: Result) -> None:
        launch, cut = self._jobs.pop(result.id)
        elapsed = self.elapsed
        event: AnyEvent
        if isinstance(launch, events.AttemptLaunched):
            event = settle_attempt(self.state, launch, result, cut=cut)
        elif isinstance(launch, events.ReflectionLaunched):
            event = settle_reflection(self.state, launch, result)
        else:
            event = settle_measurement(self.state, launch, result)
        self._take(event, elapsed)
        while (event_after := follow(self.state)) is not None:
            self._take(event_after, elapsed)
        remedy = _REMEDIES.get(result.reason)
        if remedy is not None and result.id not in self._adopted:
            # Trying again at once would lose the tries that the work has; what an earlier sitting
            # lacked may be there by now.
            self._write(elapsed)
            raise OutlayError(f"{self.place.folder}: {result.detail}; {remedy}")

    def _take(self, event: AnyEvent, elapsed: float) -> None:
        self.state.apply(event, elapsed)
        self._unwritten.append(event)

    def _write(self, elapsed: float) -> None:
        """Write what was taken in since the last time as one step; nothing if nothing was."""
        if not self._unwritten:
            return
        step, self._unwritten = self._unwritten, []
        entries = self.store.append(self.run, step, at=self._now(), elapsed=elapsed)
        self._recorded_at = self._monotonic()
        self.on_step(entries, self.state)


_REMEDIES = {
    "disk": MAKE_ROOM,
    "key": "put the key right, or name another variable with --key, and give the command again",
    "provider": "the provider is out of reach; the same command goes on later",
}
"""Faults of the surroundings that end a sitting, and what to do about each."""
