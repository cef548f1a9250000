"""How well a predicted response surface agrees with the true one (WhatWorkedBench, section 3)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING

import numpy as np

from outlay.errors import InputError
from outlay.surfaces.cube import (
    BoolArray,
    FloatArray,
    IntArray,
    best_cell,
    conditional_effects,
    edges,
    mask_of,
    pair_interactions,
)
from outlay.surfaces.cube import dimension as cube_dimension

if TYPE_CHECKING:
    from collections.abc import Iterable

TOLERANCES = (0.01, 0.02, 0.05, 0.1, 0.2)
FLAT = 1e-12
NEAR_OPTIMAL = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The agreement of one predicted table with the truth, in units of the metric.

    Attributes:
        effect_mae: Mean absolute error of the conditional effects (E).
        mean_effect: Mean absolute true conditional effect (A).
        recovery: `max(0, 1 - E / A)`; of a flat table 1 if E is 0, else 0.
        interaction_mae: Mean absolute error of the mean pair interactions.
        grid_mae: Mean absolute error over all cells.
        selected: Mask of the predicted best configuration.
        regret: True optimum minus the true value of `selected`.
        strict: For each of `TOLERANCES`, whether every conditional effect is within that share
            of the true range.
    """

    effect_mae: float
    mean_effect: float
    recovery: float
    interaction_mae: float
    grid_mae: float
    selected: str
    regret: float
    strict: dict[float, bool]

    @property
    def exact(self) -> bool:
        """Whether the selected configuration is a true optimum."""
        return self.regret <= FLAT

    @property
    def near(self) -> bool:
        """Whether the selected configuration is within 0.02 of the optimum."""
        return self.regret <= NEAR_OPTIMAL


def score(truth: FloatArray, prediction: FloatArray, observed: Iterable[int] = ()) -> Score:
    """Return the score of `prediction` against `truth`, both indexed by cell.

    Observed cells count with their true value. Leave `observed` empty under noise, where a
    measured value is not the truth.

    Raises:
        InputError: If the shapes differ, or the prediction is not finite.
    """
    if truth.shape != prediction.shape:
        raise InputError(f"prediction: found shape {prediction.shape}, allowed: {truth.shape}")
    if not np.isfinite(prediction).all():
        cell = int(np.flatnonzero(~np.isfinite(prediction))[0])
        mask = mask_of(cell, cube_dimension(truth))
        raise InputError(f"prediction: {mask}: found {prediction[cell]}, allowed: finite numbers")
    completed = prediction.copy()
    known = list(observed)
    completed[known] = truth[known]
    wrong = np.abs(conditional_effects(completed) - conditional_effects(truth))
    error, size = _mean(wrong), _mean(np.abs(conditional_effects(truth)))
    selected = best_cell(completed)
    spread = float(truth.max() - truth.min())
    return Score(
        effect_mae=error,
        mean_effect=size,
        recovery=recovery(error, size),
        interaction_mae=_mean(np.abs(pair_interactions(completed) - pair_interactions(truth))),
        grid_mae=_mean(np.abs(completed - truth)),
        selected=mask_of(selected, cube_dimension(truth)),
        regret=float(truth.max() - truth[selected]),
        strict={tau: bool(wrong.max() <= max(FLAT, tau * spread)) for tau in TOLERANCES},
    )


def recovery(effect_mae: float, mean_effect: float) -> float:
    """Return `max(0, 1 - E / A)`; where A is 0 up to rounding, 1 if E is too, else 0."""
    if mean_effect > FLAT:
        return max(0.0, 1.0 - effect_mae / mean_effect)
    return 1.0 if effect_mae <= FLAT else 0.0


def coverage(
    truth: FloatArray, low: FloatArray, high: FloatArray, observed: Iterable[int] = ()
) -> tuple[int, int]:
    """Return how many unmeasured conditional effects lie in their intervals, and how many exist.

    An effect is unmeasured when at least one of its two cells is not in `observed`.

    Args:
        truth: True values by cell.
        low: Lower ends of the intervals of the effects, in the order of `cube.edges`.
        high: Upper ends.
        observed: Measured cells.
    """
    pairs = edges(cube_dimension(truth))
    unmeasured = ~(_member(pairs.low, observed) & _member(pairs.high, observed))
    effect = conditional_effects(truth)
    inside = (low - FLAT <= effect) & (effect <= high + FLAT)
    return int((inside & unmeasured).sum()), int(unmeasured.sum())


def family_macro(values: Iterable[tuple[str, float]]) -> float:
    """Return the mean over families of the mean within each family of (family, value) pairs."""
    by_family: dict[str, list[float]] = defaultdict(list)
    for family, value in values:
        by_family[family].append(value)
    return _mean([_mean(members) for members in by_family.values()])


def _mean(values: FloatArray | list[float]) -> float:
    return fsum(values) / len(values)


def _member(cells: IntArray, observed: Iterable[int]) -> BoolArray:
    return np.isin(cells, np.fromiter(observed, dtype=np.int64))
