"""What a response surface says, as plain records: effects, interactions, the best, the minimal.

Pure. Effects and interactions are in units of the metric; every interval is one of 90 %.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from outlay.surfaces.factors import Config
from outlay.surfaces.measurements import failures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlay.surfaces.surface import Surface

KEPT = 0.9
"""Share of the champion's gain that a smaller part must be predicted to keep."""


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """What an option does against its factor's default.

    Attributes:
        factor: The factor.
        level: The option.
        default: The default that it is compared with.
        effect, low, high: Mean over all backgrounds of the other factors, with its interval.
        least: Smallest conditional effect as predicted.
        most: Largest.
        up: Backgrounds in which it raises the metric, the interval leaving out 0.
        down: Backgrounds in which it lowers the metric, likewise.
    """

    factor: str
    level: str
    default: str
    effect: float
    low: float
    high: float
    least: float
    most: float
    up: int
    down: int

    @property
    def depends(self) -> bool:
        """Whether it surely raises the metric in one background and lowers it in another."""
        return self.up > 0 and self.down > 0


class Conditional(msgspec.Struct, frozen=True, kw_only=True):
    """What an option does in one background; `measured` if both ends are measured."""

    factor: str
    level: str
    effect: float
    low: float
    high: float
    measured: bool
    background: Config


class Interaction(msgspec.Struct, frozen=True, kw_only=True):
    """How much more two options do together than the sum of both, over all backgrounds."""

    first: str
    first_level: str
    second: str
    second_level: str
    interaction: float
    low: float
    high: float

    @property
    def sure(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0


class Predicted(msgspec.Struct, frozen=True, kw_only=True):
    """The value of a configuration; `measured` if it was measured, with or without noise."""

    config: Config
    value: float
    low: float
    high: float
    measured: bool


class Best(Predicted, frozen=True, kw_only=True):
    """The configuration with the best predicted value, and how probably it is the best of all."""

    probability: float


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration that gave no value, and why."""

    config: Config
    reason: str


class Minimal(msgspec.Struct, frozen=True, kw_only=True):
    """The smallest part of a champion that keeps its gain.

    The rule: fewest components such that the predicted gain over the baseline is at least `KEPT`
    of the champion's and its interval leaves out 0; of equally many, the best predicted.

    Attributes:
        config: Factor to option.
        kept: Components that it holds.
        left_out: Components that it does without.
        gain, low, high: Predicted gain over the baseline, positive is better.
        champion_gain, champion_low, champion_high: The same for the whole champion.
        measured: Whether the configuration was measured.
        certain: Whether the interval of what it keeps beyond the share leaves out less.
    """

    config: Config
    kept: list[str]
    left_out: list[str]
    gain: float
    low: float
    high: float
    champion_gain: float
    champion_low: float
    champion_high: float
    measured: bool
    certain: bool


def conditional_effects(surface: Surface) -> list[Conditional]:
    """Return every effect in every background; in a large space, from measured ones."""
    factors = surface.factors
    pairs = factors.space.effects_at(surface.read_in())
    found = surface.readout.effects(pairs)
    levels = factors.space.rows(pairs.high)
    rows = []
    for k, place in enumerate(pairs.factor.tolist()):
        entry, background = factors.all[place], factors.config(int(pairs.low[k]))
        del background[entry.name]
        mean, width = float(found.mean[k]), float(found.width[k])
        row = Conditional(
            factor=entry.name,
            level=str(entry.levels[levels[k, place]]),
            effect=mean,
            low=mean - width,
            high=mean + width,
            measured=bool(found.measured[k]),
            background=background,
        )
        rows.append(row)
    return rows


def effects(surface: Surface, conditional: Sequence[Conditional]) -> list[Effect]:
    """Return the average effect of every option, with the reach of its conditional effects."""
    defaults = {factor.name: str(factor.levels[0]) for factor in surface.factors.all}
    found = []
    for row in surface.average_rows:
        name, level = row["factor"], str(row["level"])
        here = [c for c in conditional if (c.factor, c.level) == (name, level)]
        found.append(
            Effect(
                factor=name,
                level=level,
                default=defaults[name],
                effect=row["effect"],
                low=row["effect_low"],
                high=row["effect_high"],
                least=min(c.effect for c in here),
                most=max(c.effect for c in here),
                up=sum(c.low > 0 for c in here),
                down=sum(c.high < 0 for c in here),
            )
        )
    return found


def interactions(surface: Surface) -> list[Interaction]:
    """Return the mean second difference of every two options of two factors, largest first."""
    found = [
        Interaction(
            first=row["first"],
            first_level=str(row["first_level"]),
            second=row["second"],
            second_level=str(row["second_level"]),
            interaction=row["interaction"],
            low=row["low"],
            high=row["high"],
        )
        for row in surface.interaction_rows
    ]
    return sorted(found, key=lambda row: -abs(row.interaction))


def best(surface: Surface) -> Best:
    """Return the configuration with the best predicted value; failed ones are left out."""
    found = surface.best()
    return Best(
        config=found.config,
        value=found.estimate.mean,
        low=found.estimate.low,
        high=found.estimate.high,
        measured=found.estimate.measured,
        probability=found.probability,
    )


def failed(surface: Surface) -> list[Failed]:
    """Return the configurations that gave no value."""
    return [
        Failed(config=surface.factors.config(cell), reason=reason)
        for cell, reason in failures(surface.factors, surface.measurements).items()
    ]


def minimal(surface: Surface) -> Minimal | None:
    """Return the smallest part of the champion that keeps its gain.

    The champion has every factor at its last level, and the baseline at its first. `None` if the
    champion's own gain is not seen here: predicted at 0 or less, or with an interval that holds 0.
    """
    space = surface.factors.space
    nothing, everything = space.anchors
    whole = _gain(surface, everything)
    if whole[0] <= whole[1]:
        return None
    cells = surface.usable()
    gains = _sign(surface) * (
        surface.readout.cells(cells).mean - surface.readout.cells(np.array([nothing])).mean
    )
    sizes = (space.rows(cells) != 0).sum(axis=1)
    for size in range(1, space.d + 1):
        places = np.nonzero((sizes == size) & (gains >= KEPT * whole[0]))[0]
        if len(places):
            cell = int(cells[places[np.argmax(gains[places])]])
            mean, width = _gain(surface, cell)
            if mean > width:
                return _minimal(surface, cell, (mean, width), whole)
    return _minimal(surface, everything, whole, whole)


def _minimal(
    surface: Surface, cell: int, own: tuple[float, float], whole: tuple[float, float]
) -> Minimal:
    nothing, everything = surface.factors.space.anchors
    config, default = surface.factors.config(cell), surface.factors.config(nothing)
    spare, width = _contrast(surface, ((1.0, cell), (-KEPT, everything), (KEPT - 1, nothing)))
    return Minimal(
        config=config,
        kept=[name for name in config if config[name] != default[name]],
        left_out=[name for name in config if config[name] == default[name]],
        gain=own[0],
        low=own[0] - own[1],
        high=own[0] + own[1],
        champion_gain=whole[0],
        champion_low=whole[0] - whole[1],
        champion_high=whole[0] + whole[1],
        measured=cell in surface.readout.exact,
        certain=spare >= width,
    )


def _gain(surface: Surface, cell: int) -> tuple[float, float]:
    return _contrast(surface, ((1.0, cell), (-1.0, surface.factors.space.anchors[0])))


def _contrast(surface: Surface, parts: Sequence[tuple[float, int]]) -> tuple[float, float]:
    """Return mean and half-width of a weighted sum of cells, oriented so that higher is better."""
    weights: dict[int, float] = {}
    for weight, cell in parts:
        weights[cell] = weights.get(cell, 0.0) + weight
    mean, width = surface.readout.contrast(weights)
    return _sign(surface) * mean, width


def _sign(surface: Surface) -> float:
    return -1.0 if surface.direction == "minimize" else 1.0


def ranked(surface: Surface, count: int) -> list[Predicted]:
    """Return the configurations with the best predictions, without those that break."""
    cells = surface.usable()
    found = surface.readout.cells(cells)
    order = np.argsort(-_sign(surface) * found.mean, kind="stable")
    return [
        Predicted(
            config=surface.factors.config(int(cells[k])),
            value=float(found.mean[k]),
            low=float(found.mean[k] - found.width[k]),
            high=float(found.mean[k] + found.width[k]),
            measured=bool(found.measured[k]),
        )
        for k in order[:count]
    ]
