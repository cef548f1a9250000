from __future__ import annotations

import json
from typing import Any

import pytest

from outlay.errors import InputError
from outlay.evaluators.grade import grade

REPORT: dict[str, Any] = {
    "competition_id": "spaceship-titanic",
    "score": 0.8131,
    "gold_threshold": 0.82066,
    "silver_threshold": 0.81388,
    "bronze_threshold": 0.80967,
    "median_threshold": 0.79565,
    "any_medal": True,
    "gold_medal": False,
    "silver_medal": False,
    "bronze_medal": True,
    "above_median": True,
    "submission_exists": True,
    "valid_submission": True,
    "is_lower_better": False,
    "created_at": "2026-01-01T00:00:00",
    "submission_path": "submission.csv",
}


def text(**changes: Any) -> str:
    return json.dumps(REPORT | changes, indent=4)


def test_the_numbers_of_a_valid_submission() -> None:
    found = grade(text(), "maximize")
    assert found.score == 0.8131
    assert (found.bronze_threshold, found.median_threshold) == (0.80967, 0.79565)
    assert (found.medal, found.above_median) == (1, 1)


def test_the_words_that_a_program_logs_around_its_report_do_not_matter() -> None:
    logged = f"[t] [cli.py:119] Competition report:\n[t] [cli.py:120] {text()}\n"
    assert grade(logged, "maximize") == grade(text(), "maximize")


def test_a_summary_with_one_report() -> None:
    summary = {"total_runs": 1, "competition_reports": [REPORT]}
    assert grade(json.dumps(summary), "maximize") == grade(text(), "maximize")
    summary["competition_reports"] = [REPORT, REPORT]
    with pytest.raises(InputError, match="found 2 reports, allowed: one"):
        grade(json.dumps(summary), "maximize")


@pytest.mark.parametrize(
    ("changes", "medal"),
    [
        ({"gold_medal": True, "bronze_medal": False}, 3),
        ({"silver_medal": True, "bronze_medal": False}, 2),
        ({"bronze_medal": False, "any_medal": False}, 0),
    ],
)
def test_medals_are_numbers(changes: dict[str, bool], medal: int) -> None:
    assert grade(text(**changes), "maximize").medal == medal


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"submission_exists": False, "valid_submission": False, "score": None}, "no submission"),
        ({"valid_submission": False, "score": None}, "no valid submission"),
        ({"valid_submission": False}, "no valid submission"),
        ({"score": None}, "no valid submission"),
        ({"is_lower_better": True}, "evaluate.direction: found 'maximize', allowed: 'minimize'"),
        ({"score": "high"}, r"\$.score"),
        ({"score": float("nan")}, "found"),
        ({"median_threshold": None}, "median_threshold"),
    ],
)
def test_what_is_no_score(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        grade(text(**changes), "maximize")


@pytest.mark.parametrize("report", ["", "none", "{}", "}{", "[1]", '{"a":' * 9999])
def test_what_is_no_report(report: str) -> None:
    with pytest.raises(InputError, match=r"grade: found .*, allowed: a report"):
        grade(report, "maximize")
