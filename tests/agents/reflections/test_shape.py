from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay.agents.reflections.asking import Ask, ask_for
from outlay.agents.reflections.shape import schema
from outlay.agents.reflections.texts import (
    editable_lines,
    plan_of,
    plans_of,
    root_plan,
    same_plan,
)
from outlay.bench.designs.gated_search import world
from outlay.events import Child
from tests.agents.reflections.samples import DIGITS, ROOT, model_run, searched


def every(part: object) -> list[dict]:
    """Return every schema object inside another."""
    if isinstance(part, list):
        return [found for inner in part for found in every(inner)]
    if not isinstance(part, dict):
        return []
    return [part, *(found for inner in part.values() for found in every(inner))]


@pytest.mark.parametrize(
    "ask",
    [
        Ask(plan="", asked=1, first=0),
        Ask(plan=ROOT, asked=3, first=1),
        Ask(plan=ROOT, asked=1, first=1, hypotheses=world(1).state),
    ],
)
def test_the_schema_is_bounded_and_strict(ask: Ask) -> None:
    told = json.loads(schema(ask))
    parts = every(told)
    objects = [part for part in parts if part.get("type") == "object"]
    assert len(objects) >= 1 + 2 * bool(ask.plan)
    for part in objects:
        assert part["additionalProperties"] is False
        assert part["required"] == list(part["properties"])
    strings = [part for part in parts if part.get("type") == "string"]
    assert all({"maxLength", "enum", "pattern"} & part.keys() for part in strings)
    assert all(part.get("maxLength", 0) < 1500 for part in strings)
    arrays = [part for part in parts if part.get("type") == "array"]
    assert all(0 < part["minItems"] <= part["maxItems"] for part in arrays)


def test_an_edit_picks_one_of_the_plans_own_lines() -> None:
    told = json.loads(schema(Ask(plan=ROOT, asked=3, first=1)))
    edit = told["$defs"]["child"]["properties"]["edits"]["items"]["properties"]
    assert edit["search"]["enum"] == [ROOT.splitlines()[4], *ROOT.splitlines()[8:]]
    assert len(edit["search"]["enum"]) == 7
    assert told["properties"]["children"]["maxItems"] == 3


@given(st.lists(st.sampled_from(["a", "b", "ab", "", "# h", " ", "long line"]), max_size=9))
def test_every_editable_line_occurs_once(lines: list[str]) -> None:
    plan = "\n".join(lines)
    for line in editable_lines(plan):
        assert line.strip()
        assert sum(plan.startswith(line, k) for k in range(len(plan))) == 1


def test_long_plans_keep_the_schema_small() -> None:
    plan = "\n".join(f"{k} {'x' * 200}" for k in range(150))
    text = schema(Ask(plan=plan, asked=3, first=1))
    assert 5_000 < len(text) < 20_000


def test_plans_are_rebuilt_from_the_draft_and_all_edits() -> None:
    state = searched(3)
    plans = plans_of(state.tree.nodes)
    assert [plan_of(node) for node in state.tree.nodes] == plans
    assert len(set(plans)) == len(plans) == 7
    for node in state.tree.nodes[1:]:
        assert node.proposal is not None
        assert node.proposal.edits[0][1] in plans[node.id]
        assert node.parent is not None
        assert node.proposal.edits[0][1] not in plans[node.parent.id]


def test_without_a_model_there_are_no_plans() -> None:
    state = model_run()
    state.tree.root.proposal = None
    assert plan_of(state.tree.root) == ""
    ask = ask_for(state, state.tree.root, 3)
    assert (ask.plan, ask.asked, ask.first, ask.known) == ("", 1, 0, frozenset())


def test_a_continued_node_has_its_parents_plan() -> None:
    state = searched(1)
    node = state.tree.add(state.tree.nodes[2], Child(node=7, kind="continue"))
    assert plan_of(node) == plan_of(state.tree.nodes[2])


def test_what_is_asked_holds_all_that_is_known() -> None:
    state = searched(2)
    for improved in (False, False, False):
        state.directions.record_outcome("width", "narrower", improved)
    ask = ask_for(state, state.tree.root, 2)
    assert (ask.plan, ask.asked, ask.first) == (ROOT, 2, 7)
    assert same_plan(ROOT) in ask.known
    assert len(ask.known) == 7
    assert ask.retired == {("width", "narrower")}
    off = model_run(replace(DIGITS, coordination=replace(DIGITS.coordination, dead_ends=False)))
    off.directions.dead_ends = state.directions.dead_ends
    assert ask_for(off, off.tree.root, 2).retired == frozenset()


def test_the_first_plan_reads_as_markdown() -> None:
    made = root_plan(" T ", "H\n", ["a  ", "", "b\n"])
    assert made == "# T\n\n## Hypothesis\n\nH\n\n## Approach\n\na\n\nb\n"
    starts = [ROOT.index(text) for text in ("# Better", "## Hypothesis", "## Approach", "1. ")]
    assert all(a < b for a, b in pairwise(starts))
