"""What a grader's report says, in the format of MLE-bench, as numbers or as a failure.

MLE-bench (Chan et al., 2025, arXiv:2410.07095) grades a submission into one JSON object: score,
medal thresholds, and whether the submission is there and valid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from outlay.errors import InputError

if TYPE_CHECKING:
    from outlay.task import Direction


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """One competition's report; its other keys are of no use here.

    Attributes:
        competition_id: The competition.
        score: The submission's score; `None` where it is not valid.
        gold_threshold, silver_threshold, bronze_threshold: Scores that earn a medal.
        median_threshold: Median of the leaderboard.
        gold_medal, silver_medal, bronze_medal, above_median: What the score earned.
        submission_exists, valid_submission: Whether there is something to grade.
        is_lower_better: The metric's direction.
    """

    competition_id: str
    score: float | None
    gold_threshold: float
    silver_threshold: float
    bronze_threshold: float
    median_threshold: float
    gold_medal: bool
    silver_medal: bool
    bronze_medal: bool
    above_median: bool
    submission_exists: bool
    valid_submission: bool
    is_lower_better: bool


class _Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A file of several reports, as `mlebench grade` writes it."""

    competition_reports: list[Report]


class Grade(NamedTuple):
    """A valid submission's numbers, for a function evaluator's answer (`grade._asdict()`).

    Attributes:
        score: The metric.
        gold_threshold, silver_threshold, bronze_threshold, median_threshold: As in the report.
        medal: 3 for gold, 2 for silver, 1 for bronze, 0 for none.
        above_median: 1 or 0.
    """

    score: float
    gold_threshold: float
    silver_threshold: float
    bronze_threshold: float
    median_threshold: float
    medal: int
    above_median: int


def grade(text: str, direction: Direction) -> Grade:
    """Return what a report says about a valid submission.

    Args:
        text: The JSON of one report, or of a summary with a single one. Text before the first and
            after the last brace is left out, since `mlebench grade-sample` logs its report.
        direction: The task's direction, which must be the report's.

    Raises:
        InputError: There is no such report, no valid submission, or another direction. An
            evaluator that lets it pass fails its attempt, which then has no score.
    """
    report = _report(text)
    where = f"grade of {report.competition_id}"
    if not report.submission_exists:
        raise InputError(f"{where}: found no submission, allowed: a CSV file")
    if not report.valid_submission or report.score is None:
        raise InputError(f"{where}: found no valid submission, allowed: one that can be graded")
    better = "minimize" if report.is_lower_better else "maximize"
    if better != direction:
        raise InputError(f"{where}: evaluate.direction: found {direction!r}, allowed: {better!r}")
    medals = (report.bronze_medal, report.silver_medal, report.gold_medal)
    return Grade(
        score=report.score,
        gold_threshold=report.gold_threshold,
        silver_threshold=report.silver_threshold,
        bronze_threshold=report.bronze_threshold,
        median_threshold=report.median_threshold,
        medal=max((place for place, won in enumerate(medals, 1) if won), default=0),
        above_median=int(report.above_median),
    )


def _report(text: str) -> Report:
    held = text[text.find("{") : text.rfind("}") + 1]
    allowed = "a report with score, thresholds and valid_submission"
    try:
        if '"competition_reports"' not in held:
            return msgspec.json.decode(held, type=Report)
        reports = msgspec.json.decode(held, type=_Summary).competition_reports
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InputError(f"grade: found {error}, allowed: {allowed}") from None
    if len(reports) != 1:
        raise InputError(f"grade: found {len(reports)} reports, allowed: one")
    return reports[0]
