"""Everything that a report is written from, gathered beforehand so that writing it is pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from outlay.globs import matches
from outlay.report.history import History

if TYPE_CHECKING:
    from collections.abc import Mapping

    from outlay.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A run as its report sees it.

    Attributes:
        run: Its name.
        state: Its state.
        history: Its course.
        logs: End of the output of each try, by id of the job.
        versions: What is needed to run it again: (name, version).
    """

    run: str
    state: State
    history: History = field(default_factory=History)
    logs: Mapping[str, str] = field(default_factory=dict)
    versions: tuple[tuple[str, str], ...] = ()


def self_reported(state: State) -> bool:
    """Return whether a file that the agent may edit prints the metric.

    With levers nobody edits the program. Otherwise the evaluator's command must name no file that
    is editable and neither protected nor hidden.
    """
    if state.started is None or state.started.agent == "levers":
        return False
    space = state.task.workspace
    return any(
        matches(path, space.editable) and not matches(path, (*space.protected, *space.hidden))
        for path in _files(state.task.evaluator.command)
    )


def _files(command: tuple[str, ...]) -> list[str]:
    """Return what a command's parts would be as files of the workspace."""
    found = [part for k, part in enumerate(command) if k or "/" in part]
    modules = [part for before, part in pairwise(command) if before == "-m"]
    found = [part for part in found if "." in part and part[0] not in "-/" and "{" not in part]
    return found + [module.replace(".", "/") + ".py" for module in modules]
