"""Objectives that are harder than the published one.

Higher is better, and the optimum has value 0. Noise is Gaussian and decided by a hash of seed and
point, so that all variants of a search see the same draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist

from outlay.bench.coordination.objective import SIGNS, Point, stepped, unit_draw

STEP = 0.5
GOAL = 6.0
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True, kw_only=True)
class Terrain:
    """A bowl on a lattice, with what makes it hard.

    Attributes:
        start: Where the search begins.
        optimum: Where the value is 0.
        weights: Importance of each axis.
        ripple: Amplitude of the ripples of the published objective.
        angle: Radians by which neighbouring axes (0 and 1, 2 and 3, ...) are turned into each
            other; any but 0 makes them interact.
        plateau: Height of a terrace; 0 for a smooth slope.
        sd: Standard deviation of the noise at the optimum.
        sd_slope: Growth of it for each step from the optimum to the positive side.
        moves_at: Experiment at which the optimum moves by `shift` on every axis; `None` is never.
        shift: How far.
    """

    start: Point
    optimum: Point
    weights: Point
    ripple: float = 0.0
    angle: float = 0.0
    plateau: float = 0.0
    sd: float = 0.15
    sd_slope: float = 0.0
    moves_at: int | None = None
    shift: float = 0.0
    directions: tuple[str, ...] = SIGNS

    def clean(self, point: Point, time: int = 0) -> float:
        """Return the noise-free value."""
        moved = self.shift if self.moves_at is not None and time >= self.moves_at else 0.0
        offset = [x - best - moved for x, best in zip(point, self.optimum, strict=True)]
        if self.angle:
            offset = _turned(offset, self.angle)
        depth = sum(w * g * g for w, g in zip(self.weights, offset, strict=True))
        if self.ripple:
            depth += self.ripple * _ripples(self.weights, offset)
        if self.plateau:
            depth = math.ceil(depth / self.plateau - 1e-9) * self.plateau
        return 0.0 - depth

    def observe(self, point: Point, seed: int, time: int = 0) -> float:
        """Return the value plus Gaussian noise."""
        sd = self.sd
        if self.sd_slope:
            beyond = (x - best for x, best in zip(point, self.optimum, strict=True))
            sd += self.sd_slope * sum(max(0.0, x / STEP) for x in beyond)
        return self.clean(point, time) + sd * _gaussian(point, seed)

    def moved(self, point: Point, axis: int, direction: str) -> Point:
        """Return the point a step further along an axis."""
        return stepped(point, axis, STEP if direction == "+" else -STEP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """Axes with unordered options, main effects, and interactions of neighbouring axes.

    Attributes:
        main: Effect of each option of each axis.
        pairs: Effect of each pair of options of axis i and axis i + 1.
        best: Highest sum of effects, which becomes 0.
        sd: Standard deviation of the noise.
    """

    start: Point
    directions: tuple[str, ...]
    main: tuple[tuple[float, ...], ...]
    pairs: tuple[tuple[tuple[float, ...], ...], ...]
    best: float
    sd: float

    def clean(self, point: Point, time: int = 0) -> float:
        """Return the sum of the effects, less that of the best point."""
        return _effects(self.main, self.pairs, tuple(int(x) for x in point)) - self.best

    def observe(self, point: Point, seed: int, time: int = 0) -> float:
        """Return the value plus Gaussian noise."""
        return self.clean(point) + self.sd * _gaussian(point, seed)

    def moved(self, point: Point, axis: int, direction: str) -> Point:
        """Return the point with an axis set to an option."""
        return (*point[:axis], float(direction), *point[axis + 1 :])


@dataclass(frozen=True, slots=True, kw_only=True)
class Drifting:
    """Pairs of axes: the best rate drifts slowly while the size grows towards its goal.

    With sizes s from 0 to `GOAL` and rates r, the depth of a pair is
    `slope (GOAL - s) + stiffness (r - s / (2 GOAL))^2` within the range; the optimum is at
    s = GOAL, r = 0.5. A rate of 0.5 pays only from s = GOAL / 2 on.

    Attributes:
        sizes: Place of each pair's size axis; the next one (cyclically) is its rate.
        signs: Which way each axis has to go, +1 or -1.
        slope: Gain of a unit of size.
        stiffness: Loss of a squared unit off the best rate.
        sd: Standard deviation of the noise.
    """

    start: Point
    sizes: tuple[int, ...]
    signs: Point
    slope: float = 0.8
    stiffness: float = 10.0
    sd: float = 0.1
    directions: tuple[str, ...] = SIGNS

    def clean(self, point: Point, time: int = 0) -> float:
        """Return the noise-free value."""
        value = 0.0
        for place in self.sizes:
            rate_place = (place + 1) % len(point)
            size, rate = (
                point[place] * self.signs[place],
                point[rate_place] * self.signs[rate_place],
            )
            value -= self.slope * abs(GOAL - size)
            value -= self.stiffness * (rate - size / (2 * GOAL)) ** 2
        return value

    def observe(self, point: Point, seed: int, time: int = 0) -> float:
        """Return the value plus Gaussian noise."""
        return self.clean(point) + self.sd * _gaussian(point, seed)

    def moved(self, point: Point, axis: int, direction: str) -> Point:
        """Return the point a step further along an axis."""
        return stepped(point, axis, STEP if direction == "+" else -STEP)


def _ripples(weights: Point, offset: list[float]) -> float:
    return sum(
        w * (1.0 - math.cos(2.0 * math.pi * g)) for w, g in zip(weights, offset, strict=True)
    )


def _turned(offset: list[float], angle: float) -> list[float]:
    cosine, sine = math.cos(angle), math.sin(angle)
    turned = list(offset)
    for i in range(0, len(offset) - 1, 2):
        turned[i] = cosine * offset[i] - sine * offset[i + 1]
        turned[i + 1] = sine * offset[i] + cosine * offset[i + 1]
    return turned


def _gaussian(point: Point, seed: int) -> float:
    return _NORMAL.inv_cdf(max(unit_draw(point, seed), 1e-15))


def _effects(
    main: tuple[tuple[float, ...], ...],
    pairs: tuple[tuple[tuple[float, ...], ...], ...],
    options: tuple[int, ...],
) -> float:
    alone = sum(effects[option] for effects, option in zip(main, options, strict=True))
    joint = sum(
        table[left][right] for table, left, right in zip(pairs, options, options[1:], strict=False)
    )
    return alone + joint


def highest(
    main: tuple[tuple[float, ...], ...], pairs: tuple[tuple[tuple[float, ...], ...], ...]
) -> float:
    """Return the highest sum of effects along the chain of axes, by dynamic programming."""
    best = list(main[0])
    for effects, table in zip(main[1:], pairs, strict=True):
        options = range(len(effects))
        joined = {(a, b): best[a] + table[a][b] + effects[b] for a, b in product(options, options)}
        best = [max(joined[a, b] for a in options) for b in options]
    return max(best)
