"""Which protected evaluators an agent could reach by their imports."""

from __future__ import annotations

import pytest

import outlay
from outlay.trust import imports_from_agent


def task(command: str, **space: tuple[str, ...]) -> outlay.Task:
    return outlay.Task(
        name="t",
        question="?",
        workspace=outlay.Workspace(path="/nowhere", **space),
        evaluator=outlay.Evaluator(command=tuple(command.split())),
        metric=outlay.Metric(name="score", direction="maximize"),
        budget=outlay.Budget(attempts=1),
    )


@pytest.mark.parametrize(
    ("command", "space", "script"),
    [
        ("python3 score.py", {"protected": ("score.py",)}, "score.py"),
        ("python3 eval/score.py", {"protected": ("eval/score.py",)}, "eval/score.py"),
        ("python3 eval/score.py", {"hidden": ("eval/*",)}, ""),
        ("python3 score.py", {"protected": ("score.py",), "editable": ("model.py",)}, ""),
        ("python3 eval/score.py", {"protected": ("eval/score.py",), "editable": ("src/**",)}, ""),
        ("python3 -P score.py", {"protected": ("score.py",)}, ""),
        ("python3 -I score.py", {"protected": ("score.py",)}, ""),
        ("./score", {"protected": ("score",)}, ""),
    ],
)
def test_a_module_beside_a_protected_script_would_be_imported(command, space, script) -> None:
    assert imports_from_agent(task(command, **space)) == script
