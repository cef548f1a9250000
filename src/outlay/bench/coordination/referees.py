"""Who says whether a candidate is better than the champion: fixed seeds, or fresh ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from outlay.coordination.confirmation import Band, Evidence, judge
from outlay.coordination.contest import Contest
from outlay.coordination.estimates import Interval, estimate
from outlay.coordination.noise import Noise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlay.bench.coordination.objective import Objective, Point
    from outlay.bench.coordination.proposers import Champion
    from outlay.task import Coordination

MOVED = 4.0  # sds between two means of at least two evaluations: one in ten thousand
NOISE_SEEDS = 2  # fresh evaluations of the start beside its selection score, as in a search


class Meter:
    """Evaluates an objective and counts.

    Args:
        objective: What is evaluated.
        keeps: Whether a point's value on a seed is kept and costs nothing the next time.

    Attributes:
        evaluations: Evaluations so far.
    """

    def __init__(self, objective: Objective, *, keeps: bool) -> None:
        self.evaluations = 0
        self._objective = objective
        self._keeps = keeps
        self._known: dict[tuple[Point, int], float] = {}

    def observe(self, point: Point, seed: int, time: int) -> float:
        """Return the value of a point on a seed at experiment `time`."""
        key = (point, seed)
        if key in self._known:
            return self._known[key]
        self.evaluations += 1
        value = self._objective.observe(point, seed, time)
        if self._keeps:
            self._known[key] = value
        return value


class Assessment(NamedTuple):
    """What was measured of a candidate, its distance from the champion, and the verdict."""

    metric: float
    delta: float
    improved: bool


class Referee(Protocol):
    """Measures points and decides about promotions."""

    @property
    def meter(self) -> Meter:
        """What evaluates and counts."""

    @property
    def sd(self) -> float | None:
        """Standard deviation of one evaluation, given or estimated; `None` while unknown."""

    def start(self, point: Point) -> float:
        """Return the metric of the start point, which becomes champion."""

    def assess(self, point: Point, champion: Champion, time: int) -> Assessment:
        """Return what follows from measuring a candidate at experiment `time`."""

    def refresh(self, point: Point, time: int) -> bool:
        """Measure the champion again if the way allows; return whether its value has moved."""


class FixedSeeds:
    """The published way: every candidate on the same seeds, against the champion's old metric.

    Args:
        meter: What evaluates.
        rule: Band with a scale; factor 0 accepts any gain.
        seeds: Seeds of every candidate.
        both: Count the champion's error too: its values on these seeds instead of their mean.
    """

    def __init__(
        self, meter: Meter, rule: Band, seeds: Sequence[int], *, both: bool = False
    ) -> None:
        self.meter = meter
        self.sd = rule.scale
        self._rule = rule
        self._seeds = seeds
        self._both = both
        self._values: tuple[float, ...] = ()

    def start(self, point: Point) -> float:
        """Return the mean over the seeds."""
        self._values = self._measured(point, 0)
        return _mean(self._values)

    def assess(self, point: Point, champion: Champion, time: int) -> Assessment:
        """Return the mean over the seeds and what the band says about it."""
        values = self._measured(point, time)
        evidence = Evidence(
            challenger=values,
            incumbent=self._values if self._both else (champion.metric,),
            noise=Noise(),
            source="remeasured" if self._both else "carried",
        )
        judgement = judge(evidence, self._rule)
        improved = judgement.verdict == "promote"
        if improved:
            self._values = values
        return Assessment(_mean(values), judgement.estimate, improved)

    def refresh(self, point: Point, time: int) -> bool:
        """Return `False`: the published way carries the champion's metric for good."""
        return False

    def _measured(self, point: Point, time: int) -> tuple[float, ...]:
        return tuple(self.meter.observe(point, seed, time) for seed in self._seeds)


class FreshSeeds:
    """The way of `outlay search`: one selection seed, then pairs of fresh seeds for challengers.

    Args:
        meter: What evaluates.
        settings: Rule of confirmation.
        seed: First of the seeds to use; streams do not overlap while seeds are 10,000 apart.
    """

    def __init__(self, meter: Meter, settings: Coordination, seed: int) -> None:
        self.meter = meter
        self.contest = Contest(settings)
        self._selection = seed
        self._fresh = seed
        self._nodes = 0

    @property
    def sd(self) -> float | None:
        """Standard deviation of one evaluation, from everything measured more than once."""
        return self.contest.noise.sd

    def start(self, point: Point) -> float:
        """Return the mean of the start's fresh evaluations."""
        score = self.meter.observe(point, self._selection, 0)
        fresh = [self.meter.observe(point, self._fresh_seed(), 0) for _ in range(NOISE_SEEDS)]
        self.contest.noise = self.contest.noise.with_group([score, *fresh])
        self.contest.crown(0, score, fresh)
        return self.contest.standing.mean

    def assess(self, point: Point, champion: Champion, time: int) -> Assessment:
        """Return the selection score, or the mean of the pairs if it was worth a challenge."""
        contest = self.contest
        score = self.meter.observe(point, self._selection, time)
        if not contest.is_challenger(score):
            return Assessment(score, score - contest.standing.mean, False)
        if contest.settings.confirmation == "none":
            delta = score - contest.selected
            contest.crown(self._next_node(), score, [])
            return Assessment(score, delta, True)
        return self._challenge(point, champion, score, time)

    def final(self, point: Point, count: int, time: int) -> Interval:
        """Return the estimate of a point from evaluations that selected nothing."""
        seeds = [self._fresh_seed() for _ in range(count)]
        return estimate([self.meter.observe(point, seed, time) for seed in seeds])

    def refresh(self, point: Point, time: int) -> bool:
        """Measure the champion again in place of what was known; return whether it has moved.

        It has if the two means are more than `MOVED` standard deviations of one evaluation apart.
        """
        contest = self.contest
        known, sd = contest.standing.mean, contest.noise.sd or 0.0
        score = self.meter.observe(point, self._selection, time)
        fresh = [self.meter.observe(point, self._fresh_seed(), time) for _ in range(NOISE_SEEDS)]
        contest.crown(contest.champion, score, fresh)
        return abs(_mean(fresh) - known) > MOVED * sd

    def _challenge(self, point: Point, champion: Champion, score: float, time: int) -> Assessment:
        contest = self.contest
        node = self._next_node()
        contest.queue.append(node)
        challenge = contest.begin(node)
        while True:
            seed = self._fresh_seed()
            contest.add_pair(
                self.meter.observe(point, seed, time),
                self.meter.observe(champion.point, seed, time),
            )
            judgement = contest.judgement()
            if judgement is not None and judgement.verdict != "continue":
                break
        fresh = [ours for ours, _ in challenge.complete]
        improved = judgement.verdict == "promote"
        contest.close(promoted=improved)
        if improved:
            contest.crown(node, score, fresh)
        return Assessment(_mean(fresh), judgement.estimate, improved)

    def _next_node(self) -> int:
        self._nodes += 1
        return self._nodes

    def _fresh_seed(self) -> int:
        self._fresh += 1
        return self._fresh


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
