"""Options that several commands share, and how they change a task."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from outlay import quantities, taskfile
from outlay.agents.choosing import chosen
from outlay.agents.strangers import refuse_unconfirmed
from outlay.errors import InputError
from outlay.store import no_such_run
from outlay.task import Budget, check

if TYPE_CHECKING:
    from collections.abc import Callable

    from outlay.store import Store
    from outlay.task import Agent, Task


F = TypeVar("F", bound="Callable[..., Any]")


class Quantity(click.ParamType[float]):
    """An amount with its unit, such as 1.5M or 2h."""

    def __init__(self, name: str, read: Callable[[object], float | int]) -> None:
        self.name = name
        self._read = read

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the amount; fails with what is allowed."""
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


time = click.option(
    "--time",
    "seconds",
    type=Quantity("T", quantities.duration),
    help="Wall clock (90s, 2h).",
)


def limits(command: F) -> F:
    """Add one option for each limit of a budget."""
    for option in reversed(
        [
            click.option("--attempts", type=click.IntRange(min=1), help="At most N attempts."),
            click.option(
                "--tokens", type=Quantity("N", quantities.count), help="At most N tokens (1.5M)."
            ),
            click.option("--usd", type=click.FloatRange(min=0, min_open=True), help="Dollars."),
            time,
        ]
    ):
        command = option(command)
    return command


def budget(values: dict[str, Any]) -> Budget:
    """Take the limits out of a command's options."""
    return Budget(**{name: values.pop(name) for name in ("attempts", "tokens", "usd", "seconds")})


def agent(command: F) -> F:
    """Add the options that say who carries plans out."""
    for option in reversed(
        [
            click.option(
                "--agent",
                help="levers, codex, claude, opencode, command:…, acp:…, or auto for the first "
                "coding agent that has a key; the task's by default.",
            ),
            click.option("--model", help="Model of the agent."),
            click.option("--base-url", help="Address of the provider or of a local server."),
            click.option("--key", help="Environment variable that holds the provider's key."),
            click.option(
                "--trust",
                is_flag=True,
                help="Let the task's file say where keys go, and which program has an account.",
            ),
        ]
    ):
        command = option(command)
    return command


def agent_table(values: dict[str, Any], table: Agent) -> Agent:
    """Take the agent's options out, and return the table with them."""
    given = {
        "client": values.pop("agent"),
        "model": values.pop("model"),
        "url": values.pop("base_url"),
        "key": values.pop("key"),
    }
    return replace(table, **{k: v for k, v in given.items() if v is not None})


def with_agent(task: Task, values: dict[str, Any]) -> tuple[Task, str]:
    """Take the agent's options out; return the task with them, and who carries plans out.

    Raises `InputError` for what the file of a stranger may not say, unless the user trusts it.
    """
    url, named, trusted = values["base_url"] or "", bool(values["agent"]), values.pop("trust")
    table = agent_table(values, task.agent)
    changed = replace(task, agent=table)
    check(changed, "command line")
    who = chosen(table, os.environ)
    if not trusted:
        refuse_unconfirmed(changed, who, url=url, named=named)
    return changed, who


store = click.option(
    "--store",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File of the store; .outlay/store.db beside the task by default.",
)

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")


def with_policy(task: Task, policy: str | None) -> Task:
    """Return the task with another policy, checked by name; `None` keeps its own."""
    from outlay.allocation.policies import by_name

    name = policy or task.search.policy
    by_name(name)
    return replace(task, search=replace(task.search, policy=name))


def folder_of(path: str) -> Path:
    """Return the folder of a task given by its folder or file; raises `InputError` if absent."""
    found = Path(path)
    if not found.exists():
        raise InputError(f"{found}: found nothing there, allowed: a task's folder or file")
    return found if found.is_dir() else found.parent


def where(path: str) -> str:
    """Return what messages call the task of a folder or a file."""
    file = Path(path) / taskfile.NAME
    return str(file) if file.exists() else path


def one_run(store: Store, run: str | None) -> str:
    """Return the run that is meant: the named one, or the only one there is."""
    names = [found.name for found in store.runs()]
    if run is None and len(names) == 1:
        return names[0]
    if run is None:
        raise InputError(
            f"run: found none named, allowed: one of {', '.join(names) or 'none yet'}"
        )
    if run not in names:
        raise no_such_run(run, names)
    return run
