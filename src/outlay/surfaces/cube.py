"""The cube of all configurations of `d` binary factors: masks, conditional effects, interactions.

A mask is a string of `d` characters 0 or 1; the first character is factor 0. A cell is the mask
read as a binary number, so factor 0 is the most significant bit and cells run from all-off (0) to
all-on (`2**d - 1`). Arrays over the cube are indexed by cell.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class Edges(NamedTuple):
    """Every conditional effect of the cube: factor `factor[k]` in the background `low[k]`.

    Attributes:
        low: Cell with the factor off, shape (d * 2**(d-1),).
        high: The same cell with the factor on.
        factor: Index of the factor.
    """

    low: IntArray
    high: IntArray
    factor: IntArray


@lru_cache
def bits(d: int) -> IntArray:
    """Return the level of every factor in every cell, shape (2**d, d), read-only."""
    cells = np.arange(2**d)[:, None]
    table: IntArray = (cells >> np.arange(d - 1, -1, -1)) & 1
    table.setflags(write=False)
    return table


@lru_cache
def edges(d: int) -> Edges:
    """Return all conditional effects, factor by factor, backgrounds in rising order."""
    low, high, factor = [], [], []
    for i in range(d):
        off = np.flatnonzero(bits(d)[:, i] == 0)
        low.append(off)
        high.append(off + 2 ** (d - 1 - i))
        factor.append(np.full(len(off), i))
    return Edges(np.concatenate(low), np.concatenate(high), np.concatenate(factor))


@lru_cache
def hamming(d: int) -> IntArray:
    """Return the number of factors in which two cells differ, shape (2**d, 2**d), read-only."""
    distance: IntArray = (bits(d)[:, None, :] != bits(d)[None, :, :]).sum(axis=2)
    distance.setflags(write=False)
    return distance


def mask_of(cell: int, d: int) -> str:
    """Return the mask of a cell, such as `"0101"` for cell 5 of four factors."""
    return format(cell, f"0{d}b")


def cell_of(mask: str) -> int:
    """Return the cell of a mask."""
    return int(mask, 2)


def dimension(values: FloatArray) -> int:
    """Return `d` of an array over the cube."""
    return len(values).bit_length() - 1


def conditional_effects(values: FloatArray) -> FloatArray:
    """Return the change of `values` when a factor is switched on, in the order of `edges(d)`.

    Section 3 of WhatWorkedBench: `Delta_i(z) = u(z + e_i) - u(z)`.
    """
    pairs = edges(dimension(values))
    return values[pairs.high] - values[pairs.low]


def pair_interactions(values: FloatArray) -> FloatArray:
    """Return the mean second difference of every pair of factors, shape (d (d-1) / 2,).

    `u(11) - u(10) - u(01) + u(00)` averaged over the backgrounds of the other factors, pairs in
    the order of `itertools.combinations`.
    """
    d = dimension(values)
    grid = values.reshape((2,) * d)
    found = []
    for i, j in combinations(range(d), 2):
        corners = np.moveaxis(grid, (i, j), (0, 1)).reshape(2, 2, -1)
        found.append(corners[1, 1] - corners[1, 0] - corners[0, 1] + corners[0, 0])
    return np.array([np.mean(values) for values in found])


def best_cell(values: FloatArray) -> int:
    """Return the cell of the largest value; ties go to fewer options on, then the lower cell."""
    tied = np.flatnonzero(values == values.max())
    switched_on = bits(dimension(values))[tied].sum(axis=1)
    return int(tied[np.argmin(switched_on)])
