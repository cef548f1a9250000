"""Which options break the program: how likely a configuration works, and what is to blame.

Pure. A part is one level, or several levels of different factors, that a configuration contains.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from outlay.surfaces.cube import BoolArray, FloatArray, IntArray
    from outlay.surfaces.space import Space

HOPELESS = 0.2
"""Chance of working below which a configuration is neither bought nor recommended: what failed in
five configurations and never worked will hardly work in the sixth."""

LARGEST_PART = 3
"""Levels at most that are blamed together."""

MOST_CAUSES = 3
"""Parts at most that are blamed side by side."""

Part = tuple[tuple[int, int], ...]
"""Factor and level, by index."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Odds:
    """How likely configurations work, told by which measured ones did.

    A part that s measured configurations contain that worked and k that failed works with
    (s + 1) / (s + k + 1); a configuration works as likely as its least likely level or pair of
    levels. So the chance is exactly 1 everywhere while nothing has failed.

    Attributes:
        space: Factors and levels.
        worked: Distinct cells that gave a value.
        failed: Distinct cells that only ever failed.
        table: Chance of every two levels, shape (all levels, all levels), single ones on the
            diagonal.
    """

    space: Space
    worked: frozenset[int]
    failed: frozenset[int]
    table: FloatArray

    @classmethod
    def of(cls, space: Space, worked: Iterable[int], failed: Iterable[int]) -> Odds:
        """Return the odds after these cells were measured."""
        good, bad = frozenset(worked), frozenset(failed)
        works, breaks = _together(space, good), _together(space, bad)
        table = (works + 1) / (works + breaks + 1)
        return cls(space=space, worked=good, failed=bad, table=table)

    def __call__(self, cells: IntArray) -> FloatArray:
        """Return the chance of each cell: 1 where it worked, 0 where it failed."""
        if not self.failed:
            return np.ones(len(cells))
        place = self.space.rows(cells) + _starts(self.space)
        chance: FloatArray = np.ones(len(cells))
        for i in range(self.space.d):
            chance = np.minimum(chance, self.table[place[:, i, None], place[:, i:]].min(axis=1))
        chance[np.isin(cells, list(self.worked))] = 1.0
        chance[np.isin(cells, list(self.failed))] = 0.0
        return chance

    def usable(self, cells: IntArray) -> IntArray:
        """Return those cells that may well work."""
        return cells[self(cells) >= HOPELESS]


def _starts(space: Space) -> IntArray:
    """Return the number of each factor's first level among all levels."""
    return np.cumsum([0, *space.levels[:-1]])


def _together(space: Space, cells: Iterable[int]) -> FloatArray:
    """Return how many of the cells contain every two levels."""
    rows = space.rows(np.array(sorted(cells), dtype=np.int64)) + _starts(space)
    has = np.zeros((len(rows), sum(space.levels)))
    np.put_along_axis(has, rows, 1.0, axis=1)
    found: FloatArray = has.T @ has
    return found


def explanations(bad: IntArray, good: IntArray) -> list[list[Part]]:
    """Return what explains the failures: parts that every failed row contains and no good one.

    Each explanation is a list of parts, of which every failed row contains one. Where a single
    part explains all, every such part of the smallest size is an explanation of its own.
    Otherwise it is one set of at most three parts that only failed rows contain, each explaining
    at least two failures that those before it leave, found greedily.

    Args:
        bad: Levels of the configurations that failed, shape (k, d), distinct.
        good: Levels of those that worked, shape (s, d).
    """
    if not len(bad):
        return []
    shared = [i for i in range(bad.shape[1]) if (bad[:, i] == bad[0, i]).all()]
    for size in range(1, LARGEST_PART + 1):
        parts = [tuple((i, int(bad[0, i])) for i in at) for at in combinations(shared, size)]
        if found := [[part] for part in parts if not _contain(good, part).any()]:
            return found
    return _covered(bad, good)


def _covered(bad: IntArray, good: IntArray) -> list[list[Part]]:
    left, chosen = bad, list[Part]()
    while len(left) and len(chosen) < MOST_CAUSES:
        part = _most_common(left, good)
        if part is None:
            return []
        chosen.append(part)
        left = left[~_contain(left, part)]
    return [] if len(left) else [chosen]


def _most_common(bad: IntArray, good: IntArray) -> Part | None:
    """Return the part of most failed rows and no good one, of equal ones the smallest."""
    best, most = None, 1
    for size in range(1, LARGEST_PART + 1):
        counts = Counter(
            part for row in bad.tolist() for part in combinations(enumerate(row), size)
        )
        for part, count in counts.most_common():
            if count <= most:
                break
            if not _contain(good, part).any():
                best, most = part, count
                break
    return best


def _contain(rows: IntArray, part: Sequence[tuple[int, int]]) -> BoolArray:
    """Return which rows contain a part."""
    at = [i for i, _ in part]
    found: BoolArray = (rows[:, at] == [level for _, level in part]).all(axis=1)
    return found
