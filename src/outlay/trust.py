"""Whether a score is what an evaluator found, or only what the agent's own file says."""

from __future__ import annotations

from itertools import pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from outlay.globs import matches

if TYPE_CHECKING:
    from outlay.state import State
    from outlay.task import Evaluator, Task


def self_reported(state: State) -> bool:
    """Return whether a file that the agent may edit prints the metric.

    With levers nobody edits the program. Otherwise the evaluator's command or function must name
    no file that is editable and neither protected nor hidden.
    """
    if state.started is None or state.started.agent == "levers":
        return False
    space = state.task.workspace
    return any(
        matches(path, space.editable) and not matches(path, (*space.protected, *space.hidden))
        for path in _files(state.task.evaluator)
    )


def imports_from_agent(task: Task) -> str:
    """Return the protected script that would import a module which an agent puts beside it.

    Python looks for modules first in the folder of the script that it runs, unless it is told not
    to by `-I` or `-P`. Empty if there is no such script.
    """
    space = task.workspace
    kept = (*space.protected, *space.hidden)
    if {"-I", "-P"} & set(task.evaluator.command):
        return ""
    for path in _files(task.evaluator):
        beside = str(PurePosixPath(path).parent / "json.py")
        open_folder = matches(beside, space.editable) and not matches(beside, kept)
        if path.endswith(".py") and matches(path, kept) and open_folder:
            return path
    return ""


def _files(evaluator: Evaluator) -> list[str]:
    """Return what a command's parts, or a function's module, would be as files."""
    command = evaluator.command
    found = [part for k, part in enumerate(command) if k or "/" in part]
    modules = [part for before, part in pairwise(command) if before == "-m"]
    modules += [evaluator.function.partition(":")[0]] if evaluator.function else []
    found = [part for part in found if "." in part and part[0] not in "-/" and "{" not in part]
    return found + [module.replace(".", "/") + ".py" for module in modules]
