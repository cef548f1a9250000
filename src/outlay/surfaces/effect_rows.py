"""Effects and interactions as rows of plain values, ready for a table."""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outlay.surfaces.cube import IntArray
    from outlay.surfaces.factors import Factors
    from outlay.surfaces.readout import Readout
    from outlay.surfaces.space import Space

Row = dict[str, Any]

CONDITIONAL = ("factor", "level", "effect", "effect_low", "effect_high", "measured")
"""Columns of conditional effects beside the factors'."""


def average_effects(factors: Factors, readout: Readout, base: IntArray) -> list[Row]:
    """Return each level's effect against its factor's default, averaged over the `base` cells."""
    rows = []
    for i, factor in enumerate(factors.all):
        off = _with_levels(factors.space, base, {i: 0})
        for level in range(1, len(factor.levels)):
            on = _with_levels(factors.space, base, {i: level})
            mean, width = readout.weighted_sum([(1.0, on), (-1.0, off)])
            rows.append(_effect(factors, i, level, mean, width))
    return rows


def conditional_effects(factors: Factors, readout: Readout, cells: IntArray) -> list[Row]:
    """Return each level's effect in every background among `cells`, with that background."""
    pairs = factors.space.effects_at(cells)
    found = readout.effects(pairs)
    levels = factors.space.rows(pairs.high)
    columns = factors.columns(CONDITIONAL)
    rows = []
    for k, factor in enumerate(pairs.factor.tolist()):
        background: Row = dict(factors.config(int(pairs.low[k])))
        background[factors.names[factor]] = ""
        row = _effect(factors, factor, levels[k, factor], found.mean[k], found.width[k])
        row["measured"] = bool(found.measured[k])
        rows.append(row | {columns[name]: level for name, level in background.items()})
    return rows


def interactions(factors: Factors, readout: Readout, base: IntArray) -> list[Row]:
    """Return the mean second difference of every two levels of two factors over `base` cells."""
    space, rows = factors.space, []
    for i, j in combinations(range(space.d), 2):
        for a, b in product(range(1, space.levels[i]), range(1, space.levels[j])):
            corners = ((1.0, a, b), (-1.0, a, 0), (-1.0, 0, b), (1.0, 0, 0))
            parts = [(sign, _with_levels(space, base, {i: x, j: y})) for sign, x, y in corners]
            mean, width = readout.weighted_sum(parts)
            first, second = factors.all[i], factors.all[j]
            row = {
                "first": first.name,
                "first_level": first.levels[a],
                "second": second.name,
                "second_level": second.levels[b],
                "interaction": mean,
                "low": mean - width,
                "high": mean + width,
            }
            rows.append(row)
    return rows


def _effect(factors: Factors, factor: int, level: int, mean: float, width: float) -> Row:
    entry = factors.all[factor]
    return {
        "factor": entry.name,
        "level": entry.levels[level],
        "effect": float(mean),
        "effect_low": float(mean - width),
        "effect_high": float(mean + width),
    }


def _with_levels(space: Space, cells: IntArray, levels: dict[int, int]) -> IntArray:
    rows = space.rows(cells)
    for factor, level in levels.items():
        rows[:, factor] = level
    return space.cells(rows)
