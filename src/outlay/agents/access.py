"""Who carries plans out and who drafts them, from the task and what the command line says."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from outlay.allocation.policies import WITHOUT_REFLECTION
from outlay.errors import bad_value

if TYPE_CHECKING:
    from collections.abc import Container

    from outlay.task import Agent, Task

LEVERS = "levers"

PLAIN = ("command", "acp")
"""Clients that are named with a command, and draft plans only where they are told to."""


PROVIDERS = {
    "codex": ("https://api.openai.com", "OPENAI_API_KEY"),
    "opencode": ("https://api.openai.com", "OPENAI_API_KEY"),
    "model": ("https://api.openai.com", "OPENAI_API_KEY"),
    "claude": ("https://api.anthropic.com", "ANTHROPIC_API_KEY"),
}
"""Where a client's requests go, and the variable with the key, if the task says neither."""


class Access(NamedTuple):
    """A client of a model and how it is reached.

    Attributes:
        client: Its name.
        command: Program and arguments in place of its own; empty for its own.
        model: Name of the model; empty leaves it to the client.
        url: Address of the provider; empty if the task names none.
        key: Name of the environment variable with the provider's key; empty likewise.
    """

    client: str
    command: tuple[str, ...] = ()
    model: str = ""
    url: str = ""
    key: str = ""


def named(agent: Agent, client: str) -> Access:
    """Return the access that a client's name, such as `codex:/opt/codex`, and a table describe.

    Raises:
        InputError: The command cannot be split.
    """
    name, _, command = client.partition(":")
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise bad_value("agent", "client", client, f"a whole command line ({error})") from None
    return Access(name, words, agent.model, agent.url, agent.key)


def metered(access: Access, names: Container[str]) -> Access:
    """Return the access with its provider filled in where a key for it is at hand.

    Without an address the client goes by its own configuration, such as a subscription, and what
    it uses is known from its events only.

    Args:
        access: As the task describes it.
        names: Names in the environment.
    """
    asks_anthropic = access.client == "model" and access.model.startswith("anthropic:")
    url, key = PROVIDERS.get("claude" if asks_anthropic else access.client, ("", ""))
    key = access.key or (key if key in names and not access.url else "")
    return access._replace(url=access.url or (url if key else ""), key=key)


def executor(task: Task, client: str) -> Access | None:
    """Return who carries plans out, `None` for levers."""
    return None if client == LEVERS else named(task.agent, client)


def suited(task: Task, client: str) -> Task:
    """Return the task with the policy `linear` where its own needs plans and nobody drafts any."""
    if client == LEVERS or task.search.policy in WITHOUT_REFLECTION or reflector(task, client):
        return task
    return replace(task, search=replace(task.search, policy="linear"))


def reflector(task: Task, client: str) -> Access | None:
    """Return which model drafts plans; `None` where levers, or nobody, does.

    The executor's own client does, unless `[reflector]` names another one or changes a part.
    """
    if client == LEVERS or task.search.policy in WITHOUT_REFLECTION:
        return None
    own, mine = task.reflector, named(task.agent, client)
    if own.client:
        return named(own, own.client)
    if mine.client in PLAIN:
        return named(own, "model") if own.model or own.url else None
    return mine._replace(
        model=own.model or mine.model, url=own.url or mine.url, key=own.key or mine.key
    )
