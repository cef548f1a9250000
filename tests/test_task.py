from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlay.errors import InputError
from outlay.task import (
    Budget,
    Evaluator,
    Lever,
    Limits,
    Metric,
    Option,
    Seeds,
    Task,
    Workspace,
    check,
    from_json,
    task_hash,
    to_json,
)

TASK = Task(
    name="switches",
    question="Which switches raise the score?",
    workspace=Workspace(path="/somewhere"),
    evaluator=Evaluator(command=("python3", "score.py", "--seed", "{seed}")),
    metric=Metric(name="score", direction="maximize"),
    budget=Budget(attempts=16),
    levers=(Lever(name="a", options=(Option(name="off"), Option(name="on", args=("--a", "1")))),),
)

words = st.text(st.characters(codec="utf-8"), max_size=12)
options = st.builds(
    Option,
    name=words,
    args=st.lists(words).map(tuple),
    env=st.dictionaries(words, words),
    files=st.dictionaries(words, words),
    patch=st.none() | words,
)
tasks = st.builds(
    Task,
    name=words,
    question=words,
    workspace=st.builds(Workspace, path=words, data=st.lists(words).map(tuple)),
    evaluator=st.builds(Evaluator, command=st.lists(words).map(tuple), function=st.none() | words),
    metric=st.builds(
        Metric,
        name=words,
        direction=st.sampled_from(["maximize", "minimize"]),
        low=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    ),
    budget=st.builds(Budget, attempts=st.none() | st.integers(1, 10**6)),
    levers=st.lists(
        st.builds(Lever, name=words, options=st.lists(options, max_size=3).map(tuple)), max_size=3
    ).map(tuple),
    limits=st.builds(Limits, seconds=st.none() | st.floats(0, 1e9)),
    seeds=st.builds(Seeds, selection=st.lists(st.integers(0, 99)).map(tuple)),
)


def test_a_right_task_passes() -> None:
    check(TASK)


@settings(max_examples=40)
@given(tasks)
def test_json_round_trip(task: Task) -> None:
    assert from_json(to_json(task)) == task
    assert to_json(from_json(to_json(task))) == to_json(task)


def test_json_of_something_else_is_an_input_error() -> None:
    for text in ("", "{}", "[]", '{"name": 3}', to_json(TASK)[:-5]):
        with pytest.raises(InputError, match="stored task: found"):
            from_json(text)


@settings(max_examples=25)
@given(tasks)
def test_hash_is_the_same_for_other_budgets_and_folders(task: Task) -> None:
    moved = replace(task, budget=Budget(usd=3.0), workspace=replace(task.workspace, path="/x"))
    assert task_hash(moved) == task_hash(task)
    assert task_hash(replace(task, question=task.question + "?")) != task_hash(task)
    assert task_hash(replace(task, limits=Limits(output=7))) != task_hash(task)


def test_hash_depends_on_the_order_of_options() -> None:
    off, on = TASK.levers[0].options
    swapped = replace(TASK, levers=(Lever(name="a", options=(on, off)),))
    assert task_hash(swapped) != task_hash(TASK)


def _levers(*names: str) -> tuple[Lever, ...]:
    return tuple(replace(TASK.levers[0], name=name) for name in names)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (
            replace(TASK, levers=_levers("a", "a")),
            "task: levers.a: found 'a', allowed: each lever",
        ),
        (
            replace(TASK, levers=_levers("a b")),
            "task: levers.'a b': found 'a b', allowed: 1 to 64",
        ),
        (
            replace(TASK, budget=Budget()),
            "task: budget: found nothing, allowed: at least one limit",
        ),
        (
            replace(TASK, budget=Budget(attempts=0)),
            "task: budget.attempts: found 0, allowed: a wh",
        ),
        (
            replace(TASK, budget=Budget(attempts="16")),  # type: ignore[arg-type]
            "task: budget.attempts: found a wrong type: Expected `int | null`, got `str`",
        ),
        (
            replace(TASK, metric=Metric(name="score", direction="max")),  # type: ignore[arg-type]
            "task: evaluate.direction: found 'max', allowed: maximize, minimize",
        ),
        (
            replace(TASK, metric=Metric(name="s", direction="maximize", low=float("nan"))),
            "task: evaluate.range: found [nan, None], allowed: [low, high]",
        ),
        (
            replace(TASK, evaluator=Evaluator()),
            "task: evaluate.command: found nothing, allowed: a",
        ),
    ],
)
def test_python_gets_the_same_errors(task: Task, message: str) -> None:
    with pytest.raises(InputError) as caught:
        check(task)
    assert str(caught.value).startswith(message)


def test_an_evaluator_knows_whether_it_is_seeded() -> None:
    assert Evaluator(command=("x", "--seed={seed}")).seeded
    assert Evaluator(function="m:f").seeded
    assert not Evaluator(command=("x",)).seeded
