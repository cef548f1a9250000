"""The published methods by name: which cell to buy next, and the table that is predicted.

All start from the two anchors, all-off and all-on. A method is a pair of pure functions of what is
known, so the same object serves the benchmark, the ask/tell loop and a replay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from outlay.errors import InputError
from outlay.surfaces.cube import FloatArray, IntArray, edges
from outlay.surfaces.equalities import Gates, representatives, spread_to_classes
from outlay.surfaces.gaussian import cube_distance, fit_gaussian, next_cell
from outlay.surfaces.ridge import design_order, features, fit_ridge

PUBLISHED = (
    "d1",
    "d2",
    "random",
    "gp-grid",
    "gp-effect",
    "code-d1",
    "code-d2",
    "code-gp-effect",
    "mean",
    "one-at-a-time",
)
RANDOM_SEED = 20260907


class CubeMethod(Protocol):
    """Chooses purchases on the cube of `d` binary factors and predicts all cells.

    `known` maps measured cells to values, in the order of measurement, anchors first.
    """

    def next(self, known: dict[int, float]) -> int | None:
        """Return the cell to buy next, or None when nothing is left that would tell more."""

    def predict(self, known: dict[int, float]) -> FloatArray:
        """Return a value for every cell; known cells have their measured value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ridge:
    """A fixed order of purchases, then a ridge fit on `design` (see `ridge.py`)."""

    order: Sequence[int]
    design: FloatArray
    classes: IntArray
    bounds: tuple[float, float]

    def next(self, known: dict[int, float]) -> int | None:
        """Return the first cell of the order that is not known."""
        return next((cell for cell in self.order if cell not in known), None)

    def predict(self, known: dict[int, float]) -> FloatArray:
        """Return the fit, clipped to the bounds; a prediction is that of its representative."""
        cells = [int(self.classes[cell]) for cell in known]
        values = np.array(list(known.values()))
        prediction = fit_ridge(self.design, cells, values).prediction[self.classes]
        return _complete(prediction, known, self.classes, self.bounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A fixed order of purchases, then the mean of what is known everywhere else."""

    order: Sequence[int]
    classes: IntArray

    def next(self, known: dict[int, float]) -> int | None:
        """Return the first cell of the order that is not known."""
        return next((cell for cell in self.order if cell not in known), None)

    def predict(self, known: dict[int, float]) -> FloatArray:
        """Return the mean at every unmeasured cell."""
        values = list(known.values())
        flat = np.full(len(self.classes), np.mean(values))
        return _complete(flat, known, self.classes, (min(values), max(values)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian:
    """Adaptive purchases and predictions of the published Gaussian process (see `gaussian.py`)."""

    d: int
    target: Literal["grid", "effect"]
    classes: IntArray
    bounds: tuple[float, float]

    def next(self, known: dict[int, float]) -> int | None:
        """Return the unknown representative that lowers the target's total variance most."""
        classes = {int(self.classes[cell]): value for cell, value in known.items()}
        candidates = sorted({int(cell) for cell in self.classes} - set(classes))
        if not candidates:
            return None
        fit = fit_gaussian(self._distance, list(classes), np.array(list(classes.values())))
        return next_cell(fit, candidates, self.target, edges(self.d))

    def predict(self, known: dict[int, float]) -> FloatArray:
        """Return the posterior mean, clipped to the bounds."""
        classes = {int(self.classes[cell]): value for cell, value in known.items()}
        fit = fit_gaussian(self._distance, list(classes), np.array(list(classes.values())))
        return _complete(fit.mean, known, self.classes, self.bounds)

    @property
    def _distance(self) -> IntArray:
        return cube_distance(self.d, self.classes)


def published_method(
    name: str,
    d: int,
    *,
    rules: Gates = (),
    seed: int = 0,
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> CubeMethod:
    """Return a method of the paper.

    Args:
        name: One of `PUBLISHED`.
        d: Number of factors, at least 2.
        rules: Equalities used by the `code-` methods; the others ignore them.
        seed: Number of the order of `random`, 0 to 19 in the paper.
        bounds: Predictions are clipped to these; the benchmark's utilities are in [0, 1].

    Raises:
        InputError: If the name is unknown.
    """
    if name not in PUBLISHED:
        raise InputError(f"method: found {name!r}, allowed: {', '.join(PUBLISHED)}")
    ruled = name.startswith("code-") and bool(rules)
    classes = representatives(d, rules if ruled else ())
    return _BUILDERS[name.removeprefix("code-")](d, classes, seed, bounds, ruled)


Builder = Callable[[int, IntArray, int, tuple[float, float], bool], CubeMethod]


def _ridge(degree: int) -> Builder:
    def build(
        d: int, classes: IntArray, seed: int, bounds: tuple[float, float], ruled: bool
    ) -> CubeMethod:
        order = design_order(d, degree, classes if ruled else None)
        return Ridge(order=order, design=features(d, degree), classes=classes, bounds=bounds)

    return build


def _random(
    d: int, classes: IntArray, seed: int, bounds: tuple[float, float], ruled: bool
) -> CubeMethod:
    generator = np.random.default_rng(RANDOM_SEED + seed)
    order = [int(cell) for cell in generator.permutation(np.arange(1, 2**d - 1))]
    return Ridge(order=order, design=features(d, 2), classes=classes, bounds=bounds)


def _gaussian(target: Literal["grid", "effect"]) -> Builder:
    def build(
        d: int, classes: IntArray, seed: int, bounds: tuple[float, float], ruled: bool
    ) -> CubeMethod:
        return Gaussian(d=d, target=target, classes=classes, bounds=bounds)

    return build


def _mean(
    d: int, classes: IntArray, seed: int, bounds: tuple[float, float], ruled: bool
) -> CubeMethod:
    return Mean(order=design_order(d, 1), classes=classes)


def _one_at_a_time(
    d: int, classes: IntArray, seed: int, bounds: tuple[float, float], ruled: bool
) -> CubeMethod:
    """Return single factors from all-off, then from all-on, read as additive effects (D1 fit)."""
    single = [2 ** (d - 1 - i) for i in range(d)]
    order = single + [2**d - 1 - cell for cell in single]
    return Ridge(order=order, design=features(d, 1), classes=classes, bounds=bounds)


_BUILDERS: dict[str, Builder] = {
    "d1": _ridge(1),
    "d2": _ridge(2),
    "random": _random,
    "gp-grid": _gaussian("grid"),
    "gp-effect": _gaussian("effect"),
    "mean": _mean,
    "one-at-a-time": _one_at_a_time,
}


def _complete(
    prediction: FloatArray,
    known: dict[int, float],
    classes: IntArray,
    bounds: tuple[float, float],
) -> FloatArray:
    measured = {int(classes[cell]): value for cell, value in known.items()}
    return spread_to_classes(np.clip(prediction, *bounds), measured, classes)
