from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlay import events
from outlay.ablations.components import Origin
from outlay.ablations.findings import minimal
from outlay.ablations.running import (
    SurfaceReflector,
    ablation_of,
    factors_of,
    is_noisy,
    measurements,
    most_telling,
    reasons,
    surface_of,
)
from outlay.ablations.summary import ablated
from outlay.budget import NOTHING
from outlay.errors import InputError
from outlay.replay import verify
from outlay.state import State
from outlay.store import MemoryStore
from outlay.surfaces.measurements import Noise
from outlay.task import Budget, Lever, Option
from tests.driving import RUN, Accidents, drive, task


def star(*, levers: int = 3, budget: int | None = 8):
    return ablation_of(task(levers=levers), Budget(attempts=budget))


@settings(deadline=None, max_examples=15)
@given(
    levers=st.integers(1, 4),
    workers=st.sampled_from([1, 3]),
    seed=st.integers(0, 99),
    failed=st.sampled_from([0.0, 0.3, 1.0]),
    lost=st.sampled_from([0.0, 0.5]),
)
def test_whatever_happens_every_decision_follows_and_the_budget_holds(
    levers, workers, seed, failed, lost
) -> None:
    store, size = MemoryStore(), factors_of(task(levers=levers)).space.size
    made = star(levers=levers, budget=min(6, size))
    accidents = Accidents(failed=failed, lost=lost)
    state = drive(store, made, workers=workers, seed=seed, accidents=accidents)
    entries = list(store.read(RUN))
    assert state.ended is not None
    assert state.ledger.held == NOTHING
    assert state.attempts == min(6, size) - 1
    assert all(node.parent in (None, state.tree.root) for node in state.tree.nodes)
    configs = [tuple(state.configuration(node).values()) for node in state.tree.nodes]
    assert len(set(configs)) == len(configs)
    assert verify(entries, SurfaceReflector()) == []
    ahead = most_telling(state, 1, None)
    assert len(ahead) == (len(configs) < size)
    assert all(tuple(told.config.values()) not in configs for told in ahead)
    purposes = {e.event.purpose for e in entries if hasattr(e.event, "purpose")}
    assert purposes == {"baseline"}


def test_the_second_measurement_has_every_lever_at_its_last_option() -> None:
    state = drive(MemoryStore(), star(budget=2))
    assert state.configuration(state.tree.nodes[1]) == {"l0": "on0", "l1": "on1", "l2": "on0"}


def test_fifty_in_one_go_equal_some_a_raised_limit_and_the_rest() -> None:
    whole, parts = MemoryStore(), MemoryStore()
    drive(whole, star(budget=9))
    drive(parts, star(budget=4))
    drive(parts, star(budget=9))
    first, second = (drive(store, star(budget=9)) for store in (whole, parts))
    assert [n.score for n in first.tree.nodes] == [n.score for n in second.tree.nodes]
    assert first.attempts == second.attempts == 8


def test_everything_measured_ends_as_exhausted() -> None:
    state = drive(MemoryStore(), star(levers=2, budget=None))
    assert state.ended == events.RunEnded(status="exhausted", reason="nothing is left to try")
    assert len(state.tree.nodes) == factors_of(state.task).space.size == 6


def test_seeds_that_differ_are_noise_and_only_shared_seeds_are_compared() -> None:
    plain = star(budget=4)
    state = drive(MemoryStore(), plain)
    assert is_noisy(state)
    selection = plain.seeds.selection
    assert len(state.baseline_values) == len(selection) + 2
    found = measurements(state, {})
    assert len(found) == 4 * len(selection)
    assert found[0].metrics == {"score": state.baseline_values[selection[0]]}
    assert {taken.seed for taken in found} == {*selection}
    machine = replace(plain, evaluator=replace(plain.evaluator, noise="machine"))
    state = drive(MemoryStore(), machine)
    found = measurements(state, {})
    assert len(found) == 3 + 3 * len(selection)
    assert {taken.seed for taken in found} == {None}
    assert surface_of(state).noise == Noise()


def test_the_baselines_noise_counts_where_configurations_have_one_value() -> None:
    one = star(budget=4)
    state = drive(MemoryStore(), one)
    sd = np.std(list(state.baseline_values.values()), ddof=1)
    assert surface_of(state).noise == Noise(pytest.approx(sd), len(state.baseline_values) - 1)
    searched = Origin(run="s", node=1, by="hunk", noise_sd=0.25, noise_df=9)
    assert surface_of(state, origin=searched).noise == Noise(0.25, 9)
    two = replace(one, seeds=replace(one.seeds, selection=(*one.seeds.selection, 77)))
    assert surface_of(drive(MemoryStore(), two)).noise == Noise()


def test_failures_keep_their_reason_and_lost_attempts_say_nothing() -> None:
    store = MemoryStore()
    state = drive(store, star(budget=5), accidents=Accidents(failed=1.0))
    surface = surface_of(state, reasons(store.read(RUN)))
    assert [taken.reason for taken in surface.measurements] == ["", *["crash: "] * 4]
    found = ablated(state, RUN, surface, None)
    assert len(found.failed) == 4
    assert found.best.config == state.configuration(state.tree.root)
    state = drive(MemoryStore(), star(budget=5), accidents=Accidents(lost=1.0))
    assert len(surface_of(state).measurements) == 1


def test_a_lever_with_one_option_is_fixed() -> None:
    made = task(levers=2)
    fixed = Lever(name="fixed", options=(Option(name="only"),))
    made = ablation_of(replace(made, levers=(fixed, *made.levers)), Budget(attempts=4))
    assert factors_of(made).names == ("l0", "l1")
    state = drive(MemoryStore(), made)
    assert all(state.configuration(node)["fixed"] == "only" for node in state.tree.nodes)
    assert all(set(taken.config) == {"l0", "l1"} for taken in measurements(state, {}))


@pytest.mark.parametrize(
    ("levers", "limits", "budget", "words"),
    [
        (0, Budget(attempts=3), 4, "no levers"),
        (2, Budget(attempts=3), 7, "2 to 6"),
        (2, Budget(attempts=3), 1, "2 to 6"),
        (2, Budget(tokens=9), None, "budget: found none"),
    ],
)
def test_what_cannot_be_ablated_is_named(levers, limits, budget, words) -> None:
    with pytest.raises(InputError, match=words):
        ablation_of(task(levers=levers, limits=limits), Budget(attempts=budget))


@pytest.mark.parametrize("seed", range(4))
def test_the_last_attempt_measures_the_minimal_champion(seed) -> None:
    store = MemoryStore()
    drive(store, star(levers=4, budget=6), seed=seed)
    entries = list(store.read(RUN))
    last = max(k for k, e in enumerate(entries) if isinstance(e.event, events.Reflected))
    state = State.of(entries[:last])
    assert state.budget.attempts == state.attempts + 1
    root = state.tree.root
    found = SurfaceReflector(Origin(run="s", node=1, by="hunk")).reflect(state, root, 1)
    small = minimal(surface_of(state))
    in_tree = [state.configuration(node) for node in state.tree.nodes]
    if small is None or small.config in in_tree:
        assert found == SurfaceReflector().reflect(state, root, 1)
    else:
        assert state.configuration(root) | found.children[0].changes == small.config
