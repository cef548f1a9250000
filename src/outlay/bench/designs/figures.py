"""The figures of the benchmark; need the extra `plot`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from outlay.bench.designs.report import LEVELS
from outlay.designs.pictures import new_figure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from outlay.bench.designs.agreement import Agreement
    from outlay.bench.designs.report import Report, Row
    from outlay.designs.interfaces import Interface

_COLOURS = ("#9db4c8", "#6f93b3", "#1f4e79", "#123250")
_JITTER = 0.18
_CONTROLS: tuple[tuple[Interface, Interface], ...] = (("L1", "L1_padded"), ("L3", "L3_short"))


def levels_figure(report: Report) -> Figure:
    """Return efficiency by interface: bars with intervals, and every state's mean as a point."""
    names = list(dict.fromkeys(row.setting for row in report.rows))
    figure = new_figure(2.6 * max(len(names), 2), 3.6)
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for axes, name in zip(panels, names, strict=True):
        rows = {row.interface: row for row in report.rows if row.setting == name}
        _bars(axes, [rows[level] for level in LEVELS if level in rows])
        axes.set_title(name, fontsize=9)
    panels[0].set_ylabel("affordable efficiency (%)")
    return figure


def _bars(axes: Axes, rows: list[Row]) -> None:
    rng = np.random.default_rng(0)
    for place, row in enumerate(rows):
        value, low, high = row.efficiency
        colour = _COLOURS[LEVELS.index(row.interface)]
        axes.bar(place, value, color=colour, width=0.7)
        spread = [[max(value - low, 0)], [max(high - value, 0)]]
        axes.errorbar(place, value, yerr=spread, color="black", capsize=3, linewidth=1)
        jitter = place + rng.uniform(-_JITTER, _JITTER, len(row.means))
        axes.scatter(jitter, 100 * row.means, s=5, color="#d98032", alpha=0.7, zorder=3)
        axes.text(place, 102, f"{value:.1f}", ha="center", fontsize=8)
    axes.set_xticks(range(len(rows)), [row.interface for row in rows])
    axes.set_ylim(0, 108)
    axes.spines[["top", "right"]].set_visible(False)


def controls_figure(report: Report) -> Figure | None:
    """Return original against control by state, `None` if no control was collected."""
    rows = {(row.setting, row.interface): row for row in report.rows}
    names = list(dict.fromkeys(row.setting for row in report.rows))
    if not any((name, control) in rows for name in names for _, control in _CONTROLS):
        return None
    figure = new_figure(6.4, 3.4)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (original, control) in zip(panels, _CONTROLS, strict=True):
        for name in names:
            if (name, original) in rows and (name, control) in rows:
                x, y = rows[name, original].means, rows[name, control].means
                axes.scatter(100 * x, 100 * y, s=10, alpha=0.6, label=name)
        axes.set_xlabel(f"{original} (%)")
        axes.set_title(f"{original} and {control}", fontsize=9)
        axes.plot([0, 100], [0, 100], linestyle="--", color="#888888", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("control (%)")
    figure.legend(names, loc="outside upper right", fontsize=8, frameon=False, ncols=len(names))
    return figure


def agreement_figure(found: Mapping[str, Agreement]) -> Figure:
    """Return the rank correlations of each judge, pooled and within scenarios."""
    figure = new_figure(6.4, 1.2 + 0.45 * len(found))
    axes = figure.subplots()
    for place, (name, one) in enumerate(found.items()):
        for interval, shift, colour, label in (
            (one.pooled, -0.13, "#1f4e79", "pooled over actions"),
            (one.within, 0.13, "#d98032", "mean within scenarios"),
        ):
            if np.isfinite(interval).all():
                spread = [[interval.value - interval.low], [interval.high - interval.value]]
                axes.errorbar(
                    interval.value,
                    place + shift,
                    xerr=np.maximum(spread, 0),
                    fmt="o",
                    color=colour,
                    markersize=4,
                    capsize=2,
                    label=label,
                )
        axes.text(-1.04, place, name, ha="right", va="center", fontsize=9)
    axes.axvline(0, color="#888888", linewidth=0.6)
    axes.set(xlim=(-1, 1.03), yticks=[], xlabel="Spearman correlation with information per cost")
    axes.invert_yaxis()
    handles, labels = axes.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    figure.legend(
        unique.values(),
        unique.keys(),
        loc="outside upper right",
        ncols=2,
        fontsize=8,
        frameon=False,
    )
    axes.spines[["top", "right", "left"]].set_visible(False)
    return figure
