"""Equalities between configurations: factors that change nothing while a gate is closed.

Configurations that differ only in switched-off factors have one value and form a class. Gates are
declared by an author, registered by a benchmark, or found from exact ties.
"""

from __future__ import annotations

from typing import NamedTuple

from outlay.surfaces.cube import FloatArray, IntArray, bits
from outlay.surfaces.space import Space


class Gate(NamedTuple):
    """While factor `guard` is at `level`, factor `inactive` changes nothing (by index).

    A guard of -1 stands for always.
    """

    guard: int
    level: int
    inactive: int


Gates = tuple[Gate, ...]


def effective(rows: IntArray, gates: Gates) -> IntArray:
    """Return rows of levels with every factor that a gate makes inactive at level 0."""
    if not gates:
        return rows
    levels = rows.copy()
    for gate in gates:
        closed = slice(None) if gate.guard < 0 else rows[:, gate.guard] == gate.level
        levels[closed, gate.inactive] = 0
    return levels


def representatives(d: int, gates: Gates) -> IntArray:
    """Return the representative of every cell of the cube, shape (2**d,)."""
    return Space(levels=(2,) * d).cells(effective(bits(d), gates))


def spread_to_classes(
    prediction: FloatArray, known: dict[int, float], representatives: IntArray
) -> FloatArray:
    """Return the prediction with every cell of a measured class at the measured value.

    Args:
        prediction: Values by cell.
        known: Measured value by representative.
        representatives: Representative of every cell.
    """
    completed = prediction.copy()
    for representative, value in known.items():
        completed[representatives == representative] = value
    return completed
