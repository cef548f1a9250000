"""Which coding agent `auto` stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlay.agents.access import LEVERS, PROVIDERS
from outlay.agents.clients.programs import KNOWN, find
from outlay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Container

    from outlay.task import Agent

AUTO = "auto"


def chosen(agent: Agent, names: Container[str]) -> str:
    """Return who carries plans out.

    With `auto` it is the first of Codex, Claude Code and OpenCode that is installed, and has a key
    in the environment or an address of its own.

    Args:
        agent: As the task and the command line have it.
        names: Names in the environment.

    Raises:
        InputError: None of them can work.
    """
    if agent.client != AUTO:
        return agent.client or LEVERS
    lacking = {client: _lacks(agent, client, names) for client in KNOWN}
    for client, lack in lacking.items():
        if not lack:
            return client
    found = "; ".join(f"{client}: {lack}" for client, lack in lacking.items())
    raise InputError(
        f"agent: found none that can work ({found}), allowed: one that is installed, with its key "
        "in the environment or --base-url URL --model NAME of a local server; or --agent NAME"
    )


def _lacks(agent: Agent, client: str, names: Container[str]) -> str:
    """Return what a client lacks; empty if nothing."""
    try:
        find(client)
    except ValueError:
        return "not installed"
    if not agent.model and client == "opencode":
        return "no --model"
    key = agent.key or ("" if agent.url else PROVIDERS[client][1])
    return f"no {key}" if key and key not in names else ""
