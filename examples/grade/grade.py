"""Grades submission.csv and prints the report, in the format of MLE-bench."""

from __future__ import annotations

import csv
import json
import math
from datetime import UTC, datetime
from pathlib import Path

SUBMISSION, ANSWERS = Path("submission.csv"), Path("answers.csv")
THRESHOLDS = {"gold": 0.3, "silver": 1.0, "bronze": 2.0, "median": 2.5}


def values(file: Path) -> dict[str, float]:
    """Return id to y."""
    with file.open(newline="") as rows:
        return {row["id"]: float(row["y"]) for row in csv.DictReader(rows)}


def root_mean_square_error() -> float | None:
    """Return the submission's error, `None` if it cannot be graded."""
    answers = values(ANSWERS)
    try:
        given = values(SUBMISSION)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if given.keys() != answers.keys() or not all(map(math.isfinite, given.values())):
        return None
    return math.sqrt(sum((given[k] - answers[k]) ** 2 for k in answers) / len(answers))


def main() -> None:
    score = root_mean_square_error()
    reached = [name for name, limit in THRESHOLDS.items() if score is not None and score <= limit]
    medal = next((name for name in ("gold", "silver", "bronze") if name in reached), None)
    report = {
        "competition_id": "curve",
        "score": None if score is None else round(score, 5),
        **{f"{name}_threshold": limit for name, limit in THRESHOLDS.items()},
        "any_medal": medal is not None,
        **{f"{name}_medal": name == medal for name in ("gold", "silver", "bronze")},
        "above_median": "median" in reached,
        "submission_exists": SUBMISSION.is_file(),
        "valid_submission": score is not None,
        "is_lower_better": True,
        "created_at": datetime.now(UTC).isoformat(),
        "submission_path": str(SUBMISSION),
    }
    print(json.dumps(report, indent=4))


main()
