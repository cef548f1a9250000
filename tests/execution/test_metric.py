from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay.execution.metric import Rule, from_json, from_stdout

RULE = Rule(name="score", low=-10.0, high=10.0, secondary=("time", "size"))
LAST = RULE._replace(line="last")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"score": 0.5}\n', 0.5),
        ('{"score": 1}', 1.0),
        ('talk\n{"loss": 2}\n{"score": 0.5}\n\n  \n', 0.5),
        ("score: 0.5\nbye\n", 0.5),
        ("score:          0.997900\n", 0.9979),
        ("  score : 3\r\nmore", 3.0),
        ("score: 1e-3", 0.001),
        ('score: 0.5\nscore: 0.50\n{"score": 0.5}', 0.5),
        ('{"score": 0.5, "score": 0.5}', 0.5),
        ("score: computing the value\nscore: 2", 2.0),
        ("best_score: 3\nscore: 2", 2.0),
    ],
)
def test_a_metric_on_stdout(text: str, value: float) -> None:
    reading = from_stdout(RULE, text)
    assert (reading.value, reading.fault) == (value, "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "never printed; the last line is nothing"),
        ("hello\n", "never printed; the last line is 'hello'"),
        ('{"other": 1}', "never printed"),
        ("best_score: 3", "never printed"),
        ("score: 1\nscore: 2", "2 times with different values (1, 2)"),
        ('score: 1\n{"score": 2}', "different values"),
        ('{"score": 1}\n{"score": 2}', "different values"),
        ('{"score": 1, "score": 2}', "twice"),
        ('{"score": 1}\nbye', "before the last line"),
        ('{"score": NaN}', "NaN"),
        ("score: nan", "NaN"),
        ('{"score": Infinity}', "infinite"),
        ('{"score": 1e999}', "infinite"),
        ("score: -inf", "infinite"),
        ('{"score": ' + "9" * 400 + "}", "infinite"),
        ('{"score": true}', "no number: 'true'"),
        ('{"score": null}', "no number"),
        ('{"score": "0.5"}', "no number"),
        ('{"score": {"a": 1}}', "no number"),
        ('{"score": [1]}', "no number"),
        ("score: True", "no number"),
        ('{"score": 11}', "outside its range -10 to 10"),
        ("score: -10.1", "outside its range"),
        ("[" * 100_000, "never printed"),
        ("{" * 100_000, "never printed"),
    ],
)
def test_a_fault_on_stdout(text: str, words: str) -> None:
    reading = from_stdout(RULE, text)
    assert reading.value is None
    assert words in reading.fault
    assert "\n" not in reading.fault
    assert len(reading.fault) < 400


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("score: nan\nscore: 2\n", 2.0),
        ('{"score": 1}\n{"score": 3}\nbye', 3.0),
        ('score: 1\n{"score": 3}\nscore: 2', 2.0),
    ],
)
def test_the_last_of_several_if_asked(text: str, value: float) -> None:
    assert from_stdout(LAST, text).value == value


def test_secondary_metrics_are_taken_where_they_are_numbers() -> None:
    text = 'size: 4\n{"epoch": 1, "time": 1}\n{"score": 1, "time": 2, "size": true}\n'
    assert from_stdout(RULE, text).metrics == {"time": 2.0, "size": 4.0}
    assert from_stdout(RULE, "score: 1\ntime: nan").metrics == {}
    assert from_json(RULE, '{"score": 1, "time": 2, "more": 3}', "f").metrics == {"time": 2.0}


@pytest.mark.parametrize(
    ("text", "value"), [('{"score": 2}', 2.0), ("2.5", 2.5), ('\n{"score":\n 2}\n', 2.0)]
)
def test_a_metric_in_a_file(text: str, value: float) -> None:
    assert from_json(RULE, text, "r.json").value == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "r.json holds no JSON"),
        ('{"score": 1', "holds no JSON"),
        ('{"other": 1}', "is not in r.json: found ['other']"),
        ('{"score": NaN}', "NaN"),
        ("NaN", "NaN"),
        ("true", "no number"),
        ('"2"', "no number"),
        ("[1]", "no number"),
        ('{"score": 1, "score": 2}', "twice"),
        ("99", "outside"),
    ],
)
def test_a_fault_in_a_file(text: str, words: str) -> None:
    reading = from_json(RULE, text, "r.json")
    assert reading.value is None
    assert words in reading.fault


@given(st.text())
def test_any_output_is_a_value_or_a_fault(text: str) -> None:
    for reading in (from_stdout(RULE, text), from_stdout(LAST, text), from_json(RULE, text, "f")):
        assert (reading.value is None) == bool(reading.fault)


@given(st.floats(-10, 10), st.text(alphabet=st.characters(exclude_characters="\n")))
def test_a_printed_number_comes_back_exactly(value: float, talk: str) -> None:
    line = json.dumps({"score": value})
    if not talk.strip().startswith(("{", "score")):
        assert from_stdout(RULE, f"{talk}\n{line}\n").value == value
        assert from_stdout(RULE, f"{talk}\nscore: {value!r}\n").value == value
