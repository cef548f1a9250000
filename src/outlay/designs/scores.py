"""Scores of a reading set: affordable efficiency, and where its information was lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from outlay.designs.catalogue import best_design
from outlay.designs.states import target_arm

if TYPE_CHECKING:
    from outlay.designs.catalogue import Catalogue
    from outlay.designs.costs import Design


class Gaps(NamedTuple):
    """Signed gaps in nats, Eqs. 6 to 8; a negative resolution gap is kept as it is.

    Attributes:
        target: Loss from requiring the target's arm in an affordable design.
        resolution: That optimum minus the mean information of the readings.
        total: Their sum.
    """

    target: float
    resolution: float
    total: float


def utility(table: Catalogue, reading_set: tuple[Design, ...]) -> float:
    """Return the mean over readings of information per cost, 0 where unaffordable (Eq. 4)."""
    places = [table.place(design) for design in reading_set]
    return float(table.efficiency.flat[places].mean())


def efficiency(table: Catalogue, reading_set: tuple[Design, ...]) -> float:
    """Return the affordable efficiency (Eq. 5): the utility over the best design's, 0 to 1.

    Raises:
        BudgetError: Nothing is affordable.
    """
    best = utility(table, (best_design(table),))
    return utility(table, reading_set) / best if best > 0 else 0.0


def gaps(table: Catalogue, reading_set: tuple[Design, ...], target: int | None = None) -> Gaps:
    """Return the gaps between the best affordable design and the readings (Eqs. 6 to 8).

    Args:
        table: The state's designs.
        reading_set: The readings, affordable or not.
        target: Arm in focus; by default that of the most probable hypothesis. If no affordable
            design has it, the restricted optimum is 0.

    Raises:
        BudgetError: Nothing is affordable.
    """
    best_design(table)
    affordable = np.where(table.affordable, table.gain, 0.0)
    arm = target_arm(table.state) if target is None else target
    with_target = (np.arange(len(affordable)) >> arm & 1).astype(bool)
    best, restricted = float(affordable.max()), float(affordable[with_target].max())
    mean = float(table.gain.flat[[table.place(design) for design in reading_set]].mean())
    return Gaps(best - restricted, restricted - mean, best - mean)
