"""Our default against GP-E and one-at-a-time on tables that it was not chosen on."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from outlay.bench.whatworked import default_on, earlier_tables, method_on, trajectory
from outlay.surfaces.cube import FloatArray, edges
from outlay.surfaces.readout import Readout
from outlay.surfaces.scoring import coverage, family_macro, score

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from outlay.surfaces.auto import Auto
    from outlay.surfaces.tables import Table

REPORTED = (
    "breast_diagnostic",
    "concrete",
    "energy_efficiency",
    "wine",
    "sunspots",
    "nile",
    "astronaut",
    "hubble_deep_field",
    "scifact",
    "mitdb_100",
    "mitdb_102",
    "graph_lesmis",
    "graph_football",
)
RIVALS = ("gp-effect", "one-at-a-time")
BUDGETS = {4: (4, 8), 6: (20, 32)}
UNPAIRED = ("beat_detection", "graph_link_prediction")
DRAWS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One condition at one budget.

    Attributes:
        name: Condition.
        family: Workflow family.
        d: Number of factors.
        budget: Purchases.
        recovery: By method; `auto` and the rivals.
        covered: Unmeasured effects inside our 90 % intervals.
        unmeasured: Effects with an unmeasured end.
    """

    name: str
    family: str
    d: int
    budget: int
    recovery: dict[str, float]
    covered: int
    unmeasured: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Conditions that are averaged together at one budget.

    Attributes:
        name: Four-factor, paired six-factor, or beat and graph.
        d: Number of factors.
        budget: Purchases.
        rows: Conditions.
    """

    name: str
    d: int
    budget: int
    rows: tuple[Row, ...]

    def macro(self, method: str) -> float:
        """Family-macro recovery of a method."""
        return family_macro((row.family, row.recovery[method]) for row in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A mean over sources with its 95 % bootstrap interval over sources."""

    mean: float
    low: float
    high: float


def report_rows(tables: Sequence[Table], sources: Iterable[str], *, transfer: bool) -> list[Row]:
    """Return every reported condition at every budget of its size.

    Args:
        tables: All tables; the others are what `transfer` learns from.
        sources: Reported sources.
        transfer: Whether our default learns from the tables of the same workflow over other
            sources.
    """
    wanted = set(sources)
    rows = []
    for table in tables:
        if table.source in wanted and table.d in BUDGETS:
            earlier = earlier_tables(table, tables) if transfer else ()
            rows += _rows(table, earlier)
    return rows


def groups(rows: Sequence[Row]) -> list[Group]:
    """Return the rows grouped as the goals are stated."""
    found = []
    for name in ("four-factor", "paired six-factor", "beat and graph"):
        members = [row for row in rows if _group_name(row) == name]
        for budget in sorted({row.budget for row in members}):
            here = tuple(row for row in members if row.budget == budget)
            found.append(Group(name=name, d=here[0].d, budget=budget, rows=here))
    return found


def _group_name(row: Row) -> str:
    if row.d == 4:
        return "four-factor"
    return "beat and graph" if row.family in UNPAIRED else "paired six-factor"


def gain(rows: Sequence[Row], rival: str, seed: int = 0) -> Interval:
    """Return our mean paired gain in recovery over a rival, resampling sources."""
    return bootstrap(np.array([row.recovery["auto"] - row.recovery[rival] for row in rows]), seed)


def bootstrap(values: FloatArray, seed: int = 0) -> Interval:
    """Return the mean of one value per source with its 95 % percentile interval."""
    rng = np.random.default_rng(seed)
    means = values[rng.integers(0, len(values), (DRAWS, len(values)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(mean=fmean(values), low=float(low), high=float(high))


def effect_intervals(method: Auto, known: dict[int, float]) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper ends of the 90 % intervals of all conditional effects."""
    readout = Readout(
        space=method.given.space,
        beliefs=method.beliefs(known, fading=True),
        exact=known,
        noisy=False,
        seed=method.seed,
    )
    found = readout.effects(edges(method.given.space.d))
    return found.mean - found.width, found.mean + found.width


def _rows(table: Table, earlier: Sequence[Table]) -> list[Row]:
    ours, largest = default_on(table, earlier), max(BUDGETS[table.d])
    bought = list(trajectory(ours, table.truth, largest))
    rivals = {name: method_on(table, name) for name in RIVALS}
    paths = {name: list(trajectory(rivals[name], table.truth, largest)) for name in RIVALS}
    rows = []
    for budget in BUDGETS[table.d]:
        known = bought[budget]
        recovery = {"auto": score(table.truth, ours.predict(known), known).recovery}
        for name, path in paths.items():
            there = path[min(budget, len(path) - 1)]
            found = score(table.truth, rivals[name].predict(there), there)
            recovery[name] = found.recovery
        covered, unmeasured = coverage(table.truth, *effect_intervals(ours, known), known)
        rows.append(
            Row(
                name=table.name,
                family=table.family,
                d=table.d,
                budget=budget,
                recovery=recovery,
                covered=covered,
                unmeasured=unmeasured,
            )
        )
    return rows
