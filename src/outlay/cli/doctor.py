"""`outlay doctor`: whether a task works, before anything is spent."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from outlay import taskfile
from outlay.agents import access
from outlay.agents.choosing import chosen
from outlay.agents.starting import start_of
from outlay.cli import _options
from outlay.doctor import Check, Cost, Findings, examine
from outlay.report.words import UNPRICED, usd
from outlay.runs import Settings
from outlay.task import Agent

if TYPE_CHECKING:
    from outlay.agents.access import Access


@click.command()
@click.argument("path", required=False)
@_options.agent
@_options.limits
@_options.as_json
def command(
    path: str | None,
    as_json: bool,
    **values: Any,
) -> int:
    """Check the task in PATH: evaluator, metric, noise, levers, files, sandbox and disk.

    The program is evaluated as it stands on three seeds, and on one of them twice. Of a coding
    agent, and of another one that drafts plans, program, version and key are looked at, and the
    model is called for a token; without a task, that is all. Exit code 0 if a search can begin, 2
    if the task or the agent must be put right first, 1 if the program has no score.
    """
    if values["agent"] and path is None and not Path(taskfile.NAME).exists():
        table = _options.agent_table(values, Agent())
        checks = _examined(access.named(table, chosen(table, os.environ)))
        _print(msgspec.json.encode({"checks": checks}), _lines(checks), as_json=as_json)
        return 0 if all(check.ok for check in checks) else 2
    place = path or "."
    task, agent = _options.with_agent(taskfile.load(place, _options.budget(values)), values)
    task = access.suited(task, agent)
    carries_out, drafts = access.executor(task, agent), access.reflector(task, agent)
    folder = start_of(task)
    checks = _examined(carries_out, folder) if carries_out is not None else []
    if drafts is not None and drafts != carries_out:
        checks += _examined(drafts, folder)
    found = examine(task, Settings(agent=agent), _options.where(place))
    findings = msgspec.structs.replace(found, checks=[*checks, *found.checks])
    _print(msgspec.json.encode(findings), in_words(findings), as_json=as_json)
    return 0 if findings.ok else 2


def _examined(client: Access, folder: str | Path = ".") -> list[Check]:
    """Return what is found of a coding agent or model; nothing of levers."""
    if client.client == access.LEVERS:
        return []
    from outlay.agents.clients.checks import examine_agent

    found = access.metered(client, os.environ)
    return examine_agent(
        found.client,
        model=found.model,
        url=found.url,
        key=found.key,
        command=found.command,
        folder=folder,
    )


def _print(data: bytes, words: str, *, as_json: bool) -> None:
    sys.stdout.buffer.write((data if as_json else words.encode()) + b"\n")


def _lines(checks: list[Check]) -> str:
    return "\n".join(f"{'ok ' if c.ok else 'NO '} {c.name:<10} {c.found}" for c in checks)


def in_words(findings: Findings) -> str:
    """Return the findings for a person, one line each."""
    lines = [_lines(findings.checks)]
    if findings.noise_sd is not None:
        spread = f"sd {findings.noise_sd:.3g} over {len(findings.values)} evaluations"
        lines.append(f"    noise      {findings.noise} noise, {spread}")
    cost = findings.cost
    lines.append(
        f"    cost       {cost.evaluation_seconds:.2g} s an evaluation, about "
        f"{cost.evaluations} evaluations, {_minutes(cost.seconds)}, {money(cost)}"
    )
    return "\n".join(lines)


def money(cost: Cost) -> str:
    """Return the money that is expected, in words."""
    if cost.usd is not None:
        return usd(cost.usd)
    return "money not known before the first attempt" if cost.priced else UNPRICED


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"
