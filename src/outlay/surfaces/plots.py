"""Pictures of a surface, with matplotlib: effects, interactions, and the surface as tiles."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.patheffects import withStroke

from outlay.errors import InputError
from outlay.notebook import ShownFigure
from outlay.surfaces.effect_rows import conditional_effects

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from outlay.surfaces.cube import BoolArray, FloatArray
    from outlay.surfaces.effect_rows import Row
    from outlay.surfaces.surface import Surface

LARGEST_TILES = 1024
LONGEST = 10
"""Characters of a level that fit into a tile."""
FADED = 0.2
POSITIVE, NEGATIVE, NEUTRAL = "#1b6ca8", "#b5442d", "#8a8a8a"


def plot_effects(surface: Surface) -> ShownFigure:
    """Return average effects with 90 % intervals, over the effects in each background as dots.

    In spaces of more than 512 configurations, the dots are those from measured backgrounds.
    """
    average = surface.effects("average")
    backgrounds = surface.read_in()
    conditional = pd.DataFrame(conditional_effects(surface.factors, surface.readout, backgrounds))
    figure = ShownFigure(figsize=(7, 1.2 + 0.5 * len(average)), layout="constrained")
    axes = figure.add_subplot()
    axes.axvline(0, color=NEUTRAL, linewidth=0.8)
    for place, row in enumerate(average.itertuples()):
        here = conditional[(conditional.factor == row.factor) & (conditional.level == row.level)]
        _dots(axes, place, here.effect.to_numpy(), here.measured.to_numpy(dtype=bool))
        reach = [[row.effect - row.effect_low], [row.effect_high - row.effect]]
        axes.errorbar(row.effect, place, xerr=reach, fmt="s", color="black", capsize=4, zorder=3)
    axes.set_yticks(range(len(average)), [_label(row) for row in average.itertuples()])
    axes.invert_yaxis()
    axes.set_xlabel(f"change of {_plain(surface.metric)}")
    where = "each background"
    if len(backgrounds) < surface.factors.space.size:
        where = "measured backgrounds"
    axes.set_title(f"Average effects (90 %), and in {where}", fontsize=10)
    return figure


def _dots(axes: Axes, place: int, effects: FloatArray, measured: BoolArray) -> None:
    """Draw conditional effects: filled where both ends are measured, hollow where predicted."""
    jitter = np.linspace(-0.25, 0.25, len(effects)) if len(effects) > 1 else np.zeros(1)
    colours = [POSITIVE if effect >= 0 else NEGATIVE for effect in effects]
    filled = [c if known else "none" for c, known in zip(colours, measured, strict=True)]
    axes.scatter(
        effects, place + jitter, s=14, facecolors=filled, edgecolors=colours, linewidths=0.8
    )


def plot_interactions(surface: Surface) -> ShownFigure:
    """Return the mean interaction of every two factors as a heat map, strongest level pair each.

    A star marks an interval that leaves out 0; the others are faded. Factors of three or more
    levels are shown with the level.
    """
    names = surface.factors.names
    values = np.full((len(names), len(names)), np.nan)
    sure = np.zeros(values.shape, dtype=bool)
    words = np.full(values.shape, "", dtype=object)
    for row in surface.interaction_rows:
        i, j = names.index(row["first"]), names.index(row["second"])
        if np.isnan(values[i, j]) or _strength(row) > (sure[i, j], abs(values[i, j])):
            values[i, j] = values[j, i] = row["interaction"]
            sure[i, j] = sure[j, i] = _strength(row)[0]
            words[i, j] = words[j, i] = _levels(surface, row)
    reach = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    side = 2.2 + (0.9 if any(words.flat) else 0.7) * len(names)
    figure = ShownFigure(figsize=(side + 1, side), layout="constrained")
    axes = figure.add_subplot()
    picture = axes.imshow(
        values, cmap="RdBu", vmin=-reach, vmax=reach, alpha=np.where(sure, 1.0, FADED)
    )
    for i, j in zip(*np.nonzero(~np.isnan(values)), strict=True):
        text = f"{values[i, j]:.2g}" + ("*" if sure[i, j] else "") + words[i, j]
        dark = sure[i, j] and abs(values[i, j]) > 0.6 * reach
        size = 7 if words[i, j] else 10
        colour = "white" if dark else "black"
        axes.text(j, i, text, ha="center", va="center", color=colour, fontsize=size)
    axes.set_xticks(range(len(names)), [_plain(name) for name in names], rotation=45, ha="right")
    axes.set_yticks(range(len(names)), [_plain(name) for name in names])
    axes.set_title("Interactions\n(* interval leaves out 0, others faded)", fontsize=10)
    figure.colorbar(picture, ax=axes, label=f"second difference of {_plain(surface.metric)}")
    return figure


def _strength(row: Row) -> tuple[bool, float]:
    """Return by what the level pair of two factors is chosen: told from 0 first, then size."""
    return row["low"] > 0 or row["high"] < 0, abs(row["interaction"])


def _levels(surface: Surface, row: Row) -> str:
    """Return the levels of those factors that have several beside their default, a line each."""
    several = {factor.name for factor in surface.factors.all if len(factor.levels) > 2}
    shown = [f"{row[f'{side}_level']}" for side in ("first", "second") if row[side] in several]
    return "".join("\n" + _plain(level[:LONGEST]) for level in shown)


def plot_surface(surface: Surface) -> ShownFigure:
    """Return every configuration as a tile: the first factors down, the others across.

    A dot marks a measured configuration, a cross a failed one.

    Raises:
        InputError: If there are more than 1,024 configurations.
    """
    size = surface.factors.space.size
    if size > LARGEST_TILES:
        raise InputError(f"plot surface: found {size} configurations, allowed: {LARGEST_TILES}")
    table = surface.table()
    down = (surface.factors.space.d + 1) // 2
    shape = (prod(surface.factors.space.levels[:down]), -1)
    values = table["mean"].to_numpy().reshape(shape)
    figure = ShownFigure(
        figsize=(2.5 + 0.55 * values.shape[1], 2 + 0.45 * values.shape[0]), layout="constrained"
    )
    axes = figure.add_subplot()
    picture = axes.imshow(values, cmap="viridis", aspect="auto")
    measured = np.argwhere(table["measured"].to_numpy().reshape(shape))
    failed = np.argwhere((table["failed"].to_numpy() != "").reshape(shape))
    axes.scatter(measured[:, 1], measured[:, 0], s=30, c="white", edgecolors="black")
    crosses = axes.scatter(failed[:, 1], failed[:, 0], marker="x", s=45, c=NEGATIVE, linewidths=2)
    crosses.set_path_effects([withStroke(linewidth=5, foreground="white")])
    names = surface.factors.names
    axes.set_yticks(range(values.shape[0]), _ticks(surface, range(down), values.shape[0], 0))
    axes.set_xticks(
        range(values.shape[1]), _ticks(surface, range(down, len(names)), values.shape[1], 1)
    )
    axes.tick_params(axis="x", rotation=90)
    axes.set_ylabel(_plain(", ".join(names[:down])))
    axes.set_xlabel(_plain(", ".join(names[down:])))
    axes.set_title("Predicted values\n(dot: measured, cross: failed)", fontsize=10)
    figure.colorbar(picture, ax=axes, label=_plain(surface.metric))
    return figure


def _ticks(surface: Surface, factors: range, count: int, axis: int) -> list[str]:
    """Return the levels of some factors along one side of the tiles."""
    down = (surface.factors.space.d + 1) // 2
    step = prod(surface.factors.space.levels[down:]) if axis == 0 else 1
    labels = []
    for place in range(count):
        config = list(surface.factors.config(place * step).values())
        labels.append(_plain(" ".join(_short(config[factor]) for factor in factors)))
    return labels


def _label(row: object) -> str:
    factor, level = getattr(row, "factor"), getattr(row, "level")  # noqa: B009
    return _plain(str(factor) if level is True else f"{factor} = {level}")


def _plain(text: str) -> str:
    """Return the text with nothing in it that matplotlib takes for mathematics."""
    return text.replace("$", r"\$")


def _short(level: object) -> str:
    return str(int(level)) if isinstance(level, bool) else str(level)
