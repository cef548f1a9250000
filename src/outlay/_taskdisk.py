"""What of a task can only be checked on disk: folders, sources of levers, symbolic links."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from outlay._taskcheck import Fault, shown
from outlay.errors import OutlayError, bad_value
from outlay.execution import harbor, sandbox
from outlay.globs import is_literal, matches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from outlay.task import Option, Task

_SKIPPED = frozenset({".git", ".outlay", ".venv", "node_modules", "__pycache__"})


def check_files(task: Task, where: str) -> None:
    """Raise `InputError` for the first path of the task that the disk contradicts."""
    fault = Fault(where)
    root = Path(task.workspace.path)
    if not root.is_dir():
        fault.value("task.workspace", task.workspace.path, "a folder that exists")
    for key in ("protected", "hidden", "data"):
        for path in getattr(task.workspace, key):
            if is_literal(path):
                _existing(root, path, f"task.{key}", fault)
    for path in task.workspace.editable:
        if is_literal(path):
            _inside(root, path, "task.editable", fault)
    if task.metric.source != "stdout":
        _inside(root, task.metric.source, "evaluate.read", fault)
    for key, command in (("command", task.evaluator.command), ("check", task.evaluator.check)):
        if command and not _found(root, command[0]):
            fault.value(f"evaluate.{key}", command[0], "a program on PATH or in the workspace")
    if task.evaluator.container:
        _container(task.evaluator.container, root, where)
    for path in task.sandbox.read:
        if not os.path.exists(path):
            fault.value("sandbox.read", path, "a path that exists")
    _disjoint(task, root, fault)
    _levers(task, root, fault)


def _container(place: str, root: Path, where: str) -> None:
    """Raise unless a Harbor task's folders can be mounted, and hide nothing that is needed."""
    if not sandbox.works("bwrap"):
        raise OutlayError(f"{where}: {harbor.NEEDS_BUBBLEWRAP}; install it")
    for needed in (root.resolve(), Path(sys.prefix), Path(sys.base_prefix)):
        if needed.parts[1:2] == Path(place).parts[1:2]:
            allowed = f"a path that does not hide {needed}, which a run needs"
            raise bad_value(where, "evaluate.container", place, allowed)


def _found(root: Path, program: str) -> bool:
    inside = "/" in program and (root / program).is_file()
    return inside or shutil.which(program) is not None


def _inside(root: Path, path: str, key: str, fault: Fault) -> Path:
    full = root / path
    if not full.resolve().is_relative_to(root.resolve()):
        fault.value(key, path, f"a path inside the workspace; this one leads to {full.resolve()}")
    return full


def _existing(root: Path, path: str, key: str, fault: Fault) -> Path:
    full = _inside(root, path, key, fault)
    if not full.exists():
        fault.value(key, path, f"a file or folder that exists in {root}")
    return full


def _disjoint(task: Task, root: Path, fault: Fault) -> None:
    workspace = task.workspace
    if workspace.editable == ("**",):
        return
    for path in _files(root):
        if matches(path, workspace.editable):
            for key in ("protected", "hidden"):
                if matches(path, getattr(workspace, key)):
                    fault.value(f"task.{key}", path, "a path that is not in task.editable too")


def _files(root: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - _SKIPPED)
        for name in sorted(names):
            yield Path(folder, name).relative_to(root).as_posix()


def _levers(task: Task, root: Path, fault: Fault) -> None:
    for lever in task.levers:
        for option in lever.options:
            _sources(
                option, root, f"levers.{shown(lever.name)}.options.{shown(option.name)}", fault
            )
        for target, source in lever.options[0].files.items():
            if not (root / target).is_file() or _bytes(root / target) != _bytes(root / source):
                key = f"levers.{shown(lever.name)}.options.{shown(lever.options[0].name)}.files"
                allowed = f"a copy of {target}: the first option is the program as it stands"
                fault.value(key, source, allowed)


def _sources(option: Option, root: Path, key: str, fault: Fault) -> None:
    for target, source in option.files.items():
        _inside(root, target, f"{key}.files", fault)
        if not _existing(root, source, f"{key}.files", fault).is_file():
            fault.value(f"{key}.files", source, "a file")
    if option.patch and not _existing(root, option.patch, f"{key}.patch", fault).is_file():
        fault.value(f"{key}.patch", option.patch, "a file")


def _bytes(path: Path) -> bytes:
    return path.read_bytes()
