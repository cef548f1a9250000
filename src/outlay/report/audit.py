"""The figure of an audit: what the log kept, and which part of it stands above the noise."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from outlay.audit import Audit, Entry

_REJECTED = "#b8bcc4"
_UNCONFIRMED = "#d9822b"
_ABOVE = "#2b6cb0"
_CONFIRMED = "#14532d"
_LABEL = 48


def plot(audit: Audit, metric: str, direction: str, path: Path) -> None:
    """Write the figure as SVG or PNG, by the ending of the path; same audit, same bytes of SVG."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "outlay", "svg.fonttype": "none", "font.size": 10}):
        figure = Figure(figsize=(10, 5.6), dpi=150, layout="constrained")
        axes = figure.add_subplot()
        low, high = _limits(audit)
        axes.set_ylim(low, high)
        _draw_rows(axes, audit, low, high)
        _draw_gains(axes, audit)
        _draw_chain(axes, audit)
        better = "higher" if direction == "maximize" else "lower"
        axes.locator_params(axis="x", integer=True)
        axes.set_xlabel("row of the log with a result")
        axes.set_ylabel(f"{metric} ({better} is better)", parse_math=False)
        axes.set_title(_title(audit), loc="left", fontsize=11)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="best", fontsize=9)
        date = {"Date": None} if path.suffix == ".svg" else None
        with warnings.catch_warnings():
            # A label may hold signs that the font lacks; a box in their place is enough.
            warnings.filterwarnings("ignore", message="Glyph")
            figure.savefig(path, metadata=date)


def _title(audit: Audit) -> str:
    gains = len(audit.gains)
    chain = audit.confirmed_chain
    if audit.noise is None or chain is None:
        return f"{gains} accepted gains; no repeats in the log, so its noise is unknown"
    return (
        f"{gains} accepted gains, {audit.unconfirmed} not above one seed difference "
        f"({audit.noise.difference:.3g}); {len(chain)} confirmed"
    )


def _kept(audit: Audit) -> list[Entry]:
    return [audit.entries[0], *(gain.entry for gain in audit.gains)]


def _limits(audit: Audit) -> tuple[float, float]:
    """Return the range of what was kept, widened by at most its own span for what was not."""
    values = sorted(entry.value for entry in audit.entries)
    kept = [entry.value for entry in _kept(audit)]
    least, most = min(kept), max(kept)
    span = (most - least) or abs(most) or 1.0
    cut = len(values) // 20
    low = min(least, max(values[cut], least - span))
    high = max(most, min(values[-1 - cut], most + span))
    return low - 0.08 * span, high + 0.08 * span


def _draw_rows(axes: Axes, audit: Audit, low: float, high: float) -> None:
    accepted = {gain.entry.row.line for gain in audit.gains}
    others = [
        (i, e.value) for i, e in enumerate(audit.entries) if i and e.row.line not in accepted
    ]
    inside = [(i, v) for i, v in others if low <= v <= high]
    axes.plot(*_points(inside), "o", ms=4, color=_REJECTED, label="not accepted", zorder=1)
    above = [(i, high) for i, v in others if v > high]
    below = [(i, low) for i, v in others if v < low]
    label = "not accepted, outside the picture"
    for marker, points in (("^", above), ("v", below)):
        # An empty unclipped line would take room in the layout.
        if points:
            xs, ys = _points(points)
            axes.plot(xs, ys, marker, ms=6, color=_REJECTED, label=label, clip_on=False, zorder=1)
            label = ""


def _points(points: list[tuple[int, float]]) -> tuple[list[int], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _draw_gains(axes: Axes, audit: Audit) -> None:
    places = {entry.row.line: i for i, entry in enumerate(audit.entries)}
    kept = _kept(audit)
    steps = [(places[entry.row.line], entry.value) for entry in kept]
    xs, ys = _points(steps)
    axes.step([*xs, len(audit.entries) - 1], [*ys, ys[-1]], where="post", color="#888", lw=1)
    kinds = (
        (None, _ABOVE, "accepted"),
        (True, _UNCONFIRMED, "accepted, not above one seed difference"),
        (False, _ABOVE, "accepted, above one seed difference"),
    )
    for unconfirmed, color, label in kinds:
        points = [
            (places[g.entry.row.line], g.entry.value)
            for g in audit.gains
            if g.unconfirmed is unconfirmed
        ]
        if points:
            axes.plot(*_points(points), "o", ms=6, color=color, label=label, zorder=3)


def _draw_chain(axes: Axes, audit: Audit) -> None:
    """Draw the confirmed values as a line, with the reach of noise around the last of them."""
    chain = audit.confirmed_chain
    if audit.noise is None or chain is None:
        return
    places = {entry.row.line: i for i, entry in enumerate(audit.entries)}
    members = [audit.entries[0], *(gain.entry for gain in chain)]
    end = len(audit.entries) - 1
    xs = [places[entry.row.line] for entry in members]
    ys = [entry.value for entry in members]
    label = "confirmed; inside its band nothing is told from noise"
    axes.step([*xs, end], [*ys, ys[-1]], where="post", color=_CONFIRMED, lw=2, label=label)
    for entry, start, stop in zip(members, xs, [*xs[1:], end], strict=True):
        half = audit.noise.half_width(1, entry.n)
        reach = ([entry.value - half] * 2, [entry.value + half] * 2)
        axes.fill_between([start, stop], *reach, color=_CONFIRMED, alpha=0.08, lw=0)
    for gain, x in zip(chain, xs[1:], strict=True):
        _name(axes, gain.entry, x, end)


def _name(axes: Axes, entry: Entry, x: int, end: int) -> None:
    text = entry.row.label
    shown = text if len(text) <= _LABEL else text[: _LABEL - 1] + "…"
    right = x > 0.6 * end
    axes.annotate(
        shown,
        (x, entry.value),
        xytext=(-7 if right else 7, 5),
        textcoords="offset points",
        ha="right" if right else "left",
        fontsize=8,
        color=_CONFIRMED,
        parse_math=False,
        bbox={"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 1},
        zorder=4,
    )
