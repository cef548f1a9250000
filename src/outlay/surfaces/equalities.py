"""Equalities between configurations that code or its author declares.

A rule says that a factor changes nothing while another one is at a given level: cells that differ
only in switched-off factors then have one value, and form a class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from outlay.surfaces.cube import FloatArray, IntArray, bits

if TYPE_CHECKING:
    from collections.abc import Sequence


class Rule(NamedTuple):
    """While factor `guard` is at `level`, factor `inactive` changes nothing (by index)."""

    guard: int
    level: int
    inactive: int


def representatives(d: int, rules: Sequence[Rule]) -> IntArray:
    """Return the representative of every cell: all inactive factors at level 0, shape (2**d,)."""
    levels = bits(d).copy()
    for rule in rules:
        levels[bits(d)[:, rule.guard] == rule.level, rule.inactive] = 0
    return levels @ (2 ** np.arange(d - 1, -1, -1))


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
