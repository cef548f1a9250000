"""The space of all configurations of factors with two or more levels each."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from outlay.surfaces.cube import Edges, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """All combinations of `levels[i]` levels of factor i; level 0 is the default.

    A configuration is a row of levels, or a cell: the row read as a number of mixed base, factor 0
    most significant, so that with two levels everywhere it is the cell of `cube.py`.
    """

    levels: tuple[int, ...]

    @property
    def d(self) -> int:
        """Number of factors."""
        return len(self.levels)

    @property
    def size(self) -> int:
        """Number of configurations."""
        return prod(self.levels)

    @property
    def anchors(self) -> tuple[int, int]:
        """The cell with every factor at its first level, and that with every one at its last."""
        return 0, self.size - 1

    def rows(self, cells: IntArray) -> IntArray:
        """Return the level of every factor in each cell, shape (len(cells), d)."""
        found: IntArray = cells[:, None] // self._weights % np.array(self.levels)
        return found

    def cells(self, rows: IntArray) -> IntArray:
        """Return the cell of each row of levels, shape (len(rows),)."""
        return rows @ self._weights

    def effects_at(self, backgrounds: IntArray) -> Edges:
        """Return every effect against the default level in the given cells.

        Backgrounds that differ only in the factor that is changed count once.
        """
        low, high, factor = [], [], []
        for i, count in enumerate(self.levels):
            step = self._weights[i]
            off = np.unique(backgrounds - backgrounds // step % count * step)
            for level in range(1, count):
                low.append(off)
                high.append(off + level * step)
                factor.append(np.full(len(off), i))
        return Edges(np.concatenate(low), np.concatenate(high), np.concatenate(factor))

    @property
    def _weights(self) -> IntArray:
        return np.array([prod(self.levels[i + 1 :]) for i in range(self.d)], dtype=np.int64)
