"""The published comparison and ablation, and the values they must have."""

from __future__ import annotations

from dataclasses import dataclass, replace

from outlay.bench.coordination.loop import Plan, Trace, search
from outlay.bench.coordination.objective import Published
from outlay.bench.coordination.proposers import Proposer, RuleBased
from outlay.bench.coordination.referees import FixedSeeds, Meter
from outlay.coordination.confirmation import Band
from outlay.task import Coordination

CONFIRMATION_SEEDS = (101, 202, 303)
EVALUATION_SEED = 7
TOLERANCE = 1e-12

FULL = Coordination(confirmation="band", teams=3, stagnation=10)

CONFIGURATIONS = {
    "full coordination": FULL,
    "single-thread baseline": Coordination(
        confirmation="band", dead_ends=False, ranking=False, teams=1, stagnation=0
    ),
    "no confirmation": replace(FULL, confirmation="none"),
    "no dead-end registry": replace(FULL, dead_ends=False),
    "no ranking": replace(FULL, ranking=False),
    "no reorganisation": replace(FULL, stagnation=0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One configuration's line of the published tables.

    Attributes:
        configuration: Its name.
        reported: Metric that the search believes its champion has.
        clean: Noise-free value of the champion.
        used: Experiments.
        redundant: Re-probes of directions that were, or would have been, retired.
        confirmed: Promotions.
        first_at_optimum: Number of the experiment that reached the optimum; `None` for never.
        retired: Directions retired at the end.
        evaluations: Evaluations of the objective, those of the start included.
    """

    configuration: str
    reported: float
    clean: float
    used: int
    redundant: int
    confirmed: int
    first_at_optimum: int | None
    retired: int
    evaluations: int


_REPORTED = 0.0012065640438283457

PUBLISHED = (
    ("full coordination", _REPORTED, 0.0, 36, 0, 12, 16, 8),
    ("single-thread baseline", _REPORTED, 0.0, 60, 36, 12, 12, 0),
    ("no confirmation", 0.015645836069054717, 0.0, 36, 0, 12, 16, None),
    ("no dead-end registry", _REPORTED, 0.0, 60, 36, 12, 16, None),
    ("no ranking", _REPORTED, 0.0, 36, 0, 12, 16, None),
    ("no reorganisation", _REPORTED, 0.0, 36, 0, 12, 16, None),
)
"""Name, reported, clean, used, redundant, confirmed, first at optimum, retired (if published)."""

INFLATION_RATIO = 12.967265309358583


def run_published(
    settings: Coordination, proposer: Proposer | None = None, offset: int = 0
) -> tuple[Trace, FixedSeeds]:
    """Return one configuration's search and its referee.

    Args:
        settings: Which mechanisms are on.
        proposer: Who proposes; the paper's rule by default.
        offset: Added to all seeds, for other draws of the noise.
    """
    objective = Published()
    confirms = settings.confirmation != "none"
    rule = Band(factor=2.0 if confirms else 0.0, seeds=3 if confirms else 1, scale=objective.scale)
    seeds = CONFIRMATION_SEEDS if confirms else (EVALUATION_SEED,)
    meter = Meter(objective, keeps=False)
    referee = FixedSeeds(meter, rule, [seed + offset for seed in seeds])
    trace = search(objective, proposer or RuleBased(), referee, settings, Plan(experiments=60))
    return trace, referee


def row(name: str, trace: Trace, referee: FixedSeeds) -> Row:
    """Return a configuration's line."""
    champion = trace.board.champion
    clean = Published().clean(champion.point)
    return Row(
        configuration=name,
        reported=champion.metric,
        clean=clean,
        used=len(trace.board.outcomes),
        redundant=trace.redundant,
        confirmed=trace.confirmed,
        first_at_optimum=trace.first_at(0.0),
        retired=trace.retired,
        evaluations=referee.meter.evaluations,
    )


def rows() -> list[Row]:
    """Return all lines, in the order of the paper."""
    return [row(name, *run_published(settings)) for name, settings in CONFIGURATIONS.items()]


def inflation_ratio(table: list[Row]) -> float:
    """Return the inflation without confirmation over that with it."""
    by_name = {line.configuration: line for line in table}
    full, bare = by_name["full coordination"], by_name["no confirmation"]
    return (bare.reported - bare.clean) / (full.reported - full.clean)


def deviations(table: list[Row]) -> list[str]:
    """Return one line for each value that differs from the published one by over 1e-12."""
    found = []
    for line, (name, *expected) in zip(table, PUBLISHED, strict=True):
        measured = (
            line.reported,
            line.clean,
            line.used,
            line.redundant,
            line.confirmed,
            line.first_at_optimum,
            line.retired,
        )
        columns = ("reported", "clean", "used", "redundant", "confirmed", "first", "retired")
        for column, value, wanted in zip(columns, measured, expected, strict=True):
            if wanted is not None and not _close(value, wanted):
                found.append(f"{name}: {column}: found {value!r}, published {wanted!r}")
    ratio = inflation_ratio(table)
    if not _close(ratio, INFLATION_RATIO):
        found.append(f"inflation ratio: found {ratio!r}, published {INFLATION_RATIO!r}")
    return found


def _close(value: float | None, wanted: float) -> bool:
    return value is not None and abs(value - wanted) <= TOLERANCE
