"""Where a Harbor task's verifier finds things, and where it leaves its reward.

environment/   in the workspace, seen as the folder that the job's `container` names, such as /app
tests/         in the workspace, seen as /tests; absent while an agent works
logs/          in the job's exchange folder, seen as /logs; the reward is in logs/verifier
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlay.execution import metric, snapshot
from outlay.execution.folder import file_text

if TYPE_CHECKING:
    from pathlib import Path

ENVIRONMENT, TESTS, LOGS, VERIFIER = "environment", "tests", "logs", "verifier"

NEEDS_BUBBLEWRAP = (
    "a Harbor task's folders are mounted with bubblewrap (bwrap), which does not start here; "
    "without it the verifier would not find them, and the agent would find the verifier"
)


def make_folders(work: Path, exchange: Path) -> None:
    """Make what is mounted; the logs anew, so that nothing run before leaves a reward there."""
    (work / ENVIRONMENT).mkdir(exist_ok=True)
    (snapshot.free(exchange, LOGS) / VERIFIER).mkdir(parents=True)


def reading(rule: metric.Rule, exchange: Path) -> metric.Reading | None:
    """Return the metric of `reward.json`, else of `reward.txt`; `None` where neither was left.

    `reward.txt` holds one number, the metric `reward`.
    """
    folder = exchange / LOGS / VERIFIER
    if folder.is_symlink():
        return None
    if (text := file_text(folder / "reward.json")) is not None:
        return metric.from_json(rule, text, "reward.json")
    if (text := file_text(folder / "reward.txt")) is not None:
        return metric.from_stdout(rule, f"reward: {text.strip()}")
    return None
