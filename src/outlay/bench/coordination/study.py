"""Every mechanism switched off in turn, on every landscape, at equal budget."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from outlay.bench.coordination.landscapes import LANDSCAPES, Landscape
from outlay.bench.coordination.loop import Plan, Trace, search
from outlay.bench.coordination.proposers import Foremost
from outlay.bench.coordination.referees import FixedSeeds, FreshSeeds, Meter, Referee
from outlay.coordination.confirmation import Band
from outlay.coordination.estimates import Interval, estimate, paired_difference
from outlay.task import Coordination

if TYPE_CHECKING:
    from collections.abc import Callable

    from outlay.bench.coordination.objective import Objective

FINAL_SEEDS = 10
SEED_STRIDE = 10_000

_SETTINGS = Coordination(confirmation="sequential", teams=3, stagnation=10)
_PLAN = Plan(reordering=True, reopening=True, refreshing=True)
_BAND_SEEDS = 3


class Variant(NamedTuple):
    """One way to search.

    Attributes:
        settings: Mechanisms.
        plan: What is on beyond the published mechanisms.
        band: `None` for the referee of a search; else fixed seeds, and whether the error of both
            sides counts.
        fresh: Whether the champion is reported by an estimate from fresh seeds.
    """

    settings: Coordination = _SETTINGS
    plan: Plan = _PLAN
    band: bool | None = None
    fresh: bool = True


FULL = "everything on"

VARIANTS = {
    FULL: Variant(),
    "confirmation off": Variant(replace(_SETTINGS, confirmation="none")),
    "dead ends off": Variant(replace(_SETTINGS, dead_ends=False)),
    "reopening off": Variant(plan=replace(_PLAN, reopening=False)),
    "ranking off": Variant(replace(_SETTINGS, ranking=False)),
    "reorganisation off": Variant(replace(_SETTINGS, stagnation=0)),
    "teams off": Variant(replace(_SETTINGS, teams=1)),
    "fresh estimate off": Variant(fresh=False),
    "band, both errors": Variant(band=True, fresh=False),
    "band, as published": Variant(band=False, fresh=False),
}


class Measures(NamedTuple):
    """What is measured of one search; values are in metric units.

    Attributes:
        value: Clean value of the final champion; the optimum has 0.
        average: Clean value of the champion, averaged over the budget of evaluations.
        inflation: Reported minus clean value of the final champion.
        false: Promotions of a point that was not better.
        evaluations: Evaluations used, those of a fresh estimate included.
        redundant: Experiments in directions that were, or would have been, retired.
    """

    value: float
    average: float
    inflation: float
    false: float
    evaluations: float
    redundant: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One variant on one landscape: means, and differences from everything on, seed by seed."""

    landscape: str
    variant: str
    means: tuple[Interval, ...]
    differences: tuple[Interval, ...]


def measure(landscape: Landscape, variant: Variant, seed: int) -> Measures:
    """Return one search's measures; equal arguments give equal values."""
    objective = landscape.make(seed)
    meter = Meter(objective, keeps=not landscape.moving)
    referee = _referee(meter, objective, variant, seed * SEED_STRIDE)
    reserve = FINAL_SEEDS if variant.fresh else 0
    plan = replace(
        variant.plan, experiments=landscape.budget // 2, evaluations=landscape.budget - reserve
    )
    trace = search(objective, Foremost(objective), referee, variant.settings, plan)
    champion, time = trace.board.champion, len(trace.board.outcomes)
    clean = objective.clean(champion.point, time)
    reported = champion.metric
    if variant.fresh and isinstance(referee, FreshSeeds):
        reported = referee.final(champion.point, FINAL_SEEDS, time).mean
    return Measures(
        value=clean,
        average=_average(trace, objective.clean(objective.start), landscape.budget),
        inflation=reported - clean,
        false=trace.false,
        evaluations=meter.evaluations,
        redundant=trace.redundant,
    )


def lines(
    seeds: int, workers: int, progress: Callable[[str], None], names: tuple[str, ...] = ()
) -> list[Line]:
    """Return the whole table.

    Args:
        seeds: Runs of each variant on each landscape.
        workers: Processes.
        progress: Called with the name of each landscape that is done.
        names: Landscapes to run; all if empty.
    """
    chosen = [place for place, land in enumerate(LANDSCAPES) if not names or land.name in names]
    tasks = [(place, variant, seeds) for place in chosen for variant in VARIANTS]
    table: list[Line] = []
    with ProcessPoolExecutor(workers) as pool:
        for task, found in zip(tasks, pool.map(_measure_all, tasks), strict=True):
            place, variant, _ = task
            if variant == FULL:
                base = found
            table.append(_line(LANDSCAPES[place].name, variant, found, base))
            if len(table) % len(VARIANTS) == 0:
                progress(LANDSCAPES[place].name)
    return table


def _measure_all(task: tuple[int, str, int]) -> list[Measures]:
    place, variant, seeds = task
    return [measure(LANDSCAPES[place], VARIANTS[variant], seed) for seed in range(seeds)]


def _line(landscape: str, variant: str, found: list[Measures], base: list[Measures]) -> Line:
    columns, bases = list(zip(*found, strict=True)), list(zip(*base, strict=True))
    return Line(
        landscape=landscape,
        variant=variant,
        means=tuple(estimate(column) for column in columns),
        differences=tuple(
            paired_difference(column, other) for column, other in zip(columns, bases, strict=True)
        ),
    )


def _referee(meter: Meter, objective: Objective, variant: Variant, seed: int) -> Referee:
    if variant.band is None:
        return FreshSeeds(meter, variant.settings, seed)
    band = Band(seeds=_BAND_SEEDS, scale=getattr(objective, "sd", None))
    return FixedSeeds(meter, band, range(seed, seed + _BAND_SEEDS), both=variant.band)


def _average(trace: Trace, start: float, budget: int) -> float:
    """Return the mean clean value of the champion over the budget, evaluation by evaluation."""
    total, spent, value = 0.0, 0, start
    for moment in trace.moments:
        total += value * (min(moment.evaluations, budget) - spent)
        spent, value = min(moment.evaluations, budget), moment.clean
    return (total + value * (budget - spent)) / budget


def is_away_from_zero(interval: Interval) -> bool:
    """Return whether an interval is known and lies on one side of 0."""
    if interval.low is None or interval.high is None:
        return False
    return interval.low > 0.0 or interval.high < 0.0
