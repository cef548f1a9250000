"""The evaluator: what the grader's report says. It grades the submission and runs nothing else."""

from __future__ import annotations

import subprocess
import sys

from outlay.evaluators.grade import grade


def score(config: dict[str, str], seed: int) -> dict[str, float]:
    """Return the score, the thresholds and the medal; fails for a submission that is not valid."""
    command = [sys.executable, "-I", "grade.py"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return grade(done.stdout, "minimize")._asdict()
