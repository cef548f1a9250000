"""The published controls of WhatWorkedBench, and our default, on complete tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from outlay.surfaces.auto import Auto
from outlay.surfaces.beliefs import Assumptions
from outlay.surfaces.earlier import standardise
from outlay.surfaces.equalities import Gate, Gates
from outlay.surfaces.methods import PUBLISHED, CubeMethod, published_method
from outlay.surfaces.scoring import Score, family_macro, score
from outlay.surfaces.space import Space

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from outlay.surfaces.cube import FloatArray
    from outlay.surfaces.tables import Table

METHODS = (*PUBLISHED, "auto")
RANDOM_ORDERS = 20
BOUNDS = (0.0, 1.0)
PUBLISHED_TOLERANCE = 0.1

# Registered from the workflows' code; factors A to F are 0 to 5.
RULES: dict[str, Gates] = {
    "classification": (),
    "regression": (Gate(2, 0, 4), Gate(1, 0, 5)),
    "clustering": (Gate(2, 0, 4),),
    "forecasting": (),
    "image_restoration": (Gate(1, 0, 4), Gate(0, 0, 5)),
    "retrieval": (Gate(4, 1, 2),),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one method reached on one condition; for `random` the mean of 20 orders.

    `exact` and `strict` count orders out of `orders`.
    """

    name: str
    family: str
    recovery: float
    effect_mae: float
    mean_effect: float
    regret: float
    exact: int
    strict: int
    orders: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """Outcomes by condition, and why each other condition was left out."""

    outcomes: tuple[Outcome, ...]
    left_out: dict[str, str]

    @property
    def macro_recovery(self) -> float:
        """Recovery averaged within families, then over families."""
        return family_macro((outcome.family, outcome.recovery) for outcome in self.outcomes)

    @property
    def macro_regret(self) -> float:
        """Regret averaged within families, then over families."""
        return family_macro((outcome.family, outcome.regret) for outcome in self.outcomes)


def run_controls(
    tables: Iterable[Table],
    method: str,
    budget: int,
    dims: int | None = None,
) -> Controls:
    """Return the outcome of a method after `budget` purchases on every condition that fits.

    Args:
        tables: Complete tables.
        method: One of `METHODS`.
        budget: Purchases beyond the two free anchors.
        dims: Only conditions of this many factors.
    """
    outcomes, left_out = [], {}
    for table in tables:
        reason = _misfit(table, method, budget, dims)
        if reason:
            left_out[table.name] = reason
        else:
            outcomes.append(_outcome(table, method, budget))
    return Controls(outcomes=tuple(outcomes), left_out=left_out)


def rules_of(table: Table) -> Gates:
    """Return the registered equalities of a condition; they concern factors E and F only."""
    return RULES[table.family] if table.d == 6 else ()


def earlier_tables(table: Table, tables: Iterable[Table]) -> list[Table]:
    """Return the tables of the same workflow and factors over other sources."""
    return [
        other
        for other in tables
        if (other.family, other.d) == (table.family, table.d) and other.source != table.source
    ]


def buy(method: CubeMethod, truth: FloatArray, budget: int) -> dict[int, float]:
    """Return the known cells (anchors first) after at most `budget` purchases."""
    return list(trajectory(method, truth, budget))[-1]


def trajectory(method: CubeMethod, truth: FloatArray, budget: int) -> Iterator[dict[int, float]]:
    """Yield the known cells after 0, 1, ... `budget` purchases; fewer if a method stops early."""
    known = {cell: float(truth[cell]) for cell in (0, len(truth) - 1)}
    yield dict(known)
    for _ in range(budget):
        cell = method.next(known)
        if cell is None:
            return
        known[cell] = float(truth[cell])
        yield dict(known)


def _misfit(table: Table, method: str, budget: int, dims: int | None) -> str:
    if dims is not None and table.d != dims:
        return f"{table.d} factors, asked for {dims}"
    if budget > len(table.truth) - 2:
        return f"budget {budget} exceeds the {len(table.truth) - 2} cells that can be bought"
    if method.startswith("code-") and table.d == 6 and table.family not in RULES:
        return f"no equalities are registered for {table.family}"
    return ""


def method_on(
    table: Table, method: str, *, seed: int = 0, earlier: Sequence[Table] = ()
) -> CubeMethod:
    """Return a method of `METHODS` set up for a condition.

    Args:
        table: The condition.
        method: Name.
        seed: Numbers the orders of `random`.
        earlier: Tables of the same workflow that `auto` may learn from.
    """
    if method == "auto":
        return default_on(table, earlier)
    rules = rules_of(table) if method.startswith("code-") else ()
    return published_method(method, table.d, rules=rules, seed=seed, bounds=BOUNDS)


def default_on(table: Table, earlier: Sequence[Table] = ()) -> Auto:
    """Return our default set up for a condition."""
    space = Space(levels=(2,) * table.d)
    learned = standardise(space, [other.truth for other in earlier])
    return Auto(given=Assumptions(space=space, earlier=learned), bounds=BOUNDS)


def _outcome(table: Table, method: str, budget: int) -> Outcome:
    orders = RANDOM_ORDERS if method == "random" else 1
    scores = [_score(table, method_on(table, method, seed=seed), budget) for seed in range(orders)]
    return Outcome(
        name=table.name,
        family=table.family,
        recovery=float(np.mean([s.recovery for s in scores])),
        effect_mae=float(np.mean([s.effect_mae for s in scores])),
        mean_effect=scores[0].mean_effect,
        regret=float(np.mean([s.regret for s in scores])),
        exact=sum(s.exact for s in scores),
        strict=sum(s.strict[PUBLISHED_TOLERANCE] for s in scores),
        orders=len(scores),
    )


def _score(table: Table, method: CubeMethod, budget: int) -> Score:
    known = buy(method, table.truth, budget)
    return score(table.truth, method.predict(known), known)
