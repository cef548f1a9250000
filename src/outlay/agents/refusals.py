"""What keeps an agent from doing what the task asks of it, said before anything is spent."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from outlay.agents import access
from outlay.agents.clients.registry import by_name
from outlay.agents.prices import price_of
from outlay.allocation.policies import NAMES, STAR, WITHOUT_REFLECTION
from outlay.errors import InputError

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
    try:
        works = access.executor(task, agent), access.reflector(task, agent)
        for found in filter(None, works):
            by_name(found.client)
    except ValueError as error:
        raise InputError(f"agent: {error}") from None
    carries_out, drafts = works
    if carries_out is None or carries_out.client == "model":
        raise InputError(
            "agent: found 'model', which drafts plans and edits no files, allowed: codex, claude, "
            "opencode, command:… or acp:…"
        )
    if carries_out.client in access.PLAIN and not carries_out.command:
        client = carries_out.client
        raise InputError(f"agent: found {agent!r}, allowed: {client}: and a command line")
    policy = task.search.policy
    if drafts is None and policy not in WITHOUT_REFLECTION:
        raise InputError(
            f"policy: found {policy!r} with {agent!r}, which drafts no plans, allowed: "
            f"{', '.join(WITHOUT_REFLECTION)}, or a model in [reflector]"
        )
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


def _refuse_money(task: Task, works: tuple[Access | None, ...]) -> None:
    """Raise `InputError` for a limit in dollars that nobody can keep."""
    limited = task.budget.usd is not None or task.limits.usd is not None
    for found in filter(None, works):
        metered = access.metered(found, os.environ).url
        if limited and metered and price_of(task, found.model) is None:
            key = f'prices."{found.model}"' if found.model else "agent.model"
            raise InputError(
                f"{key}: found nothing, and usd is limited, allowed: a model with a price, in "
                "dollars for a million tokens of input and output"
            )
