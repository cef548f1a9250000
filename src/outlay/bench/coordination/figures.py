"""The figures of the paper, drawn from our own runs. Needs matplotlib (`outlay[plot]`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from outlay.bench.coordination.published import CONFIGURATIONS, run_published

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from matplotlib.axes import Axes

    from outlay.bench.coordination.loop import Trace
    from outlay.bench.coordination.published import Row

_BLUE, _ORANGE, _GREY = "#2f6db3", "#d9822b", "#8a8a8a"
_STYLE: dict[Any, Any] = {"svg.hashsalt": "outlay", "svg.fonttype": "none", "font.size": 9}


def draw(folder: Path, rows: list[Row]) -> list[Path]:
    """Write the three figures as SVG and return their paths; equal rows give equal bytes."""
    figures: dict[str, tuple[tuple[float, float], Callable[[Axes], None]]] = {
        "trajectory": ((6.0, 3.2), _trajectory),
        "inflation": ((6.0, 3.2), lambda axes: _inflation(axes, rows)),
        "effort": ((6.0, 3.2), lambda axes: _effort(axes, rows)),
    }
    return [_save(folder / f"{name}.svg", size, paint) for name, (size, paint) in figures.items()]


def _save(path: Path, size: tuple[float, float], paint: Callable[[Axes], None]) -> Path:
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        axes.spines[["top", "right"]].set_visible(False)
        paint(axes)
        figure.savefig(path, format="svg", metadata={"Date": None})
    return path


def _trajectory(axes: Axes) -> None:
    """Draw the champion's clean value after each experiment, coordinated and alone."""
    for name, color, style in (
        ("full coordination", _BLUE, "-"),
        ("single-thread baseline", _ORANGE, "--"),
    ):
        trace, _ = run_published(CONFIGURATIONS[name])
        values = _values(trace)
        axes.step(range(len(values)), values, where="post", color=color, ls=style, label=name)
    axes.set_xlabel("experiments")
    axes.set_ylabel("clean value of the champion")
    axes.legend(frameon=False, loc="lower right")


def _values(trace: Trace) -> list[float]:
    from outlay.bench.coordination.objective import Published

    objective = Published()
    return [objective.clean(objective.start), *(moment.clean for moment in trace.moments)]


def _inflation(axes: Axes, rows: list[Row]) -> None:
    """Draw reported beside clean metric; a gap is accepted noise."""
    places = range(len(rows))
    reported, clean = [row.reported for row in rows], [row.clean for row in rows]
    axes.barh(places, reported, color=_BLUE, height=0.6, label="reported")
    axes.scatter(clean, places, color=_ORANGE, zorder=3, label="clean")
    for place, row in zip(places, rows, strict=True):
        axes.annotate(f" {row.reported:.4f}", (row.reported, place), va="center", fontsize=8)
    _name_rows(axes, rows)
    axes.set_xlabel("metric of the final champion (optimum: 0)")
    axes.set_xlim(-0.0005, 0.0185)
    axes.legend(frameon=False, loc="lower right")


def _effort(axes: Axes, rows: list[Row]) -> None:
    """Draw experiments used, and those of them that tried a retired direction again."""
    places = range(len(rows))
    used, redundant = [row.used for row in rows], [row.redundant for row in rows]
    axes.barh(places, used, color=_GREY, height=0.6, label="experiments used")
    axes.barh(places, redundant, color=_ORANGE, height=0.3, label="redundant re-probes")
    _name_rows(axes, rows)
    axes.set_xlabel("experiments, of 60")
    axes.set_xlim(0, 85)
    axes.legend(frameon=False, loc="lower right")


def _name_rows(axes: Axes, rows: list[Row]) -> None:
    axes.set_yticks(range(len(rows)), [row.configuration for row in rows])
    axes.invert_yaxis()
