from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlay.agents.plans import Edit, apply_edits
from outlay.agents.reflections.answers import LONGEST_ANSWER, Parsed, parse
from outlay.agents.reflections.asking import Ask
from outlay.agents.reflections.texts import editable_lines, same_plan
from outlay.bench.designs.gated_search import world
from outlay.events import Child, Design, Reflected, decode, encode
from tests.agents.reflections.samples import IDEAS, ROOT

ASK = Ask(plan=ROOT, asked=3, first=5, known=frozenset([same_plan(ROOT)]))
LINES = editable_lines(ROOT)


def told(line: int = 2, replace: str = "Widen it to 128 units.", **changes: Any) -> dict[str, Any]:
    return {
        "hypothesis": "A wider layer helps.",
        "edits": [{"search": LINES[line], "replace": replace}],
        "changes": "- wider hidden layer",
        "axis": "width",
        "direction": "wider",
        "chance": 35,
        "rationale": "It underfits.",
        "risks": "Slower.",
        **changes,
    }


def answer(*children: dict[str, Any]) -> str:
    return json.dumps({"children": list(children)})


def problems(found: Parsed) -> tuple[str, ...]:
    return tuple(rejected.reason for rejected in found.rejected)


def test_children_are_numbered_and_their_edits_kept() -> None:
    found = parse(answer(told(), told(1, "Another line.", chance=1)), ASK)
    assert found.rejected == ()
    assert [child.node for child in found.children] == [5, 6]
    first = found.children[0]
    assert first == Child(
        node=5,
        edits=((LINES[2], "Widen it to 128 units."),),
        summary="- wider hidden layer\n",
        axis="width",
        direction="wider",
        prior=0.35,
        hypothesis="A wider layer helps.",
        rationale="It underfits.",
        risks="Slower.",
    )
    assert apply_edits(ROOT, [Edit(*first.edits[0])]) != ROOT


@pytest.mark.parametrize(
    "around", ["{}", "```json\n{}\n```", "```\n{}\n```\n", "Here it is:\n```json\n{}\n```\nDone."]
)
def test_a_code_fence_around_the_answer_is_taken_off(around: str) -> None:
    text = around.replace("{}", answer(told()))
    assert len(parse(text, ASK).children) == 1


@pytest.mark.parametrize(
    ("child", "problem"),
    [
        (told(edits=[]), "length >= 1"),
        (told(edits=[{"search": "no such line", "replace": "x"}]), "found no match"),
        (told(edits=[{"search": "the", "replace": "x"}]), "found several matches"),
        (told(edits=[{"search": "", "replace": "x"}]), "length >= 1"),
        (told(2, LINES[2]), "has the plan that it was made from"),
        (told(2, LINES[2] + "  "), "has the plan that it was made from"),
        (told(chance=101), "<= 99"),
        (told(chance=0), ">= 1"),
        (told(chance="50"), "Expected `int`"),
        (told(axis="Not a slug!"), "regex"),
        (told(axis="a" * 41), "regex"),
        (told(hypothesis=""), "length >= 1"),
        (told(hypothesis="x" * 3000), "length <= 2000"),
        (told(extra=1), "unknown field"),
        (told(2, "a\x00b"), "found the character '\\x00'"),
        (told(risks="a\x1b[31m"), "found the character '\\x1b'"),
        (told(axis="width", direction="narrower"), "width: narrower was given up"),
        (told(3, "known"), "has a plan that is in the tree"),
        ("no object", "Expected `object`"),
    ],
)
def test_what_is_wrong_with_a_child_is_said_and_the_others_stay(child: Any, problem: str) -> None:
    known = same_plan(ROOT.replace(LINES[3], "known"))
    ask = ASK._replace(retired=frozenset([("width", "narrower")]), known=frozenset([known]))
    found = parse(answer(child, told(1, "Another line.")), ask)
    assert [c.node for c in found.children] == [5]
    assert found.children[0].edits[0][1] == "Another line."
    assert len(problems(found)) == 1
    assert problems(found)[0].startswith("child 1: ")
    assert problem in problems(found)[0]


WHOLE = answer(told())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the answer is empty"),
        (" \n", "the answer is empty"),
        (WHOLE[:-20], "truncated"),
        (WHOLE + " " * 10_000_000, "more than 1,000,000 characters"),
        ("[]", "Expected `object`, got `array`"),
        ('{"children": "none"}', "Expected `array`, got `str`"),
        (answer(told(hypothesis=5)), "Expected `str`, got `int` - at `$.hypothesis`"),
        (WHOLE.replace("35", "true"), "Expected `int`, got `bool` - at `$.chance`"),
        (WHOLE.replace("35", "9" * 400), "Expected `int` <= 99"),
        (WHOLE.replace("A wider", "\\ud800"), "unexpected end of hex escape"),
        (WHOLE.replace("A wider", "\ud800"), "surrogates not allowed"),
        (answer(told(edits=[{"search": "../../score.py", "replace": "x"}])), "no match of '../.."),
        (answer(told(edits=[{"file": "score.py", "search": LINES[0], "replace": ""}])), "`file`"),
        (answer(told(axis="../../score")), "at `$.axis`"),
    ],
)
def test_why_an_answer_brings_no_plan_is_said(text: str, problem: str) -> None:
    found = parse(text, ASK)
    assert found.children == ()
    (said,) = problems(found)
    assert problem in said


def test_thousands_of_children_are_as_many_as_were_asked_for() -> None:
    found = parse(answer(*(told(1, f"line {k}") for k in range(3_000))), ASK)
    assert len(found.children) == 3
    assert problems(found) == ("found 3000 children, allowed: up to 3",)


def test_two_equal_children_are_one() -> None:
    found = parse(answer(told(), told(hypothesis="Other words.")), ASK)
    assert len(found.children) == 1
    assert problems(found) == (
        "child 2: has the same plan as child 1, allowed: one that is not there yet",
    )


def test_more_children_than_asked_are_left_out() -> None:
    found = parse(answer(*(told(1, f"line {k}") for k in range(5))), ASK)
    assert len(found.children) == 3
    assert problems(found) == ("found 5 children, allowed: up to 3",)


def test_half_a_direction_is_none() -> None:
    found = parse(answer(told(axis=None)), ASK)
    assert (found.children[0].axis, found.children[0].direction) == (None, None)


def test_the_first_plan_is_drafted_whole() -> None:
    text = json.dumps({"title": "T", "hypothesis": "H", "approach": ["a", "b"]})
    found = parse(text, Ask(plan="", asked=1, first=0))
    assert found.rejected == ()
    plan = "# T\n\n## Hypothesis\n\nH\n\n## Approach\n\na\nb\n"
    assert found.children == (Child(node=0, plan=plan, hypothesis="H"),)
    again = parse(text, Ask(plan="", asked=1, first=0, known=frozenset([same_plan(plan)])))
    assert again.children == ()
    assert problems(again) == ("the answer: the plan is in the tree, allowed: another one",)


@pytest.mark.parametrize(
    ("arms", "seeds", "problem", "saved"),
    [
        ([6], 4, "its design is uninformative: it would tell 0 nats", 3.0),
        ([0, 1, 2, 3], 12, "its design is unaffordable: it costs 7.6 units, and 6 are left", 7.6),
        ([99], 4, "allowed: arm 0, arm 1", 0.0),
        ([0], 99, "seeds: found 99", 0.0),
    ],
)
def test_a_design_that_does_not_pass_the_gate_is_sent_back(
    arms: list[int], seeds: int, problem: str, saved: float
) -> None:
    ask = ASK._replace(hypotheses=world(1).state)
    names = [f"arm {arm}" for arm in arms]
    found = parse(answer(told(design={"arms": names, "seeds": seeds})), ask)
    assert found.children == ()
    (rejected,) = found.rejected
    assert problem in rejected.reason
    assert rejected.saved == pytest.approx(saved)
    assert rejected.design == (Design(arms=tuple(names), seeds=seeds) if saved else None)


def test_a_design_that_passes_is_in_the_plan_and_its_summary() -> None:
    ask = ASK._replace(hypotheses=world(1).state)
    found = parse(answer(told(design={"arms": ["arm 1", "arm 0"], "seeds": 6})), ask)
    assert found.rejected == ()
    assert found.children[0].design == Design(arms=("arm 0", "arm 1"), seeds=6)
    assert found.children[0].summary.endswith("\n\nDesign: arm 0, arm 1, with 6 seeds.\n")


def test_the_plans_of_one_answer_share_the_budget_of_designs() -> None:
    ask = ASK._replace(hypotheses=world(1).state)  # 6 units
    first, second = ({"arms": [f"arm {arm}"], "seeds": 6} for arm in (0, 1))  # 3.7 each
    found = parse(answer(told(design=first), told(1, "Another line.", design=second)), ask)
    assert len(found.children) == 1
    words = "child 2: its design is unaffordable: it costs 3.7 units, and 2.3 are left"
    assert problems(found)[0].startswith(words)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{",
        "[" * 200_000,
        '{"children": [' + "[" * 100_000,
        "```",
        "```json```",
        "\ud800",
        '{"children": [{"hypothesis": "\\ud800"}]}',
        "x" * 10_000_000,
        "NaN",
        "1" * 5000,
    ],
)
def test_no_text_makes_it_raise(text: str) -> None:
    for ask in (ASK, Ask(plan="", asked=1, first=0)):
        found = parse(text, ask)
        assert found.children == ()
        assert found.rejected
        assert all(len(problem) <= 400 for problem in problems(found))


def test_the_bound_of_an_answer_is_stated() -> None:
    assert problems(parse(" " * (LONGEST_ANSWER + 1), ASK)) == (
        "the answer has more than 1,000,000 characters",
    )


def test_a_first_plan_that_says_nothing_is_none() -> None:
    text = json.dumps({"title": "T", "hypothesis": "H", "approach": [" ", ""]})
    found = parse(text, Ask(plan="", asked=1, first=0))
    assert found.children == ()
    assert "approach: found blank lines only" in problems(found)[0]


FIRST = json.dumps({"title": "T", "hypothesis": "H", "approach": ["a", "b"]})
broken_answers = st.tuples(
    st.sampled_from([WHOLE, answer(told(), told(1, "Another line.")), FIRST]),
    st.lists(
        st.tuples(
            st.integers(0, 900),
            st.integers(0, 30),
            st.text(max_size=4)
            | st.sampled_from(['"', "{", "}", "\\ud83d", "\ud83d", "```", "null"]),
        ),
        min_size=1,
        max_size=4,
    ),
)


@settings(max_examples=300, deadline=None)
@given(broken_answers, st.sampled_from([ASK, Ask(plan="", asked=1, first=0)]))
def test_a_damaged_answer_brings_plans_or_says_why_not(
    broken: tuple[str, list[tuple[int, int, str]]], ask: Ask
) -> None:
    text, damages = broken
    for place, length, new in damages:
        text = text[:place] + new + text[place + length :]
    found = parse(text, ask)
    assert found.children or problems(found) or json.loads(text.strip("` \n")) == {"children": []}
    for problem in problems(found):
        assert problem
        assert "\n" not in problem
        assert len(problem) <= 400
        assert problem.encode()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
odd_children = st.fixed_dictionaries(
    {},
    optional={
        **{name: json_values | st.text() for name in told()},
        "edits": st.lists(
            st.fixed_dictionaries(
                {"search": st.sampled_from([*LINES, "the", "zz"]), "replace": st.text(max_size=9)}
            ),
            max_size=5,
        ),
    },
).map(lambda odd: {**told(), **odd})


@settings(max_examples=150, deadline=None)
@given(st.lists(odd_children, max_size=5).map(lambda some: answer(*some)) | st.text())
def test_whatever_it_says_the_children_fit_into_the_log(text: str) -> None:
    found = parse(text, ASK)
    assert len(found.children) <= ASK.asked
    plans = {same_plan(apply_edits(ROOT, [Edit(*e) for e in c.edits])) for c in found.children}
    assert len(plans | {same_plan(ROOT)}) == len(found.children) + 1
    event = Reflected(node=0, asked=3, children=found.children)
    assert decode(encode(event)) == event
    assert msgspec.json.encode(found.rejected)


def test_every_idea_of_the_samples_is_a_valid_answer() -> None:
    for k, (axis, direction, line) in enumerate(IDEAS):
        old = next(text for text in LINES if text[:2] == line[:2])
        made = told(LINES.index(old), line, axis=axis, direction=direction, chance=k + 1)
        assert parse(answer(made), ASK).rejected == ()
