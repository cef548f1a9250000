"""`outlay bench whatworked`: the published controls, our default beside them, and studies."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from outlay.bench.whatworked import METHODS, Controls, run_controls
from outlay.surfaces.tables import load_tables

TABLES = click.option(
    "--tables",
    required=True,
    type=click.Path(exists=True, path_type=Path),
    help="File or folder with complete truth tables (JSON).",
)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")


@click.group()
def command() -> None:
    """Predict whole response surfaces from a few measurements, on complete tables."""


@command.command()
@TABLES
@click.option("--method", required=True, type=click.Choice(METHODS), help="What to run.")
@click.option("--budget", required=True, type=click.IntRange(min=0), help="Purchases.")
@click.option("--dims", type=click.Choice(["4", "6"]), help="Only conditions of so many factors.")
@AS_JSON
def controls(tables: Path, method: str, budget: int, dims: str | None, as_json: bool) -> None:
    """Run one method at one budget on every condition that the budget fits."""
    found = run_controls(load_tables(tables), method, budget, int(dims) if dims else None)
    if as_json:
        click.echo(json.dumps(_controls_json(found, method, budget), indent=2))
        return
    for outcome in found.outcomes:
        click.echo(
            f"{outcome.name:24} recovery {outcome.recovery:.3f}  regret {outcome.regret:.4f}  "
            f"exact {outcome.exact}/{outcome.orders}  strict {outcome.strict}/{outcome.orders}"
        )
    for name, reason in found.left_out.items():
        click.echo(f"{name:24} left out: {reason}", err=True)
    if found.outcomes:
        click.echo(
            f"family macro: recovery {found.macro_recovery:.4f}  regret {found.macro_regret:.4f}"
        )


def _controls_json(found: Controls, method: str, budget: int) -> dict[str, Any]:
    conditions = {}
    for outcome in found.outcomes:
        entry = asdict(outcome)
        name, orders = entry.pop("name"), entry.pop("orders")
        if orders == 1:
            entry |= {"exact": bool(outcome.exact), "strict": bool(outcome.strict)}
        conditions[name] = entry
    macro: dict[str, float | None] = {"recovery": None, "regret": None}
    if found.outcomes:
        macro = {"recovery": found.macro_recovery, "regret": found.macro_regret}
    return {
        "method": method,
        "budget": budget,
        "conditions": conditions,
        "family_macro": macro,
        "left_out": found.left_out,
    }


if __name__ == "__main__":
    command()
