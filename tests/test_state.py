from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from outlay import events
from outlay.allocation.tree import Node, Tree
from outlay.budget import Charge
from outlay.events import Child, Evaluation, decode, encode
from outlay.records import BASELINE, LOST_TRIES
from outlay.state import State
from outlay.store import MemoryStore
from outlay.task import Budget, task_hash, to_json
from tests.driving import RUN, Accidents, drive, task

SECOND = Charge(attempts=1, seconds=1.0)


def started(levers: int = 2, **options: Any) -> events.RunStarted:
    made = task(levers=levers, **options)
    return events.RunStarted(
        uid="u",
        task=to_json(made),
        task_hash=task_hash(made),
        files="start",
        seed=0,
        agent="levers" if levers else "command:agent",
        budget=made.budget,
    )


def state_of(*happened: events.AnyEvent) -> State:
    state = State()
    for place, event in enumerate(happened):
        state.apply(event, float(place))
    return state


def baseline(node: int = 0, value: float = 1.0, repeat: float = 1.0) -> list[events.AnyEvent]:
    """The baseline measured: the selection seed, two more for the noise, and a repeat."""
    runs = ((node, 1), (node, 1_000_000), (node, 1_000_001))
    values = (value, value + 0.1, value - 0.1)
    return [
        events.MeasurementLaunched(
            work="m1", trial=1, purpose="baseline", runs=runs, checks=(("repeat", 1),)
        ),
        events.MeasurementSettled(
            work="m1",
            trial=1,
            outcome="scored",
            evaluations=(
                *(
                    Evaluation(node=node, seed=seed, value=found, seconds=2.0)
                    for (_, seed), found in zip(runs, values, strict=True)
                ),
                Evaluation(node=node, seed=1, value=repeat, role="repeat"),
            ),
            charge=Charge(seconds=8.0),
        ),
    ]


def scale() -> events.ScaleFixed:
    return events.ScaleFixed(center=1.0, scale=0.5)


def reflected(node: int, *children: Child, asked: int | None = None) -> events.Reflected:
    return events.Reflected(node=node, asked=asked or len(children), children=children)


def lever_child(node: int, lever: str = "l0", option: str = "on0") -> Child:
    return Child(node=node, changes={lever: option}, axis=lever, direction=option)


def launched(attempt: int, node: int, trial: int = 1) -> events.AttemptLaunched:
    return events.AttemptLaunched(attempt=attempt, trial=trial, node=node, reserve=SECOND)


def scored(attempt: int, node: int, value: float, trial: int = 1) -> events.AttemptSettled:
    return events.AttemptSettled(
        attempt=attempt,
        trial=trial,
        outcome="scored",
        evaluations=(Evaluation(node=node, seed=1, value=value, seconds=1.0),),
        charge=SECOND,
        files="after",
    )


def without_score(
    attempt: int, outcome: events.Outcome, reason: str = "host", trial: int = 1
) -> events.AttemptSettled:
    attempts = int(outcome in ("failed", "lost"))
    return events.AttemptSettled(
        attempt=attempt,
        trial=trial,
        outcome=outcome,
        reason=reason,
        charge=Charge(attempts=attempts, seconds=0.5),
    )


BEGUN = (started(), *baseline(), scale(), reflected(0, lever_child(1), lever_child(2, "l1")))


# The baseline.


def test_with_levers_the_baseline_is_the_scored_root() -> None:
    state = state_of(started(), *baseline(), scale())
    assert (state.baseline, state.tree.root.status, state.tree.root.score) == (0, "scored", 1.0)
    assert state.tree.root.reward == 0.5
    assert state.contest.champion == 0
    assert state.attempts == 0
    assert state.ledger.spent == Charge(seconds=8.0)
    assert state.baseline_seconds == 2.0
    assert state.contest.noise.sd == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("repeat", "bare", "problem", "refused"),
    [
        (1.0, 1.0, [], False),
        (1.0, 2.0, ["levers: the defaults change"], True),
        (3.0, 1.0, ["seed noise: the same seed gave 1.0 and then 3.0"], False),
        (3.0, 2.0, ["seed noise: the same seed gave 1.0 and then 3.0"], False),
    ],
)
def test_the_defaults_are_blamed_only_where_a_seed_repeats_its_value(
    repeat: float, bare: float, problem: list[str], refused: bool
) -> None:
    measured, settled = baseline(repeat=repeat)
    assert isinstance(settled, events.MeasurementSettled)
    check = Evaluation(node=0, seed=1, value=bare, role="bare")
    for found in ((*settled.evaluations, check), (check, *settled.evaluations)):
        state = state_of(started(), measured, replace(settled, evaluations=found), scale())
        for text, words in zip(state.problems, problem, strict=True):
            assert text.startswith(words)
        assert state.defaults_differ == refused


def test_without_levers_the_root_is_the_first_plan_and_the_baseline_is_no_node() -> None:
    state = state_of(started(0), *baseline(BASELINE), scale())
    assert (state.baseline, state.tree.root.status) == (BASELINE, "open")
    assert state.contest.champion == BASELINE
    assert state.contest.standing.mean == pytest.approx(1.0)


def test_a_seed_that_gives_two_values_is_noted() -> None:
    state = state_of(started(), *baseline(repeat=1.2))
    assert state.repeat_differs
    assert "1.0 and then 1.2" in state.problems[0]
    assert state_of(started(), *baseline()).problems == []


def test_a_baseline_without_a_score_leaves_nothing_to_compare_with() -> None:
    launch, _ = baseline()
    failed = events.MeasurementSettled(work="m1", trial=1, outcome="failed", reason="crash")
    state = state_of(started(), launch, failed)
    assert state.baseline_fault == failed
    assert (state.baseline_values, state.reward, state.works) == ({}, None, {})


# Attempts.


def test_an_attempt_in_flight_holds_its_reservation_and_its_node() -> None:
    state = state_of(*BEGUN, launched(1, 2))
    assert state.tree.nodes[2].status == "running"
    assert state.ledger.held == SECOND
    assert state.works["a1"].in_flight
    assert (state.attempts, state.nodes) == (1, [0, 2])


def test_a_score_settles_the_node_and_queues_a_challenger() -> None:
    state = state_of(*BEGUN, launched(1, 1), scored(1, 1, 1.5))
    node = state.tree.nodes[1]
    assert (node.status, node.score, node.attempt) == ("scored", 1.5, 1)
    assert state.incumbent is node
    assert list(state.contest.queue) == [1]
    assert state.files == {1: "after"}
    assert state.works == {}
    assert state.ledger.held == Charge()
    assert state.ledger.spent == Charge(attempts=1, seconds=9.0)


def test_a_failure_has_no_score_and_counts_against_its_direction() -> None:
    state = state_of(*BEGUN, launched(1, 1), without_score(1, "failed", "crash"))
    node = state.tree.nodes[1]
    assert (node.status, node.score, node.reward) == ("failed", None, None)
    assert state.tree.root.count == 1, "a failure is left out of the means"
    assert state.incumbent is state.tree.root
    assert state.effects.direction("l0", "on0").tried == 1
    assert state.effects.direction("l0", "on0").scored == 0


def test_a_lost_try_leaves_the_node_in_flight_to_be_tried_again() -> None:
    state = state_of(*BEGUN, launched(1, 1), without_score(1, "interrupted"))
    assert state.tree.nodes[1].status == "running"
    assert not state.works["a1"].in_flight
    assert state.works["a1"].lost == 1
    assert (state.ledger.spent.attempts, state.ledger.held) == (0, Charge())
    state.apply(launched(1, 1, trial=2), 9.0)
    assert state.works["a1"].in_flight
    assert (state.attempts, state.decisions) == (1, 2), "a second try is no second attempt"
    state.apply(scored(1, 1, 1.5, trial=2), 10.0)
    assert state.tree.nodes[1].score == 1.5
    assert state.ledger.spent == Charge(attempts=1, seconds=9.5)


def test_a_try_that_was_asked_to_end_does_not_count_as_lost() -> None:
    state = state_of(*BEGUN, launched(1, 1), without_score(1, "interrupted", "ended"))
    assert state.works["a1"].lost == 0


def test_work_that_is_lost_for_good_closes_its_node() -> None:
    state = state_of(*BEGUN)
    for trial in range(1, LOST_TRIES + 1):
        state.apply(launched(1, 1, trial), 0.0)
        outcome = "lost" if trial == LOST_TRIES else "interrupted"
        state.apply(without_score(1, outcome, trial=trial), 0.0)
    assert state.tree.nodes[1].status == "lost"
    assert state.works == {}
    assert state.effects.direction("l0", "on0").tried == 0, "the machine's fault tells nothing"


def test_fewer_children_than_asked_exhaust_the_node() -> None:
    state = state_of(started(), *baseline(), scale(), reflected(0, lever_child(1), asked=3))
    assert state.tree.root.exhausted
    assert state.configurations == {("off", "off"), ("on0", "off")}


def test_a_reflection_is_charged_to_planning() -> None:
    charge = Charge(tokens_in=7)
    event = events.Reflected(node=0, asked=1, children=(lever_child(1),), charge=charge)
    state = state_of(started(), *baseline(), scale(), event)
    assert state.ledger.by_kind["planning"] == charge


# Challengers.


def confirming(*pairs: tuple[float | None, float | None]) -> list[events.AnyEvent]:
    """One measurement for each pair of challenger 1 and the baseline."""
    found: list[events.AnyEvent] = []
    for k, (challenger, incumbent) in enumerate(pairs):
        runs = ((1, 100 + k), (0, 100 + k))
        values = zip(runs, (challenger, incumbent), strict=True)
        found += [
            events.MeasurementLaunched(
                work=f"m{k + 2}", trial=1, purpose="confirmation", runs=runs, attempt=1
            ),
            events.MeasurementSettled(
                work=f"m{k + 2}",
                trial=1,
                outcome="scored",
                evaluations=tuple(
                    Evaluation(node=node, seed=seed, value=value) for (node, seed), value in values
                ),
            ),
        ]
    return found


CHALLENGED = (*BEGUN, launched(1, 1), scored(1, 1, 1.5))


def test_pairs_are_gathered_for_the_challenger() -> None:
    state = state_of(*CHALLENGED, *confirming((1.6, 1.0), (None, 1.1)))
    challenge = state.contest.challenge
    assert challenge is not None
    assert challenge.pairs == [(1.6, 1.0), (None, 1.1)]
    assert challenge.broke
    assert not state.contest.queue


def test_a_promoted_challenger_is_champion_on_its_fresh_values() -> None:
    judged = events.Judged(attempt=1, promoted=True, pairs=2)
    state = state_of(*CHALLENGED, *confirming((1.6, 1.0), (1.4, 0.9)), judged)
    assert state.contest.champion == 1
    assert state.contest.standing.mean == pytest.approx(1.5)
    assert state.judgements[0].incumbent == 0


def test_a_rejected_challenger_leaves_the_champion() -> None:
    judged = events.Judged(attempt=1, promoted=False, pairs=1)
    state = state_of(*CHALLENGED, *confirming((0.9, 1.0)), judged)
    assert state.contest.champion == 0
    assert state.contest.challenge is None
    assert not state.contest.queue


# The end, and opening again.


def test_a_raised_limit_opens_a_run_that_ended_for_its_budget() -> None:
    ended = events.RunEnded(status="budget", reason="attempts: spent")
    more = Budget(attempts=99)
    state = state_of(*BEGUN, ended, events.BudgetChanged(budget=more))
    assert (state.ended, state.budget) == (None, more)
    exhausted = events.RunEnded(status="exhausted")
    assert state_of(*BEGUN, exhausted, events.BudgetChanged(budget=more)).ended == exhausted


def test_a_new_sitting_opens_a_run_that_was_stopped() -> None:
    sitting = events.SittingStarted(pid=1, host="h", workers=3)
    stopped = events.RunEnded(status="stopped")
    asked = state_of(*BEGUN, events.StopRequested())
    assert asked.stopping
    state = state_of(*BEGUN, events.StopRequested(), stopped, sitting)
    assert (state.ended, state.stopping, state.workers) == (None, False, 3)


def test_time_never_runs_backwards() -> None:
    state = state_of(started())
    for elapsed, expected in ((5.0, 5.0), (2.0, 5.0), (7.0, 7.0)):
        state.apply(events.Ticked(), elapsed)
        assert state.elapsed == expected


# The fold as a whole.


@settings(deadline=None, max_examples=25)
@given(levers=st.sampled_from([0, 3]), seed=st.integers(0, 99), share=st.floats(0, 1))
def test_a_fold_in_two_halves_equals_the_fold_at_once(levers, seed, share) -> None:
    store = MemoryStore()
    accidents = Accidents(failed=0.2, lost=0.1)
    live = drive(store, task(levers=levers), workers=2, seed=seed, accidents=accidents)
    stored = [(decode(encode(e.event)), e.elapsed) for e in store.read(RUN)]
    at_once, halves = State(), State()
    for event, elapsed in stored:
        at_once.apply(event, elapsed)
    cut = int(share * len(stored))
    for event, elapsed in stored[:cut]:
        halves.apply(event, elapsed)
    middle = plain(halves)
    assert middle == plain(halves)
    for event, elapsed in stored[cut:]:
        halves.apply(event, elapsed)
    assert plain(halves) == plain(at_once) == plain(live)
    assert (middle == plain(live)) is (cut == len(stored))


def plain(value: Any) -> Any:
    """Return a record as nested tuples of all its attributes, but for what is only cached."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, set | frozenset):
        return frozenset(value)
    if isinstance(value, dict):
        return tuple((plain(k), plain(v)) for k, v in value.items())
    if isinstance(value, Tree):
        return (value.children, value.prune_below, tuple(map(_fields, value.nodes)))
    if isinstance(value, Node):
        return ("node", value.id)
    if hasattr(value, "__iter__"):
        return tuple(plain(item) for item in value)
    return _fields(value)


def _fields(value: Any) -> Any:
    slots = getattr(value, "__struct_fields__", None) or getattr(value, "__slots__", ())
    names = [*slots, *getattr(value, "__dict__", ())]
    return (
        type(value).__name__,
        *((name, plain(getattr(value, name))) for name in names if name != "_fit"),
    )
