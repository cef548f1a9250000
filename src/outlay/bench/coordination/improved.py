"""The improved rules on the published objective, over many draws of the noise."""

from __future__ import annotations

from dataclasses import dataclass

from outlay.bench.coordination.loop import Plan, search
from outlay.bench.coordination.objective import Published
from outlay.bench.coordination.proposers import RuleBased
from outlay.bench.coordination.published import FULL, run_published
from outlay.bench.coordination.referees import FreshSeeds, Meter
from outlay.coordination.estimates import Interval, estimate
from outlay.task import Coordination

PUBLISHED_INFLATION = 0.0012
EVALUATIONS = 3 * (36 + 1)
"""What the paper's confirmation uses: its 36 experiments and the start, on 3 seeds each."""

SEED_STRIDE = 10_000

_SETTINGS = Coordination(confirmation="sequential", teams=3, stagnation=10)
_PLAN = Plan(experiments=60, reopening=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Improvement:
    """Both sets of rules over the same number of noise draws.

    Attributes:
        draws: Noise draws.
        inflation: Mean of (fresh estimate - clean value), improved rules.
        selected: Mean of (metric that promoted the champion - clean value), improved rules.
        published: Mean of (reported - clean value), the paper's rules.
        evaluations: Most evaluations of the objective in any run, fresh estimate included.
        searching: Mean evaluations before the fresh estimate.
        published_evaluations: Evaluations of the paper's rules in each run.
        optimum: Runs whose champion is the optimum, improved rules.
        published_optimum: The same under the paper's rules.
    """

    draws: int
    inflation: Interval
    selected: Interval
    published: Interval
    evaluations: int
    searching: float
    published_evaluations: int
    optimum: int
    published_optimum: int


def compare(draws: int) -> Improvement:
    """Return both sets of rules on draws 0 to `draws - 1`.

    The improved rules spend what the search leaves of the paper's evaluations on the final
    estimate of the champion, on seeds that selected nothing.
    """
    ours = [_improved(draw * SEED_STRIDE) for draw in range(draws)]
    theirs = [_published(draw * SEED_STRIDE) for draw in range(draws)]
    return Improvement(
        draws=draws,
        inflation=estimate([run.reported - run.clean for run in ours]),
        selected=estimate([run.selected - run.clean for run in ours]),
        published=estimate([run.reported - run.clean for run in theirs]),
        evaluations=max(run.evaluations for run in ours),
        searching=sum(run.searching for run in ours) / draws,
        published_evaluations=max(run.evaluations for run in theirs),
        optimum=sum(run.clean == 0.0 for run in ours),
        published_optimum=sum(run.clean == 0.0 for run in theirs),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    reported: float
    selected: float
    clean: float
    searching: int
    evaluations: int


def _improved(seed: int) -> _Run:
    objective = Published()
    meter = Meter(objective, keeps=True)
    referee = FreshSeeds(meter, _SETTINGS, seed)
    trace = search(objective, RuleBased(), referee, _SETTINGS, _PLAN)
    champion, searching = trace.board.champion, meter.evaluations
    final = referee.final(champion.point, EVALUATIONS - searching, len(trace.board.outcomes))
    return _Run(
        reported=final.mean,
        selected=champion.metric,
        clean=objective.clean(champion.point),
        searching=searching,
        evaluations=meter.evaluations,
    )


def _published(seed: int) -> _Run:
    trace, referee = run_published(FULL, offset=seed)
    champion = trace.board.champion
    return _Run(
        reported=champion.metric,
        selected=champion.metric,
        clean=Published().clean(champion.point),
        searching=referee.meter.evaluations,
        evaluations=referee.meter.evaluations,
    )
