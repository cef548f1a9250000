"""Harder landscapes for the coordination mechanisms, each with the reason why it is here."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from outlay.bench.coordination.terrain import STEP, Drifting, Switches, Terrain, highest

if TYPE_CHECKING:
    from collections.abc import Callable

    from outlay.bench.coordination.objective import Objective, Point


class Landscape(NamedTuple):
    """A family of objectives, one for each seed.

    Attributes:
        name: Short name.
        reason: Why it is here.
        make: Returns the objective of a seed.
        budget: Evaluations that a search may use, the final estimate included.
        moving: Whether values change while the search runs.
    """

    name: str
    reason: str
    make: Callable[[int], Objective]
    budget: int
    moving: bool = False


def _random(name: str, seed: int) -> random.Random:
    return random.Random(f"{name} {seed}")  # noqa: S311 - a landscape, not a secret


def _bowl(seed: int, dimensions: int, weights: Point | None = None) -> Terrain:
    """Return a separable bowl with the optimum two to four steps from the start on each axis."""
    rng = _random("bowl", seed)
    start = tuple(STEP * rng.randint(-4, 4) for _ in range(dimensions))
    optimum = tuple(x + STEP * rng.choice((-4, -3, -2, 2, 3, 4)) for x in start)
    return Terrain(start=start, optimum=optimum, weights=weights or (1.0,) * dimensions)


def _separable(seed: int) -> Terrain:
    return replace(_bowl(seed, 4), ripple=0.15)


def _separable_16(seed: int) -> Terrain:
    return replace(_bowl(seed, 16), ripple=0.15)


def _noisy(seed: int) -> Terrain:
    return replace(_bowl(seed, 8), ripple=0.15, sd=1.0)


def _rotated(seed: int) -> Terrain:
    return replace(_bowl(seed, 4, (1.0, 6.0) * 2), angle=math.pi / 6)


def _rotated_16(seed: int) -> Terrain:
    return replace(_bowl(seed, 16, (1.0, 6.0) * 8), angle=math.pi / 6)


def _drifting(seed: int) -> Drifting:
    rng = _random("drifting", seed)
    first = rng.randrange(4)
    return Drifting(
        start=(0.0,) * 4,
        sizes=(first, (first + 2) % 4),
        signs=tuple(rng.choice((-1.0, 1.0)) for _ in range(4)),
    )


def _uneven_noise(seed: int) -> Terrain:
    return replace(_bowl(seed, 4), ripple=0.15, sd=0.1, sd_slope=0.06)


def _plateaus(seed: int) -> Terrain:
    return replace(_bowl(seed, 4), plateau=1.5)


def _moving(seed: int) -> Terrain:
    return replace(_bowl(seed, 4), ripple=0.15, moves_at=20, shift=1.0)


def _sparse(seed: int) -> Terrain:
    rng = _random("sparse", seed)
    strong = set(rng.sample(range(64), 6))
    return _bowl(seed, 64, tuple(1.0 if i in strong else 0.002 for i in range(64)))


def _switches(seed: int) -> Switches:
    rng = _random("switches", seed)
    axes, options = 8, 4
    main = tuple(tuple(rng.gauss(0.0, 1.0) for _ in range(options)) for _ in range(axes))
    pairs = tuple(
        tuple(tuple(rng.gauss(0.0, 0.7) for _ in range(options)) for _ in range(options))
        for _ in range(axes - 1)
    )
    return Switches(
        start=(0.0,) * axes,
        directions=tuple(str(option) for option in range(options)),
        main=main,
        pairs=pairs,
        best=highest(main, pairs),
        sd=0.4,
    )


LANDSCAPES = (
    Landscape(
        "separable",
        "the published bowl, with noise as large as a third of the last steps: the reference",
        _separable,
        300,
    ),
    Landscape("separable-16", "the same in 16 dimensions, for scale", _separable_16, 800),
    Landscape(
        "noisy",
        "8 axes, and noise as large as the gain of most steps: what a sequential test is for",
        _noisy,
        1000,
    ),
    Landscape(
        "rotated",
        "axes interact, so a direction that failed becomes good after another axis has moved",
        _rotated,
        300,
    ),
    Landscape("rotated-16", "the same in 16 dimensions", _rotated_16, 800),
    Landscape(
        "drifting",
        "the best rate drifts as the size grows: it fails three times, and later it is the way on",
        _drifting,
        600,
    ),
    Landscape(
        "uneven-noise",
        "noise grows to one side of the optimum: luck is found there, and pooled noise is wrong",
        _uneven_noise,
        300,
    ),
    Landscape("plateaus", "most steps change nothing at all: nothing to rank by", _plateaus, 300),
    Landscape(
        "moving",
        "the optimum moves at experiment 20: what was learnt is wrong from then on",
        _moving,
        450,
        moving=True,
    ),
    Landscape(
        "sparse-64",
        "6 of 64 axes matter: without an order, effort goes to the others",
        _sparse,
        700,
    ),
    Landscape(
        "switches",
        "8 axes of 4 unordered options with interactions: a direction is an option, no slope",
        _switches,
        300,
    ),
)
