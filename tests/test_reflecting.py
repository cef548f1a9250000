"""What becomes of a model's answers in whole runs: asked, sent back once, given up."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from outlay import events
from outlay.agents.reflections.shape import TERSE
from outlay.agents.reflections.texts import plan_of
from outlay.replay import verify
from outlay.store import MemoryStore
from outlay.task import Agent, Budget
from tests.driving import RUN, Accidents, drive, task

if TYPE_CHECKING:
    from outlay.state import State

ROOT = {"title": "A", "hypothesis": "It helps.", "approach": ["Try idea 0.", "Keep it simple."]}


class Model:
    """Answers with one text after the other; objects are children made from a line to another."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.schemas: list[dict[str, Any]] = []

    def __call__(self, schema: str, random: object) -> str:
        self.schemas.append(json.loads(schema))
        answer = self._answers.pop(0) if self._answers else []
        if isinstance(answer, list):
            return json.dumps({"children": [child(*pair) for pair in answer]})
        return answer if isinstance(answer, str) else json.dumps(answer)


def child(search: str, new: str) -> dict[str, object]:
    return {
        "hypothesis": f"{new} helps.",
        "edits": [{"search": search, "replace": new}],
        "changes": f"{new} instead.",
        "axis": None,
        "direction": None,
        "chance": 50,
        "rationale": "",
        "risks": "",
    }


def searched(model: Model, **options: Any) -> tuple[State, list[events.AnyEvent]]:
    store = MemoryStore()
    state = drive(
        store, task(levers=0, model=True, limits=Budget(attempts=4)), answer=model, **options
    )
    entries = list(store.read(RUN))
    assert verify(entries) == []
    return state, [entry.event for entry in entries]


def test_a_small_model_is_asked_for_little() -> None:
    small = replace(task(levers=0, model=True), reflector=Agent(client="model", terse=True))
    model = Model(ROOT)
    drive(MemoryStore(), small, answer=model)
    first, children = model.schemas[:2]
    assert first["properties"]["approach"]["maxItems"] == TERSE.lines
    edits = children["$defs"]["child"]["properties"]["edits"]
    assert edits["maxItems"] == TERSE.edits
    assert edits["items"]["properties"]["replace"]["maxLength"] == TERSE.line


def kind(found: list[events.AnyEvent], wanted: type) -> list[Any]:
    return [event for event in found if isinstance(event, wanted)]


def test_the_first_plan_is_drafted_before_anything_runs() -> None:
    ideas = [("Try idea 0.", f"Try idea {k}.") for k in (1, 2, 3)]
    state, found = searched(Model(ROOT, ideas))
    first = kind(found, events.ReflectionLaunched)[0]
    assert (first.node, first.asked) == (events.ROOT_DRAFT, 1)
    assert found.index(first) < found.index(kind(found, events.AttemptLaunched)[0])
    assert "Try idea 0." in plan_of(state.tree.root)
    assert [plan_of(node).count("Try idea 3.") for node in state.tree.nodes] == [0, 0, 0, 1]
    assert state.attempts == 4
    assert state.ledger.by_kind["planning"].tokens_in == 50 * len(
        kind(found, events.ReflectionSettled)
    )


def test_what_does_not_apply_is_sent_back_once_and_the_rest_is_used() -> None:
    model = Model(
        ROOT,
        [("Try idea 0.", "Try idea 1."), ("no such line", "x"), ("Keep it simple.", "Go big.")],
        [("Try idea 0.", "Try idea 2.")],
    )
    state, found = searched(model)
    asked = kind(found, events.ReflectionLaunched)
    settled = kind(found, events.ReflectionSettled)
    assert [(a.node, a.asked, len(a.problems)) for a in asked[:3]] == [
        (-1, 1, 0),
        (0, 3, 0),
        (0, 1, 1),
    ]
    assert "no such line" in asked[2].problems[0]
    assert [a.sent_back for a in asked[:3]] == ["", "", "r2"]
    assert [len(s.children) for s in settled[:3]] == [1, 2, 1]
    assert not state.tree.root.exhausted
    assert state.attempts == 4


@pytest.mark.parametrize("second", ["nonsense", [("no such line", "x")]])
def test_a_second_bad_answer_exhausts_the_node(second: object) -> None:
    state, found = searched(Model(ROOT, "nonsense", second))
    assert [len(s.children) for s in kind(found, events.ReflectionSettled)] == [1, 0, 0]
    assert state.tree.root.exhausted
    assert state.ended is not None
    assert (state.ended.status, state.attempts) == ("exhausted", 1)


BAD = {
    "empty": "",
    "cut off": json.dumps({"children": [child("Try idea 0.", "x")]})[:-9],
    "10 MB": "x" * 10_000_000,
    "wrong types": {"children": {"hypothesis": 3}},
    "thousands that repeat": [("Try idea 0.", "Try idea 0.")] * 3_000,
    "a path": [("../../score.py", "x")],
    "half a character": '{"children": [{"hypothesis": "\\ud800"}]}',
    "deep": "[" * 100_000,
}


@pytest.mark.parametrize("answer", BAD.values(), ids=BAD)
def test_a_bad_answer_is_sent_back_with_the_reason(answer: object) -> None:
    state, found = searched(Model(ROOT, answer, [("Try idea 0.", f"Idea {k}.") for k in range(3)]))
    asked = kind(found, events.ReflectionLaunched)
    rejected = kind(found, events.ReflectionSettled)[1].rejected
    assert rejected
    assert asked[2].problems == tuple(one.reason for one in rejected)
    assert all(0 < len(one.reason) <= 400 for one in rejected)
    assert len(state.tree.root.children) == 3
    assert state.attempts == 4


def test_fewer_plans_than_asked_for_exhaust_the_node_without_asking_again() -> None:
    state, found = searched(Model(ROOT, [("Try idea 0.", "Try idea 1.")]))
    assert not any(asked.problems for asked in kind(found, events.ReflectionLaunched))
    assert state.tree.root.exhausted


def test_no_first_plan_ends_the_run() -> None:
    state, found = searched(Model("nonsense", "nonsense"))
    assert len(kind(found, events.ReflectionLaunched)) == 2
    assert state.ended is not None
    assert state.ended.reason.startswith("no first plan could be carried out: the answer: JSON is")
    assert state.attempts == 0


def test_a_failed_root_gets_one_other_draft() -> None:
    other = ROOT | {"approach": ["Try another idea.", "Keep it simple."]}
    state, found = searched(Model(ROOT, other), accidents=Accidents(evaluation=1.0))
    attempts = kind(found, events.AttemptSettled)
    assert [a.outcome for a in attempts] == ["failed", "failed"]
    assert "Try another idea." in plan_of(state.tree.root)
    assert len(kind(found, events.ReflectionLaunched)) == 2
    assert state.ended is not None
    assert state.ended.status == "exhausted"
