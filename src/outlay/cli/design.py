"""`outlay design`: what an experiment is worth before it is run."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outlay.cli._designs import show_assessment, show_plan, show_update
from outlay.errors import InputError

if TYPE_CHECKING:
    from outlay.designs.costs import Design, Limit
    from outlay.designs.states import ResearchState

_WIDTH = 110
_PICTURES = (".png", ".svg", ".pdf")
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
_state = click.argument("state", type=click.Path(path_type=Path))


class _PlanByDefault(click.Group):
    """Takes `outlay design STATE` as `outlay design plan STATE`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default command first unless another one, or help, is asked for."""
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["plan", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_PlanByDefault)
def command() -> None:
    """Say what an experiment is worth: how much it would tell, for what cost.

    `outlay design STATE` is short for `outlay design plan STATE`. STATE is a TOML or JSON file
    with hypotheses, arms, costs and a budget. Exit code 3: no design is affordable.
    """


@command.command()
@_state
@click.option(
    "--score",
    "action",
    metavar="TEXT",
    help="Score an action: a sentence, labelled lines or JSON; @FILE reads it from a file.",
)
@click.option(
    "--figure",
    type=click.Path(path_type=Path),
    help=f"Write the frontier ({', '.join(_PICTURES)}).",
)
@_json
def plan(state: Path, action: str | None, figure: Path | None, as_json: bool) -> None:
    """List the best affordable designs of STATE, or score an action in it."""
    from outlay.designs.assessment import assess
    from outlay.designs.planning import design
    from outlay.designs.statefile import read_state

    if figure is not None and figure.suffix not in _PICTURES:
        raise InputError(f"--figure: found {figure}, allowed: a name in {', '.join(_PICTURES)}")
    found = read_state(state)
    if action is not None:
        assessment = assess(found, _text(action))
        _write(assessment.to_json(), as_json, lambda: show_assessment(assessment, found))
        return
    answer = design(found)
    if figure is not None:
        answer.plot().savefig(figure, dpi=150)
    _write(answer.to_json(), as_json, lambda: show_plan(answer))


def _text(action: str) -> str:
    """Return the text to score, read from the file that `@FILE` names."""
    if not action.startswith("@"):
        if os.path.isfile(action):
            raise InputError(
                f"--score: found the file {action}, allowed: a text, or @{action} to read it"
            )
        return action
    try:
        return Path(action[1:]).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"--score: {action[1:]}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"--score: {action[1:]}: found bytes that are no UTF-8 text") from error


@command.command()
@_state
@click.option("--arms", required=True, metavar="A,B", help="Arms that were run.")
@click.option("--seeds", required=True, type=int, help="Seeds for each condition.")
@click.option("--outcome", required=True, metavar="X,Y", help="What each arm showed.")
@click.option(
    "--write",
    "target",
    type=click.Path(path_type=Path),
    help="Save the state to plan on from (.json): new beliefs, the outcome, what is left.",
)
@_json
def update(
    state: Path, arms: str, seeds: int, outcome: str, target: Path | None, as_json: bool
) -> None:
    """Return what to believe after an outcome was seen, and what is left of the budgets.

    The file that --write saves may be STATE itself if that is JSON.
    """
    from outlay.designs.posteriors import observed
    from outlay.designs.statefile import check_target, read_state, write_state

    if target is not None:
        check_target(target)
    before = read_state(state)
    chosen, values = _experiment(before, arms, seeds, outcome)
    after = observed(before, chosen, values)
    if target is not None:
        write_state(target, after)
    rows = list(zip(after.hypotheses, before.prior, after.prior, strict=True))
    spent = [_spent(*limits, chosen) for limits in zip(before.limits, after.limits, strict=True)]
    data = {
        "posterior": [{"name": n, "prior": p, "posterior": q} for n, p, q in rows],
        "budgets": spent,
    }
    _write(data, as_json, lambda: show_update(data, target))


def _experiment(
    state: ResearchState, arms: str, seeds: int, outcome: str
) -> tuple[Design, list[float]]:
    """Return the design and what each of its arms showed, in the order of the state's arms."""
    from outlay.designs.costs import Design
    from outlay.designs.states import arm_index

    names = [name.strip() for name in arms.split(",")]
    if len(set(names)) != len(names):
        raise InputError(f"--arms: found {arms}, allowed: each arm once")
    indices = [arm_index(state, name) for name in names]
    values = dict(zip(indices, _numbers(outcome, len(names)), strict=True))
    ordered = tuple(sorted(indices))
    return Design(ordered, seeds), [values[arm] for arm in ordered]


def _spent(before: Limit, after: Limit, design: Design) -> dict[str, Any]:
    from outlay.designs.costs import cost_of

    price = cost_of(before, design)
    return {
        "unit": before.unit,
        "before": before.budget,
        "cost": None if price is None else float(price),
        "left": after.budget,
    }


def _numbers(text: str, count: int) -> list[float]:
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--outcome: found {text!r}, allowed: numbers between commas") from None
    if len(numbers) != count:
        raise InputError(f"--outcome: found {len(numbers)} numbers, allowed: {count}, one an arm")
    return numbers


def _write(data: Any, as_json: bool, shown: Any) -> None:
    """Write JSON, or the tables and lines that `shown` returns."""
    if as_json:
        sys.stdout.write(json.dumps(data) + "\n")
        return
    from rich.console import Console

    console = Console(highlight=False, width=None if sys.stdout.isatty() else _WIDTH)
    for part in shown():
        console.print(part, markup=False, soft_wrap=isinstance(part, str))
