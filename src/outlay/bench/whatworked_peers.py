"""How many purchases each method needs until its recovery stays high."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from outlay.bench.whatworked import method_on, trajectory
from outlay.surfaces.scoring import score

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from outlay.surfaces.tables import Table

PEERS = ("auto", "gp-effect", "one-at-a-time")
ENOUGH = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Recovery of one method on one condition after 0, 1, 2, ... purchases.

    A method that buys nothing more keeps its last recovery up to the full factorial.
    """

    name: str
    method: str
    recovery: tuple[float, ...]

    @property
    def needed(self) -> int | None:
        """Smallest budget from which recovery stays at 0.7 or above; None if it never does."""
        below = [budget for budget, value in enumerate(self.recovery) if value < ENOUGH]
        first = below[-1] + 1 if below else 0
        return first if first < len(self.recovery) else None


def peer_curves(tables: Sequence[Table]) -> list[Curve]:
    """Return the curve of every method on every condition."""
    return [_curve(table, method) for table in tables for method in PEERS]


def _curve(table: Table, name: str) -> Curve:
    method, largest = method_on(table, name), len(table.truth) - 2
    found = [
        score(table.truth, method.predict(known), known).recovery
        for known in trajectory(method, table.truth, largest)
    ]
    found += [found[-1]] * (largest + 1 - len(found))
    return Curve(name=table.name, method=name, recovery=tuple(found))


def plot_peers(curves: Sequence[Curve]) -> Figure:
    """Return recovery against budget, one panel for each number of configurations."""
    from matplotlib.figure import Figure

    lengths = sorted({len(curve.recovery) for curve in curves})
    figure = Figure(figsize=(6 * len(lengths), 4), layout="constrained")
    panels = figure.subplots(1, len(lengths), squeeze=False)[0]
    for axes, length in zip(panels, lengths, strict=True):
        for place, method in enumerate(PEERS):
            here = [c.recovery for c in curves if (c.method, len(c.recovery)) == (method, length)]
            mean = [sum(values) / len(here) for values in zip(*here, strict=True)]
            for values in here:
                axes.plot(values, color=f"C{place}", alpha=0.15, linewidth=0.8)
            axes.plot(mean, color=f"C{place}", linewidth=2, label=method)
        axes.axhline(ENOUGH, color="grey", linestyle=":")
        axes.axvline(length - 1, color="black", linestyle="--", label="full factorial")
        axes.set_xlabel("purchases")
        axes.set_ylabel("recovery")
        axes.set_title(f"{length + 1} configurations, {len(here)} conditions")
    panels[0].legend()
    return figure
