"""`outlay design`: what an experiment is worth before it is run."""

from __future__ import annotations

import json
import os
import sys
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outlay.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from outlay.designs.assessment import Assessment
    from outlay.designs.costs import Design, Limit
    from outlay.designs.planning import Option, Plan
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
        _write(assessment.to_json(), as_json, lambda: _show_assessment(assessment, found))
        return
    answer = design(found)
    if figure is not None:
        answer.plot().savefig(figure, dpi=150)
    _write(answer.to_json(), as_json, lambda: _show_plan(answer))


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
    table = _table("hypothesis", "before", "after")
    for name, prior, posterior in rows:
        table.add_row(name, f"{prior:.3f}", f"{posterior:.3f}")
    _write(data, as_json, lambda: [table, *map(_spent_line, spent), *_saved(target)])


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


def _spent_line(spent: dict[str, Any]) -> str:
    unit, before, cost = spent["unit"], spent["before"], spent["cost"]
    if cost is None:
        return f"Budget: the design has no price in {unit}; {before:g} are left as before."
    over = f"; {cost - before:g} more than there was" if cost > before else ""
    return f"Budget: {spent['left']:g} of {before:g} {unit} left, the design cost {cost:g}{over}."


def _saved(target: Path | None) -> list[str]:
    if target is None:
        return []
    return [f"Wrote {target}: these beliefs, the outcome as an observation, and what is left."]


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


def _table(*columns: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD)
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place == 0 else "right")
    return table


def _options(title: str, options: tuple[Option, ...], unit: str) -> Table:
    table = _table(title, "seeds", unit, "nats", "nats per unit")
    for option in options:
        error = f" ± {option.error:.4f}" if option.error > 1e-4 else ""
        table.add_row(
            _joined(option.arms),
            str(option.seeds),
            f"{option.cost:g}",
            f"{_nats(option.gain)}{error}",
            f"{option.efficiency:.4f}",
        )
    return table


def _nats(value: float) -> str:
    return f"{round(value, 4) + 0.0:.4f}"  # never -0.0000


def _joined(names: tuple[str, ...]) -> Any:
    from rich.text import Text

    return Text(", ".join(names))


def _show_plan(plan: Plan) -> list[Any]:
    unit = plan.state.limits[0].unit
    if plan.nothing_to_learn:
        return [_nothing(plan.state), _priors(plan)]
    arms = _table("arm", "runs", "adds (nats)", "affordable")
    for value in plan.arms:
        arms.add_row(
            _joined((value.arm,)),
            "yes" if value.included else "-",
            _nats(value.adds),
            "yes" if value.affordable else "no",
        )
    return [
        _answer(plan),
        _options("best designs", plan.best, unit),
        _options("frontier", plan.frontier, unit),
        "What each arm adds to the best design:",
        arms,
        _priors(plan),
    ]


def _answer(plan: Plan) -> str:
    limit, best = plan.state.limits[0], plan.best[0]
    listed = (
        "every design was listed" if plan.complete else f"searched; none exceeds {plan.bound:.4f}"
    )
    return (
        f"Run {', '.join(best.arms)} with {best.seeds} seeds: {best.gain:.4f} of "
        f"{plan.uncertainty:.4f} nats for {best.cost:g} of {limit.budget:g} {limit.unit} "
        f"({listed})."
    )


def _nothing(state: ResearchState) -> str:
    from outlay.designs.worth import why_nothing

    return f"Nothing to learn: {why_nothing(state)}, so no experiment is worth its cost."


def _priors(plan: Plan) -> Table:
    """Return the best designs under other priors; where all is vain here, none keeps a share."""
    from outlay.designs.worth import NOTHING

    table = _table("if the prior were", "best arms", "seeds", "this design keeps")
    for other in plan.sensitivity:
        if other.best.gain <= NOTHING:
            table.add_row(_joined((other.change,)), "nothing to learn", "-", "-")
            continue
        kept = "-" if plan.nothing_to_learn else f"{100 * other.kept:.1f} %"
        arms, seeds = _joined(other.best.arms), str(other.best.seeds)
        table.add_row(_joined((other.change,)), arms, seeds, kept)
    return table


def _show_assessment(found: Assessment, state: ResearchState) -> list[Any]:
    unit = state.limits[0].unit
    table = _table("reading", "seeds", unit, "affordable", "nats")
    for reading in found.readings:
        option = reading.option
        table.add_row(
            _joined(option.arms),
            str(option.seeds),
            f"{option.cost:g}" if isfinite(option.cost) else "no price",
            "yes" if reading.affordable else "no",
            _nats(option.gain),
        )
    notes = [f"Note: {note}" for note in found.notes]
    if found.nothing_to_learn:
        return [*notes, table, _nothing(state)]
    scores = ", ".join(f"{mode} {100 * score:.1f} %" for mode, score in found.efficiency.items())
    best = (
        f"Best affordable: {', '.join(found.best.arms)} with {found.best.seeds} seeds, "
        f"{found.best.efficiency:.4f} nats per unit of cost"
    )
    lines = [
        *notes,
        table,
        f"Affordable efficiency: {scores}",
        f"Ambiguity index: {found.ambiguity:.3f} ({len(found.readings)} readings)",
        best,
    ]
    if found.gaps is not None:
        lines.append(
            f"Lost information: {found.gaps.target:+.4f} nats to the target, "
            f"{found.gaps.resolution:+.4f} to what the text leaves open or misses"
        )
    return [*lines, *(f"To make it one design: {words}" for words in found.missing)]
