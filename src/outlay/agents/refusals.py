"""What keeps an agent from doing what the task asks of it, said before anything is spent."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from outlay.agents import access
from outlay.agents.clients.contract import Request
from outlay.agents.clients.provider import refusal
from outlay.agents.clients.registry import by_name
from outlay.agents.prices import price_of
from outlay.agents.starting import hidden, lack, start_of
from outlay.allocation.policies import NAMES, STAR, WITHOUT_REFLECTION
from outlay.errors import InputError
from outlay.execution import sandbox

if TYPE_CHECKING:
    from outlay.agents.access import Access
    from outlay.task import Task


def refuse_agent(task: Task, agent: str) -> None:
    """Raise `InputError` if the agent cannot do what the task's policy asks of it."""
    policy = task.search.policy
    if policy == STAR:
        raise InputError(
            f"policy: found {policy!r}, which is that of `outlay ablate`, allowed: "
            f"{', '.join(NAMES)}"
        )
    if agent == access.LEVERS:
        _refuse_levers(task)
    else:
        _refuse_client(task, agent)
    if task.hypotheses:
        _refuse_hypotheses(task, agent)


def _refuse_levers(task: Task) -> None:
    if not task.levers:
        raise InputError(
            "agent: found 'levers' for a task without levers, allowed: [levers.NAME] tables in "
            "outlay.toml, or --agent codex, claude, opencode or command:…"
        )
    budget = task.budget
    if budget.attempts is None and budget.seconds is None:
        raise InputError(
            "budget: found only tokens or usd, of which levers spend none, allowed: attempts or "
            "time beside them"
        )


def _refuse_client(task: Task, agent: str) -> None:
    works = access.executor(task, agent), access.reflector(task, agent)
    carries_out, drafts = works
    if carries_out is None or carries_out.client == "model":
        raise InputError(
            "agent: found 'model', which drafts plans and edits no files, allowed: codex, claude, "
            "opencode, command:… or acp:…"
        )
    policy = task.search.policy
    if drafts is None and policy not in WITHOUT_REFLECTION:
        raise InputError(
            f"policy: found {policy!r} with {agent!r}, which drafts no plans, allowed: "
            f"{', '.join(WITHOUT_REFLECTION)}, or a model in [reflector]"
        )
    for found in filter(None, works):
        _refuse_start(task, found)
    _refuse_money(task, works)


def _refuse_hypotheses(task: Task, agent: str) -> None:
    """Raise `OutlayError` where nobody could name a design, or no design could be paid."""
    if access.reflector(task, agent) is None:
        raise InputError(
            f"task.hypotheses: found with {agent!r} and the policy {task.search.policy!r}, where "
            "no model drafts plans and so nobody names a design, allowed: with a model in "
            "[reflector], or not at all"
        )
    from outlay.designs.searching import best_affordable  # loads numpy, which takes a while
    from outlay.designs.statefile import parse_state

    best_affordable(parse_state(task.hypotheses, "task.hypotheses"))


def refuse_key(task: Task, agent: str) -> None:
    """Raise `InputError` if a provider refuses the key, or asks for one where none is named.

    It is asked without tokens. No key is sent to an address that it was not named for.
    """
    works = access.executor(task, agent), access.reflector(task, agent)
    reached = [access.metered(found, os.environ) for found in works if found is not None]
    for url, key in dict.fromkeys((found.url, found.key) for found in reached):
        if not url or not (why := refusal(url, os.environ.get(key, "") if key else "")):
            continue
        if not key:
            raise InputError(
                f"agent.key: found none, and {url} asks for a key ({why}), allowed: the name of "
                "the variable that holds it, as in --key NAME"
            )
        raise InputError(
            f"{key}: found a key that {url} refuses ({why}), allowed: one that it lets in"
        )


def _refuse_start(task: Task, found: Access) -> None:
    """Raise `InputError` for what would keep the client from starting, or from being let in."""
    if found.key and not os.environ.get(found.key, "").strip():
        raise InputError(
            f"key: found no variable {found.key} in the environment, allowed: the name of one "
            "that holds the provider's key"
        )
    reached = access.metered(found, os.environ)
    if found.client == "model" and not reached.url:
        raise InputError(
            "key: found no variable OPENAI_API_KEY and no address, allowed: the name of the "
            "variable with the key, or the address of a local server"
        )
    try:
        by_name(found.client).invoke(
            Request(
                prompt="",
                folder="/",
                home="/",
                command=found.command,
                model=found.model,
                url=reached.url,
                confined=sandbox.best() == "bwrap",
            )
        )
    except ValueError as error:
        raise InputError(str(error)) from None
    program = next(iter(found.command), "")
    if program and (why := lack(program, start_of(task))):
        raise InputError(
            f"agent: found the program {program!r}, which {why}, allowed: one on PATH, in the "
            "workspace as ./PROGRAM, or with its whole path"
        )
    if path := hidden(task, found):
        raise InputError(
            f"agent: found {path}, which the sandbox hides from an attempt, allowed: a relative "
            f"path to a file of the workspace, or [sandbox] read = [{path!r}]"
        )


_TELLS_NO_MONEY = ("codex", "model")
"""Clients whose own events tell tokens only."""


def _refuse_money(task: Task, works: tuple[Access | None, ...]) -> None:
    """Raise `InputError` for a limit in dollars that nobody can keep."""
    limited = task.budget.usd is not None or task.limits.usd is not None
    for found in filter(None, works):
        counted = access.metered(found, os.environ).url or found.client in _TELLS_NO_MONEY
        if limited and counted and price_of(task, found.model) is None:
            key = f'prices."{found.model}"' if found.model else "agent.model"
            raise InputError(
                f"{key}: found nothing, and usd is limited, allowed: a model with a price, in "
                "dollars for a million tokens of input and output"
            )
