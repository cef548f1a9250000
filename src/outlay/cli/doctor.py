"""`outlay doctor`: whether a task works, before anything is spent."""

from __future__ import annotations

import sys

import click
import msgspec

from outlay import taskfile
from outlay.cli import _options
from outlay.doctor import Findings, examine
from outlay.runs import Settings


@click.command()
@click.argument("path", default=".")
@click.option("--agent", default="levers", show_default=True, help="Who carries plans out.")
@_options.limits
@_options.as_json
def command(path: str, agent: str, as_json: bool, **values: object) -> int:
    """Check the task in PATH: evaluator, metric, noise, levers, files, sandbox and disk.

    The program is evaluated as it stands on three seeds, and on one of them twice. Exit code 0 if
    a search can begin, 2 if the task must be put right first, 1 if the program has no score.
    """
    task = taskfile.load(path, _options.budget(dict(values)))
    findings = examine(task, Settings(agent=agent), _options.where(path))
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(findings) + b"\n")
    else:
        sys.stdout.write(in_words(findings) + "\n")
    return 0 if findings.ok else 2


def in_words(findings: Findings) -> str:
    """Return the findings for a person, one line each."""
    lines = [f"{'ok ' if c.ok else 'NO '} {c.name:<10} {c.found}" for c in findings.checks]
    if findings.noise_sd is not None:
        spread = f"sd {findings.noise_sd:.3g} over {len(findings.values)} evaluations"
        lines.append(f"    noise      {findings.noise} noise, {spread}")
    cost = findings.cost
    lines.append(
        f"    cost       {cost.evaluation_seconds:.2g} s an evaluation, about "
        f"{cost.evaluations} evaluations, {_minutes(cost.seconds)}, {cost.usd:.2f} USD"
    )
    return "\n".join(lines)


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"
