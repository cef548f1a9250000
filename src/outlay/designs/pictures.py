"""Pictures of designs; matplotlib is imported here only (extra `plot`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlay.designs.catalogue import catalogue
from outlay.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from outlay.designs.planning import Plan


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches, without a window or global state.

    Raises:
        InputError: matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        from outlay.notebook import ShownFigure
    except ImportError as error:
        raise InputError("a picture needs matplotlib: pip install 'outlay[plot]'") from error
    figure = ShownFigure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def frontier_figure(plan: Plan) -> Figure:
    """Return information against cost: every design, the frontier, the best one, the budget."""
    figure = new_figure(7.0, 4.4)
    axes = figure.subplots()
    limit = plan.state.limits[0]
    if plan.complete:
        table = catalogue(plan.state)
        for chosen, colour, label in (
            (table.affordable, "#9db4c8", "affordable"),
            (~table.affordable, "#dddddd", "too dear"),
        ):
            shown = chosen & (table.cost < 2 * limit.budget)
            shown[0] = False
            axes.scatter(table.cost[shown], table.gain[shown], s=7, c=colour, label=label)
    costs = [*(option.cost for option in plan.frontier), limit.budget]
    gains = [*(option.gain for option in plan.frontier), plan.frontier[-1].gain]
    axes.step(costs, gains, where="post", color="#1f4e79", label="frontier")
    best = plan.best[0]
    axes.plot(best.cost, best.gain, "o", color="#c0392b", label="most per cost")
    axes.axvline(limit.budget, color="#555555", linestyle=":", label="budget")
    axes.axhline(plan.uncertainty, color="#555555", linewidth=0.6, label="all there is to know")
    named = f"Most per cost: {', '.join(best.arms)}, {best.seeds} seeds"
    figure.suptitle(named, x=0.02, ha="left", fontsize=9)
    axes.set_xlabel(f"cost ({limit.unit})")
    axes.set_ylabel("expected information (nats)")
    axes.set_ylim(0, plan.uncertainty * 1.05 or 1.0)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, fontsize=8, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
