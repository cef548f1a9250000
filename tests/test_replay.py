from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from outlay import events
from outlay.budget import NOTHING
from outlay.designs.catalogue import paid
from outlay.designs.gate import gate
from outlay.designs.states import design_of
from outlay.digest import digest, essence
from outlay.replay import verify
from outlay.state import State
from outlay.store import MemoryStore
from outlay.task import Budget
from tests.driving import RUN, Accidents, drive, open_driver, reflector_of, task

FINAL = ("scored", "failed", "lost")

accidents = st.builds(
    Accidents,
    failed=st.sampled_from([0.0, 0.2, 0.9]),
    lost=st.sampled_from([0.0, 0.2, 0.6]),
    evaluation=st.sampled_from([0.0, 0.1, 0.5]),
    ended=st.sampled_from([0.0, 0.1]),
)
limits = st.one_of(
    st.builds(Budget, attempts=st.integers(1, 20)),
    st.builds(Budget, attempts=st.just(25), seconds=st.sampled_from([10.0, 40.0, 90.0])),
    st.builds(Budget, attempts=st.just(25), tokens=st.sampled_from([30, 200, 600])),
)
tasks = st.builds(
    task,
    levers=st.sampled_from([0, 1, 2, 4]),
    policy=st.sampled_from(
        ["adaptive", "fixed:3", "random", "greedy", "uct", "linear", "single", "best-of-n"]
    ),
    confirmation=st.sampled_from(["sequential", "band", "none"]),
    limits=limits,
    model=st.booleans(),
    hypotheses=st.booleans(),
)


@settings(deadline=None, max_examples=60)
@given(task=tasks, workers=st.sampled_from([1, 4]), seed=st.integers(0, 99), accidents=accidents)
def test_whatever_happens_the_log_adds_up(task, workers, seed, accidents) -> None:
    store = MemoryStore()
    state = drive(store, task, workers=workers, seed=seed, accidents=accidents)
    entries = list(store.read(RUN))
    assert state.ended is not None
    assert not state.works
    assert state.ledger.held == NOTHING
    assert_nothing_lost(entries)
    assert_charged_once(entries, state)
    assert_limits_held(entries, task, workers)
    assert_designs_held(entries, state)
    assert verify(entries, reflector_of(task)) == []


def assert_designs_held(entries, state) -> None:
    """Each design passed the gate of its moment, or did not and was sent back; replay agrees."""
    if state.beliefs is None:
        return
    again = State()
    for entry in entries:
        if isinstance(entry.event, events.ReflectionSettled):
            now = again.beliefs.now
            for child in entry.event.children:
                if child.design is not None:
                    design = design_of(now, child.design.arms, child.design.seeds)
                    assert gate(now, design).passed
                    now = paid(now, design)
        again.apply(entry.event, entry.elapsed)
    assert vars(again.beliefs) == vars(state.beliefs)
    first, left = (at.limits[0].budget for at in (again.beliefs.first, again.beliefs.now))
    taken = sum(one.cost for one in again.beliefs.experiments.values())
    assert taken == pytest.approx(first - left)
    assert sum(again.beliefs.now.prior) == pytest.approx(1)
    assert all(one.design and one.saved > 0 for one in again.beliefs.sent_back)


def assert_nothing_lost(entries) -> None:
    """Every try that began is settled once, and the last one of each work for good."""
    launched, settled, last = Counter(), Counter(), {}
    for event in (entry.event for entry in entries):
        work = getattr(event, "work", None) or f"a{getattr(event, 'attempt', 0)}"
        if isinstance(event, events.AttemptLaunched | events.MeasurementLaunched):
            launched[work, event.trial] += 1
            assert event.trial == 1 or settled[work, event.trial - 1] == 1
        elif isinstance(event, events.AttemptSettled | events.MeasurementSettled):
            settled[work, event.trial] += 1
            assert last.get(work) not in FINAL
            last[work] = event.outcome
    assert launched == settled
    assert set(launched.values()) <= {1}
    assert set(last.values()) <= set(FINAL)


def assert_charged_once(entries, state) -> None:
    """The ledger is the sum of what the events say, and an attempt counts once."""
    charges = [getattr(entry.event, "charge", NOTHING) for entry in entries]
    spent = state.ledger.spent
    assert spent.attempts == sum(c.attempts for c in charges) == state.attempts
    assert spent.tokens_out == sum(c.tokens_out for c in charges)
    assert spent.seconds == pytest.approx(sum(c.seconds for c in charges))
    by_kind = state.ledger.by_kind.values()
    assert spent.tokens == pytest.approx(sum(charge.tokens for charge in by_kind))


def assert_limits_held(entries, task, workers) -> None:
    """At no point is more in flight, spent or held than is allowed."""
    state = State()
    for entry in entries:
        if isinstance(entry.event, events.AttemptLaunched) and entry.event.trial == 1:
            budget, spent = task.budget, state.ledger.spent
            assert budget.tokens is None or spent.tokens < budget.tokens
            assert budget.seconds is None or entry.elapsed <= budget.seconds
        state.apply(entry.event, entry.elapsed)
        if state.started is not None:
            ledger = state.ledger
            assert ledger.spent.attempts + ledger.held.attempts <= task.budget.attempts
            assert sum(work.in_flight for work in state.works.values()) <= workers


@settings(deadline=None, max_examples=40)
@given(
    task=tasks.filter(lambda task: task.budget.seconds is None),
    seed=st.integers(0, 99),
    crash=st.integers(1, 80),
    before=st.booleans(),
)
def test_a_dropped_driver_changes_nothing_with_one_worker(task, seed, crash, before) -> None:
    accidents = Accidents(failed=0.15)
    whole, dropped = MemoryStore(), CrashingStore(crash, before=before)
    drive(whole, task, seed=seed, accidents=accidents)
    try:
        drive(dropped, task, seed=seed, accidents=accidents)
    except Crash:
        dropped.crash = 0
        drive(dropped, task, seed=seed, accidents=accidents)
    entries = list(dropped.read(RUN))
    assert essence(entries) == essence(whole.read(RUN))
    assert digest(entries) == digest(whole.read(RUN))
    assert verify(entries, reflector_of(task)) == []


@pytest.mark.parametrize("levers", [0, 4])
def test_25_attempts_equal_12_a_dropped_driver_and_the_rest(levers: int) -> None:
    plan = task(levers=levers, limits=Budget(attempts=25))
    whole, parts = MemoryStore(), MemoryStore()
    assert drive(whole, plan).attempts == 25
    first = open_driver(parts, plan)
    first.drive(until=lambda state: state.attempts == 12)
    first.advance()
    assert first.state.works, "the driver is dropped with work in flight"
    assert drive(parts, plan).attempts == 25
    assert digest(parts.read(RUN)) == digest(whole.read(RUN))


def test_four_workers_complete_out_of_order() -> None:
    store = MemoryStore()
    drive(store, task(levers=4), workers=4)
    order = [
        entry.event.attempt
        for entry in store.read(RUN)
        if isinstance(entry.event, events.AttemptSettled)
    ]
    assert order != sorted(order)


def test_a_changed_decision_is_found() -> None:
    store = MemoryStore()
    drive(store, task(levers=4))
    entries = list(store.read(RUN))
    kinds = (events.AttemptLaunched, events.ScaleFixed, events.Reflected, events.RunEnded)
    for kind in kinds:
        place = next(k for k, entry in enumerate(entries) if isinstance(entry.event, kind))
        changed = list(entries)
        changed[place] = replace(entries[place], event=_changed(entries[place].event))
        wrong = verify(changed[: place + 1])
        assert len(wrong) == 1
        assert wrong[0].startswith(f"event {place + 1}: recorded {kind.__name__}(")


def _changed(event):
    match event:
        case events.AttemptLaunched():
            return replace(event, reserve=NOTHING)
        case events.ScaleFixed():
            return replace(event, scale=event.scale * 2)
        case events.Reflected():
            return replace(event, children=event.children[:-1])
        case _:
            return replace(event, reason="something else")


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (lambda e: replace(e, charge=replace(e.charge, seconds=9.0)), True),
        (lambda e: replace(e, trial=2, sandbox="other", detail="other"), True),
        (lambda e: replace(e, charge=replace(e.charge, tokens_out=8)), False),
        (lambda e: replace(e, evaluations=()), False),
        (lambda e: replace(e, outcome="failed"), False),
    ],
)
def test_the_digest_leaves_out_times_only(change, same: bool) -> None:
    store = MemoryStore()
    drive(store, task())
    entries = list(store.read(RUN))
    place = next(k for k, e in enumerate(entries) if isinstance(e.event, events.AttemptSettled))
    changed = list(entries)
    changed[place] = replace(
        entries[place], at=5.0, elapsed=0.0, event=change(entries[place].event)
    )
    assert (digest(changed) == digest(entries)) is same


class Crash(BaseException):
    """The driver dies here."""


class CrashingStore(MemoryStore):
    """Dies in its k-th append, before or after the step is kept."""

    def __init__(self, crash: int, *, before: bool) -> None:
        super().__init__()
        self.crash = crash
        self._before = before

    def append(self, run, events, *, at, elapsed):
        self.crash -= 1
        if self.crash == 0 and self._before:
            raise Crash
        entries = super().append(run, events, at=at, elapsed=elapsed)
        if self.crash == 0:
            raise Crash
        return entries
