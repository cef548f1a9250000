"""A task read from its file, `outlay.toml` beside the user's code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from outlay import _autoresearch, _harbor, _tasktext
from outlay._taskdisk import check_files
from outlay._tasktables import read_levers, read_prices, read_tables, table
from outlay.errors import InputError
from outlay.task import (
    Agent,
    Budget,
    Coordination,
    Evaluator,
    Limits,
    Metric,
    Sandbox,
    Search,
    Seeds,
    Task,
    Workspace,
    check,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "outlay.toml"

_LIMITS = {"attempts": "attempts", "tokens": "tokens", "usd": "usd", "time": "seconds"}


def load(path: str | Path, budget: Budget | None = None) -> Task:
    """Return the task of a folder or of a TOML file, checked against the disk.

    A folder without `outlay.toml` may have a layout that stands for one, see `recognise`.

    Args:
        path: A folder with `outlay.toml`, or the path of a task file.
        budget: Limits that replace those of the file, one by one.

    Raises:
        InputError: If there is no task, or anything in it is wrong.
    """
    found = Path(path)
    file = found / NAME if found.is_dir() else found
    if found.is_dir() and not file.exists():
        recognised = recognise(found, budget)
        if recognised is None:
            raise InputError(f"{found}: found no {NAME}, allowed: a folder with one (outlay init)")
        return recognised
    where = str(file)
    document = _tasktext.document(_tasktext.text(file), where)
    task = _build(document, where, file.parent, layout(file.parent), budget)
    check_files(task, where)
    return task


def load_text(
    text: str,
    where: str,
    folder: str | Path,
    tables: Mapping[str, dict[str, Any]] | None = None,
) -> Task:
    """Return the task written in `text`, without a look at the disk.

    Args:
        text: TOML.
        where: What messages call the file.
        folder: Folder that `workspace` is relative to.
        tables: What the text may leave out, see `layout`.

    Raises:
        InputError: If anything in the text is wrong.
    """
    return _build(_tasktext.document(text, where), where, Path(folder), tables or {}, None)


def recognise(folder: str | Path, budget: Budget | None = None) -> Task | None:
    """Return the task of a folder that needs no task file, else `None`.

    It is an autoresearch workspace (`program.md`, `train.py`, `prepare.py`), or a Harbor task
    (`task.toml`, `instruction.md`, `tests/test.sh`).
    """
    tables = layout(Path(folder))
    if not tables:
        return None
    task = _build({}, str(folder), Path(folder), tables, budget)
    check_files(task, str(folder))
    return task


def layout(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the tables that the folder's layout stands for, none for any other layout."""
    if _autoresearch.is_autoresearch(folder):
        return _autoresearch.defaults(folder)
    return _harbor.defaults(folder) if _harbor.is_harbor(folder) else {}


def notes(task: Task) -> list[str]:
    """Return what a Harbor task asks for and does not get, one line each; none for other tasks."""
    folder = Path(task.workspace.path)
    return _harbor.notes(folder) if task.evaluator.container and _harbor.is_harbor(folder) else []


def _build(
    document: dict[str, Any],
    where: str,
    folder: Path,
    tables: Mapping[str, dict[str, Any]],
    budget: Budget | None,
) -> Task:
    values = read_tables(_over(tables, document, where), where)
    root = folder.resolve()
    workspace = (root / values["task"].pop("workspace", ".")).resolve()
    hypotheses = _hypotheses(values["task"], root, workspace, where)
    task = Task(
        name=values["task"].pop("name", "") or _absent(where, "task.name", "a short name"),
        question=values["task"].pop("question", "")
        or _absent(where, "task.question", "the question in words"),
        workspace=Workspace(path=str(workspace), **values["task"]),
        evaluator=_evaluator(values["evaluate"]),
        metric=_metric(values["evaluate"]),
        budget=_budget(values["budget"]).with_limits(budget),
        levers=read_levers(document, where),
        limits=Limits(**values["limits"]),
        seeds=Seeds(**values["seeds"]),
        sandbox=_sandbox(values["sandbox"]),
        coordination=Coordination(**values["coordination"]),
        search=Search(**values["search"]),
        agent=Agent(**values["agent"]),
        reflector=Agent(**values["reflector"]),
        prices=read_prices(document, where),
        hypotheses=hypotheses,
    )
    check(task, where)
    return task


def _hypotheses(values: dict[str, Any], root: Path, workspace: Path, where: str) -> dict[str, Any]:
    """Take the file of hypotheses out and return what it says; in the workspace it is hidden.

    Whoever carries an experiment out should not read what each explanation predicts.
    """
    name = values.pop("hypotheses", "")
    if not name:
        return {}
    from outlay.designs.statefile import read_state, state_to_json  # loads numpy

    try:
        file = (root / name).resolve()
        found = state_to_json(read_state(file))
    except ValueError as error:  # an InputError is one too, and so is a name with a null byte
        raise InputError(f"{where}: task.hypotheses: found {name!r}: {error}") from error
    if file.is_relative_to(workspace):
        path = file.relative_to(workspace).as_posix()
        hidden = values.get("hidden", ())
        values["hidden"] = hidden if path in hidden else (*hidden, path)
    return found


def _over(
    tables: Mapping[str, dict[str, Any]], document: dict[str, Any], where: str
) -> dict[str, Any]:
    """Return the document with what it leaves out taken from `tables`; a budget is one whole."""
    merged = dict(document)
    for name, values in tables.items():
        own = table(document.get(name, {}), where, name)
        merged[name] = own if name == "budget" and own else {**values, **own}
    return merged


def _absent(where: str, key: str, allowed: str) -> str:
    raise InputError(f"{where}: {key}: found nothing, allowed: {allowed}")


def _evaluator(values: dict[str, Any]) -> Evaluator:
    keys = ("command", "function", "check", "noise", "container")
    return Evaluator(**{k: values[k] for k in keys if k in values})


def _metric(values: dict[str, Any]) -> Metric:
    low, high = values.get("range", (None, None))
    renamed = {"read": "source", "metric_line": "line"}
    keys = ("read", "metric_line", "secondary", "reward", "reward_scale")
    given = {renamed.get(k, k): values[k] for k in keys if k in values}
    return Metric(
        name=values.get("metric", ""),
        direction=values.get("direction", ""),
        low=low,
        high=high,
        **given,
    )


def _budget(values: dict[str, Any]) -> Budget:
    return Budget(**{_LIMITS[k]: v for k, v in values.items()})


def _sandbox(values: dict[str, Any]) -> Sandbox:
    read = tuple(str(Path(p).expanduser()) for p in values.pop("read", ()))
    return Sandbox(read=read, **values)
