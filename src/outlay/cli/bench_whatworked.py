"""`outlay bench whatworked`: the published controls, our default beside them, and studies."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outlay.bench.whatworked import METHODS
from outlay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlay.bench.whatworked import Controls
    from outlay.bench.whatworked_report import Group, Interval, Row
    from outlay.surfaces.tables import Table

TABLES = click.option(
    "--tables",
    required=True,
    type=click.Path(path_type=Path),
    help="File or folder with complete truth tables (JSON).",
)
DIMS = click.option(
    "--dims", type=click.Choice(["4", "6"]), help="Only conditions of so many factors."
)
SOURCES = click.option(
    "--source",
    "sources",
    multiple=True,
    help="Source to report, or `all`; default: those that no constant was chosen on.",
)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")


@click.group()
def command() -> None:
    """Predict whole response surfaces from a few measurements, on complete tables."""


@command.command()
@TABLES
@click.option("--method", required=True, type=click.Choice(METHODS), help="What to run.")
@click.option("--budget", required=True, type=click.IntRange(min=0), help="Purchases.")
@DIMS
@AS_JSON
def controls(tables: Path, method: str, budget: int, dims: str | None, as_json: bool) -> None:
    """Run one method at one budget on every condition that the budget fits."""
    from outlay.bench.whatworked import run_controls
    from outlay.surfaces.tables import load_tables

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


@command.command()
@TABLES
@SOURCES
@click.option("--transfer", is_flag=True, help="Learn from tables of the same workflow first.")
@AS_JSON
def report(tables: Path, sources: tuple[str, ...], transfer: bool, as_json: bool) -> None:
    """Compare the default with GP-E and one-at-a-time, with intervals and coverage."""
    from outlay.bench.whatworked_report import groups, report_rows
    from outlay.surfaces.tables import load_tables

    wanted = {table.source for table in _reported(tables, sources)}
    rows = report_rows(load_tables(tables), wanted, transfer=transfer)
    if as_json:
        content = {
            "transfer": transfer,
            "rows": [asdict(row) for row in rows],
            "groups": [_group_json(group) for group in groups(rows)],
            "sizes": [_size_json(d, budget, here) for d, budget, here in _by_size(rows)],
        }
        click.echo(json.dumps(content, indent=2))
        return
    _print_report(rows, groups(rows))


@command.command()
@TABLES
@SOURCES
@click.option("--budget", default=8, show_default=True, type=click.IntRange(min=1))
@click.option("--seeds", default=50, show_default=True, type=click.IntRange(min=1))
@click.option(
    "--noise", "shares", multiple=True, type=click.FloatRange(min=0), default=(0.05, 0.2)
)
@click.option("--dims", default="4", show_default=True, type=click.Choice(["4", "6"]))
@AS_JSON
def noise(
    tables: Path,
    sources: tuple[str, ...],
    budget: int,
    seeds: int,
    shares: tuple[float, ...],
    dims: str,
    as_json: bool,
) -> None:
    """Compare the default with GP-E when measurements are noisy; repeats count."""
    from outlay.bench.whatworked_noise import noise_gain, noise_rows

    wanted = [table for table in _reported(tables, sources) if table.d == int(dims)]
    rows = noise_rows(wanted, budget, shares, seeds)
    gains = {share: noise_gain([row for row in rows if row.share == share]) for share in shares}
    if as_json:
        content = {
            "budget": budget,
            "seeds": seeds,
            "rows": [asdict(row) for row in rows],
            "gain": {str(share): asdict(gain) for share, gain in gains.items()},
        }
        click.echo(json.dumps(content, indent=2))
        return
    for row in rows:
        click.echo(
            f"{row.name:24} noise {row.share:4.0%}  default {row.ours:.3f}  gp-effect "
            f"{row.rival:.3f}  repeats bought {row.repeats:.1f}"
        )
    for share, gain in gains.items():
        click.echo(f"noise {share:.0%}: gain over gp-effect {_shown(gain)}, {seeds} seeds")


@command.command()
@TABLES
@SOURCES
@DIMS
@click.option("--plot", type=click.Path(path_type=Path), help="Picture to write (PNG or SVG).")
@AS_JSON
def peers(
    tables: Path, sources: tuple[str, ...], dims: str | None, plot: Path | None, as_json: bool
) -> None:
    """Print the smallest budget from which recovery stays at 0.7 or above."""
    from outlay.bench.whatworked_peers import PEERS, peer_curves, plot_peers

    wanted = [t for t in _reported(tables, sources) if dims is None or t.d == int(dims)]
    curves = peer_curves(wanted)
    if plot is not None:
        plot_peers(curves).savefig(plot, dpi=120)
    needed = {table.name: {"full factorial": len(table.truth) - 2} for table in wanted}
    found: dict[str, dict[str, int | None]] = {name: dict(entry) for name, entry in needed.items()}
    for curve in curves:
        found[curve.name][curve.method] = curve.needed
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    click.echo(f"{'condition':24}" + "".join(f"{m:>16}" for m in (*PEERS, "full factorial")))
    for name, entry in found.items():
        shown = ["not reached" if entry[m] is None else str(entry[m]) for m in entry]
        order = dict(zip(entry, shown, strict=True))
        click.echo(f"{name:24}" + "".join(f"{order[m]:>16}" for m in (*PEERS, "full factorial")))


def _reported(path: Path, sources: Sequence[str]) -> list[Table]:
    from outlay.bench.whatworked_report import REPORTED
    from outlay.surfaces.tables import load_tables

    everything = load_tables(path)
    named = {table.source for table in everything} if "all" in sources else sources or REPORTED
    wanted = [table for table in everything if table.source in named]
    if not wanted:
        raise InputError(f"{path}: found none of the sources to report; name some with --source")
    return wanted


def _print_report(rows: Sequence[Row], found: Sequence[Group]) -> None:
    from outlay.bench.whatworked_report import RIVALS, gain

    methods = ("auto", *RIVALS)
    click.echo(
        f"{'condition':24}{'budget':>7}" + "".join(f"{m:>15}" for m in methods) + "  inside"
    )
    for row in rows:
        ahead = [rival for rival in RIVALS if row.recovery[rival] > row.recovery["auto"]]
        loses = f"  behind {', '.join(ahead)}" if ahead else ""
        values = "".join(f"{row.recovery[m]:15.3f}" for m in methods)
        click.echo(f"{row.name:24}{row.budget:7}{values}{row.covered:5}/{row.unmeasured}{loses}")
    for group in found:
        values = "".join(f"{group.macro(m):15.3f}" for m in methods)
        click.echo(f"{'macro ' + group.name:24}{group.budget:7}{values}")
        click.echo(f"{'':24}gain over gp-effect {_shown(gain(group.rows, 'gp-effect'))}")
    for d, budget, here in _by_size(rows):
        size = _size_json(d, budget, here)
        click.echo(
            f"{d} factors, budget {budget}: gain over gp-effect "
            f"{_shown(gain(here, 'gp-effect'))}; 90 % intervals cover {size['coverage']:.3f}, "
            f"least {size['least_coverage']:.2f} ({size['least_covered']})"
        )


def _by_size(rows: Sequence[Row]) -> list[tuple[int, int, list[Row]]]:
    keys = sorted({(row.d, row.budget) for row in rows})
    return [(*key, [row for row in rows if (row.d, row.budget) == key]) for key in keys]


def _size_json(d: int, budget: int, rows: Sequence[Row]) -> dict[str, Any]:
    from outlay.bench.whatworked_report import RIVALS, gain

    least = min(rows, key=lambda row: row.covered / row.unmeasured)
    return {
        "d": d,
        "budget": budget,
        "gain": {rival: asdict(gain(rows, rival)) for rival in RIVALS},
        "coverage": sum(row.covered for row in rows) / sum(row.unmeasured for row in rows),
        "least_coverage": least.covered / least.unmeasured,
        "least_covered": least.name,
    }


def _group_json(group: Group) -> dict[str, Any]:
    from outlay.bench.whatworked_report import RIVALS, gain

    return {
        "name": group.name,
        "d": group.d,
        "budget": group.budget,
        "macro_recovery": {method: group.macro(method) for method in ("auto", *RIVALS)},
        "gain": {rival: asdict(gain(group.rows, rival)) for rival in RIVALS},
    }


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


def _shown(found: Interval) -> str:
    return f"{found.mean:+.3f} (95 % {found.low:+.3f} to {found.high:+.3f})"


if __name__ == "__main__":
    command()
