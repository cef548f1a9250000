"""What `outlay design` prints for people: tables and sentences."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from outlay.designs.assessment import Assessment
    from outlay.designs.planning import Option, Plan
    from outlay.designs.states import ResearchState


def show_plan(plan: Plan) -> list[Any]:
    """Return the answer, the best designs, the frontier, and what the answer depends on."""
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


def show_assessment(found: Assessment, state: ResearchState) -> list[Any]:
    """Return the readings of a text, its scores, and what to add to it."""
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


def show_update(data: dict[str, Any], target: Path | None) -> list[Any]:
    """Return the beliefs before and after, what is left of the budgets, and what was written."""
    table = _table("hypothesis", "before", "after")
    for row in data["posterior"]:
        table.add_row(_joined((row["name"],)), f"{row['prior']:.3f}", f"{row['posterior']:.3f}")
    wrote = "these beliefs, the outcome as an observation, and what is left"
    saved = [] if target is None else [f"Wrote {target}: {wrote}."]
    return [table, *map(_spent_line, data["budgets"]), *saved]


def _spent_line(spent: dict[str, Any]) -> str:
    unit, before, cost = spent["unit"], spent["before"], spent["cost"]
    if cost is None:
        return f"Budget: the design has no price in {unit}; {before:g} are left as before."
    over = f"; {cost - before:g} more than there was" if cost > before else ""
    return f"Budget: {spent['left']:g} of {before:g} {unit} left, the design cost {cost:g}{over}."


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
