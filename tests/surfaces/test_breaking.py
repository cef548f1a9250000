from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from outlay.surfaces.breaking import HOPELESS, Odds, explanations
from outlay.surfaces.space import Space

SPACE = Space(levels=(2, 3, 2))
EVERY = np.arange(SPACE.size)


def test_everything_works_until_something_fails():
    assert (Odds.of(SPACE, [0, 5], [])(EVERY) == 1).all()


def test_the_chance_is_that_of_the_least_likely_level_or_pair():
    worked = SPACE.cells(np.array([[0, 0, 0], [0, 2, 0]]))
    failed = SPACE.cells(np.array([[1, 2, 0], [1, 1, 0]]))
    odds = Odds.of(SPACE, worked.tolist(), failed.tolist())
    rows = np.array([[0, 1, 1], [1, 0, 1], [0, 2, 1], [0, 0, 0], [1, 2, 0]])
    # Level 1 of the second factor failed once, of the first twice; (x, 2, x) did both.
    assert odds(SPACE.cells(rows)) == pytest.approx([1 / 2, 1 / 3, 2 / 3, 1, 0])
    for cell in set(EVERY.tolist()) - {*worked.tolist(), *failed.tolist()}:
        row = SPACE.rows(np.array([cell]))[0]
        chances = []
        for at in [*product(range(3), repeat=2)]:
            part = list(at)
            s, k = (
                sum((SPACE.rows(np.array([c]))[0, part] == row[part]).all() for c in cells)
                for cells in (worked, failed)
            )
            chances.append((s + 1) / (s + k + 1))
        assert odds(np.array([cell]))[0] == pytest.approx(min(chances))


def test_what_failed_in_five_configurations_is_not_usable():
    rows = np.array([row for row in product(*map(range, SPACE.levels)) if row[0] == 1])
    failed = SPACE.cells(rows).tolist()
    assert len(Odds.of(SPACE, [0], failed[:4]).usable(EVERY)) == SPACE.size - 4
    assert (SPACE.rows(Odds.of(SPACE, [0], failed[:5]).usable(EVERY))[:, 0] == 0).all()
    assert HOPELESS > 1 / 6


def split(breaks, d=5):
    rows = np.array(list(product((0, 1), repeat=d)))
    bad = np.array([breaks(*row) for row in rows], dtype=bool)
    return rows[bad], rows[~bad]


@pytest.mark.parametrize(
    ("breaks", "found"),
    [
        (lambda a, b, c, d, e: False, []),
        (lambda a, b, c, d, e: a, [[((0, 1),)]]),
        (lambda a, b, c, d, e: a and not b, [[((0, 1), (1, 0))]]),
        (lambda a, b, c, d, e: a and b and c, [[((0, 1), (1, 1), (2, 1))]]),
        (lambda a, b, c, d, e: a or (b and c), [[((0, 1),), ((1, 1), (2, 1))]]),
        (lambda a, b, c, d, e: (a + b + c + d + e) % 2, []),
    ],
)
def test_failures_are_explained_by_what_no_working_row_contains(breaks, found):
    assert explanations(*split(breaks)) == found


def test_a_single_failure_has_every_explanation_of_the_smallest_size():
    bad, good = np.array([[1, 1, 1]]), np.array([[0, 0, 0], [1, 0, 0]])
    assert explanations(bad, good) == [[((1, 1),)], [((2, 1),)]]
