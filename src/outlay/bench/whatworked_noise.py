"""Our default and GP-E when every measurement carries Gaussian noise.

Noise is a share of the table's range and not clipped; the anchors are noisy, too, and free as in
the paper; repeats count in the budget. Recovery is scored against the noiseless truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from outlay.bench.whatworked import BOUNDS
from outlay.bench.whatworked_report import Interval, bootstrap
from outlay.surfaces.ablation import Ablation
from outlay.surfaces.methods import published_method
from outlay.surfaces.scoring import score

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlay.surfaces.cube import FloatArray
    from outlay.surfaces.tables import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyRow:
    """Mean recovery over seeds on one condition.

    Attributes:
        name: Condition.
        family: Workflow family.
        share: Standard deviation of the noise over the table's range.
        ours: Recovery of the default.
        rival: Recovery of GP-E.
        repeats: Mean number of our purchases that repeated a measured configuration.
    """

    name: str
    family: str
    share: float
    ours: float
    rival: float
    repeats: float


def noise_rows(
    tables: Sequence[Table], budget: int, shares: Sequence[float], seeds: int
) -> list[NoisyRow]:
    """Return every condition under every amount of noise, averaged over seeds."""
    return [_noisy_row(table, budget, share, seeds) for share in shares for table in tables]


def noise_gain(rows: Sequence[NoisyRow]) -> Interval:
    """Return our mean gain in recovery, with a bootstrap interval over conditions."""
    return bootstrap(np.array([row.ours - row.rival for row in rows]))


def _noisy_row(table: Table, budget: int, share: float, seeds: int) -> NoisyRow:
    ours, rival, repeats = [], [], []
    for seed in range(seeds):
        prediction, repeated = _run_ours(table, budget, share, seed)
        ours.append(score(table.truth, prediction).recovery)
        repeats.append(repeated)
        rival.append(score(table.truth, _run_rival(table, budget, share, seed)).recovery)
    return NoisyRow(
        name=table.name,
        family=table.family,
        share=share,
        ours=float(np.mean(ours)),
        rival=float(np.mean(rival)),
        repeats=float(np.mean(repeats)),
    )


def _run_ours(table: Table, budget: int, share: float, seed: int) -> tuple[FloatArray, int]:
    """Return our predicted table, and how many purchases were repeats."""
    names = [f"factor{i}" for i in range(table.d)]
    ablation = Ablation(names, budget=budget + 2, noisy=True, seed=seed)
    rng, scale = np.random.default_rng(seed), share * float(np.ptp(table.truth))
    while ablation.remaining:
        config = ablation.ask()[0].config
        cell = ablation.factors.cell(config)
        ablation.tell(config, float(table.truth[cell] + scale * rng.normal()))
    readout = ablation.surface().readout
    mean = readout.cells(np.arange(len(table.truth))).mean
    return np.clip(mean, *BOUNDS), budget + 2 - len(readout.exact)


def _run_rival(table: Table, budget: int, share: float, seed: int) -> FloatArray:
    """Return GP-E's predicted table, from the same stream of noise."""
    rng, scale = np.random.default_rng(seed), share * float(np.ptp(table.truth))
    method = published_method("gp-effect", table.d, bounds=BOUNDS)
    known: dict[int, float] = {}
    cell: int | None = 0
    while cell is not None and len(known) < budget + 2:
        known[cell] = float(table.truth[cell] + scale * rng.normal())
        cell = len(table.truth) - 1 if len(known) == 1 else method.next(known)
    return method.predict(known)
