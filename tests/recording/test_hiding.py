"""Which texts count as secrets, and what is left where one was."""

from __future__ import annotations

import json
import urllib.parse
from dataclasses import replace

import pytest

from outlay import Budget, Lever, Metric, Option, Task, Workspace
from outlay.execution.metering.record import REDACTED, new_secret
from outlay.recording.hiding import Hiding, secrets_of
from outlay.task import Agent, Evaluator

TASK = Task(
    name="t",
    question="?",
    workspace=Workspace(path="/"),
    evaluator=Evaluator(),
    metric=Metric(name="score", direction="maximize"),
    budget=Budget(attempts=1),
    levers=(Lever(name="a", options=(Option(name="off"), Option(name="on"))),),
)
SECRET = 'a/b+c="d"\u00e9'


def test_the_keys_at_hand_are_those_of_the_task_and_the_providers_and_lookalikes() -> None:
    task = replace(TASK, agent=Agent(key="MINE"), reflector=Agent(key="OTHER"))
    environment = {
        "MINE": "short",
        "OTHER": "pin",
        "OPENAI_API_KEY": "any",
        "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "github_token": "ghp_0123456789abcdef",
        "DB_PASSWORD": "",
        "SORT_KEY": "name",
        "MAX_TOKEN": "12345678901234567890",
        "GREETING_KEY": "all 16 of these words stay",
        "HOME": "/home/somebody/0123456789",
    }
    found = [name for name, value in environment.items() if value in secrets_of(task, environment)]
    assert found == ["MINE", "OTHER", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "github_token"]


@pytest.mark.parametrize(
    "text",
    [SECRET, json.dumps(SECRET)[1:-1], urllib.parse.quote(SECRET, safe=""), new_secret(),
     "sk-" + "a1" * 20],
    ids=["plain", "in JSON", "in an address", "the proxy's", "of a known shape"],
)  # fmt: skip
def test_a_secret_is_cut_out_in_every_form(text: str) -> None:
    hiding = Hiding((SECRET,))
    assert hiding.text(f"before {text}, after") == f"before {REDACTED}, after"
    assert hiding.cut == 1


def test_values_are_cleaned_in_names_and_depths() -> None:
    value = {SECRET: [1, None, {"x": f"({SECRET})"}], "y": True}
    assert Hiding((SECRET,)).value(value) == {
        REDACTED: [1, None, {"x": f"({REDACTED})"}],
        "y": True,
    }


def test_the_rest_of_a_binary_file_is_left_as_it_is() -> None:
    content = b"\xff\x00" + SECRET.encode() + b"\xfe\r\n"
    hiding = Hiding((SECRET,))
    assert hiding.content(content) == b"\xff\x00" + REDACTED.encode() + b"\xfe\r\n"
    assert hiding.content(b"\xff\xfe\x00") == b"\xff\xfe\x00"
    assert hiding.cut == 1


def test_words_that_only_begin_like_a_key_stay() -> None:
    text = "ask-me-anything-about-this-long-name task-0123456789abcdefghijklmnop sk-short"
    assert Hiding(()).text(text) == text
