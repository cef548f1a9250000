"""Policies that need no model: references for the benchmark's scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from outlay.bench.designs.panel import SEED, PanelState, panel
from outlay.designs.catalogue import Catalogue, best_design, priced
from outlay.designs.costs import Design
from outlay.designs.information import panel_information
from outlay.designs.readings import Action, readings
from outlay.designs.scores import efficiency
from outlay.designs.searching import search_designs
from outlay.designs.states import target_arm

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def catalogues(states: Sequence[PanelState]) -> tuple[Catalogue, ...]:
    """Return all designs of all states of a panel."""
    gains = panel_information([drawn.state for drawn in states])
    return tuple(
        priced(drawn.state, gain, np.zeros_like(gain))
        for drawn, gain in zip(states, gains, strict=True)
    )


def _level_1(table: Catalogue) -> float:
    return efficiency(table, readings(table.state, Action()))


def _level_2(table: Catalogue) -> float:
    return efficiency(table, readings(table.state, Action(target=target_arm(table.state))))


def _uniform(table: Catalogue) -> float:
    return float(table.efficiency[table.affordable].mean() / table.efficiency.max())


def _single_arm(table: Catalogue) -> float:
    return efficiency(table, (Design((target_arm(table.state),), 2),))


def _six_arms(table: Catalogue) -> float:
    return efficiency(table, (Design(tuple(range(6)), 5),))


def _oracle(table: Catalogue) -> float:
    return efficiency(table, (best_design(table),))


def _target_oracle(table: Catalogue) -> float:
    with_target = np.arange(len(table.gain)) >> target_arm(table.state) & 1
    return float(table.efficiency[with_target.astype(bool)].max() / table.efficiency.max())


def _spend_on_likeliest(table: Catalogue) -> float:
    """Two most probable arms with as many seeds as the budget takes."""
    ranked = sorted(range(len(table.state.arms)), key=lambda j: -table.state.prior[j])
    mask = Design(tuple(sorted(ranked[:2])), 2).mask
    return float(table.efficiency[mask].max() / table.efficiency.max())


def _search(table: Catalogue) -> float:
    """The search policy with six exact evaluations."""
    return efficiency(table, (search_designs(table.state, evaluations=6).design,))


POLICIES: dict[str, Callable[[Catalogue], float]] = {
    "L1": _level_1,
    "L2": _level_2,
    "uniform": _uniform,
    "single_arm": _single_arm,
    "six_arms": _six_arms,
    "oracle": _oracle,
    "target_oracle": _target_oracle,
    "top_two": _spend_on_likeliest,
    "search": _search,
}
"""Name of a policy to its affordable efficiency (0 to 1) in one state."""


def panel_means(seed: int = SEED) -> dict[str, float]:
    """Return the mean affordable efficiency of each policy over a panel, in percent."""
    tables = catalogues(panel(seed))
    return {
        name: 100 * float(np.mean([policy(table) for table in tables]))
        for name, policy in POLICIES.items()
    }


def affordable_counts(seed: int = SEED) -> dict[int, int]:
    """Return how many of the 693 designs each budget of a panel can pay."""
    counts = {
        int(table.state.limits[0].budget): int(table.affordable.sum())
        for table in catalogues(panel(seed))
    }
    return dict(sorted(counts.items()))
