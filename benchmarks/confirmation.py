"""Measures the confirmation rules: false promotions, detections, cost and the final estimate.

    python benchmarks/confirmation.py           # 1,000 runs a row, about three minutes
    python benchmarks/confirmation.py --quick   # 100 runs a row, for CI

Runs of 60 attempts are simulated through the functions that the driver calls. The unit is the
standard deviation of one evaluation of the baseline; rates have 95 % Wilson intervals.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from outlay.coordination.confirmation import (
    Band,
    Evidence,
    Judgement,
    judge,
    paired_difference,
)
from outlay.coordination.contest import Contest
from outlay.task import Coordination

ATTEMPTS = 60
NOISE_SEEDS = 2  # of the baseline, beside its selection score
FINAL_SEEDS = 10
SHARED = 0.7  # part of the variance that a seed shares among configurations, in "shared seeds"

Draw = Callable[[random.Random], float]


def gaussian(rng: random.Random) -> float:
    return rng.gauss(0.0, 1.0)


def uniform(rng: random.Random) -> float:
    return rng.uniform(-math.sqrt(3.0), math.sqrt(3.0))


def t3(rng: random.Random) -> float:
    return rng.gauss(0.0, 1.0) / math.sqrt(rng.gammavariate(1.5, 2.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """How evaluations are noisy."""

    name: str
    draw: Draw = gaussian
    spreads: tuple[float, ...] = (1.0,)  # an attempt's noise sd is drawn from these
    shared: float = 0.0

    def evaluate(self, subject: Subject, seed_effect: float, rng: random.Random) -> float:
        own = math.sqrt(1.0 - self.shared) * self.draw(rng)
        return subject.value + subject.sd * (math.sqrt(self.shared) * seed_effect + own)

    def seed_effect(self, rng: random.Random) -> float:
        return self.draw(rng) if self.shared else 0.0


WORLDS = (
    World(name="Gaussian"),
    World(name="uniform", draw=uniform),
    World(name="t3", draw=t3),
    World(name="unequal variances", spreads=(0.5, 1.0, 2.0)),
    World(name="shared seeds", shared=SHARED),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An attempt's program: its true value and its noise."""

    value: float
    sd: float = 1.0


BASELINE = Subject(value=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A rule and how it is used."""

    name: str
    confirmation: str = "sequential"
    carried: bool = False  # against the metric that promoted the champion, as the testbed does
    stubborn: bool = False  # goes on to the last pair where the rule gives up earlier


SEQUENTIAL = Setting(name="sequential")
BAND = Setting(name="band, incumbent carried", confirmation="band", carried=True)
SETTINGS = (
    SEQUENTIAL,
    Setting(name="sequential, giving up ignored", stubborn=True),
    BAND,
    Setting(name="band, incumbent remeasured", confirmation="band"),
)


class Run:
    """One simulated run, through the contest that the driver keeps."""

    def __init__(self, world: World, setting: Setting, rng: random.Random) -> None:
        self.world, self.setting, self.rng = world, setting, rng
        self.contest = Contest(Coordination(confirmation=setting.confirmation))
        self.selection_effect = world.seed_effect(rng)
        self.champion = BASELINE
        self.metric = 0.0
        self.evaluations = 0
        self.false = 0
        self.challenged: list[int] = []
        self.promoted: dict[int, int] = {}  # attempt to pairs
        self._measure_baseline()

    def _measure_baseline(self) -> None:
        score = self.world.evaluate(BASELINE, self.selection_effect, self.rng)
        fresh = [self.fresh(BASELINE) for _ in range(NOISE_SEEDS)]
        self.contest.noise = self.contest.noise.with_group([score, *fresh])
        self.contest.crown(0, score, fresh)
        self.metric = statistics.fmean([score, *fresh])

    def fresh(self, subject: Subject) -> float:
        """Return one evaluation on a seed that nothing else uses."""
        return self.world.evaluate(subject, self.world.seed_effect(self.rng), self.rng)

    def attempt(self, number: int, value: float) -> None:
        """Make an attempt with a true gain over the baseline, and confirm it if it challenges."""
        subject = Subject(value=value, sd=self.rng.choice(self.world.spreads))
        score = self.world.evaluate(subject, self.selection_effect, self.rng)
        if not self.contest.is_challenger(score):
            return
        self.challenged.append(number)
        ours, judgement = self.confront(subject)
        if judgement.verdict == "promote":
            self.contest.crown(number, score, ours)
            self.promoted[number] = judgement.pairs
            self.false += value <= self.champion.value
            self.champion, self.metric = subject, statistics.fmean(ours)

    def confront(self, subject: Subject) -> tuple[list[float], Judgement]:
        """Return the challenger's fresh values and the last judgement; the contest is closed."""
        contest = self.contest
        contest.queue.append(1)
        challenge = contest.begin(1)
        while True:
            effect = self.world.seed_effect(self.rng)
            ours = self.world.evaluate(subject, effect, self.rng)
            theirs = self.metric
            if not self.setting.carried:
                theirs = self.world.evaluate(self.champion, effect, self.rng)
            self.evaluations += 1 if self.setting.carried else 2
            contest.add_pair(ours, theirs)
            judgement = self._judgement()
            if judgement.verdict != "continue":
                break
        values = [pair[0] for pair in challenge.complete]
        before = contest.noise
        contest.close(promoted=judgement.verdict == "promote")
        if self.setting.carried:  # a carried number is no second group
            contest.noise = before.with_group(values)
        return values, judgement

    def _judgement(self) -> Judgement:
        judgement = self.contest.judgement()
        if self.setting.carried:
            judgement = self._carried_judgement()
        early = judgement.pairs < self.contest.pairs_allowed
        if self.setting.stubborn and judgement.verdict == "reject" and early:
            return replace(judgement, verdict="continue")
        return judgement

    def _carried_judgement(self) -> Judgement:
        values = tuple(pair[0] for pair in self.contest.challenge.complete)
        evidence = Evidence(
            challenger=values,
            incumbent=(self.metric,),
            noise=self.contest.noise,
            source="carried",
        )
        return judge(evidence, Band())


def simulate(values: list[float], world: World, setting: Setting, rng: random.Random) -> Run:
    """Return a run whose attempt i has the true gain `values[i]` over the baseline."""
    run = Run(world, setting, rng)
    for number, value in enumerate(values):
        run.attempt(number, value)
    return run


def rate(hits: int, trials: int) -> str:
    """Return a proportion with its 95 % Wilson interval."""
    if not trials:
        return "-"
    z = 1.96
    centre = (hits + z * z / 2) / (trials + z * z)
    half = z / (trials + z * z) * math.sqrt(hits * (trials - hits) / trials + z * z / 4)
    return f"{hits / trials:.3f} [{centre - half:.3f}, {centre + half:.3f}]"


def null_table(runs: int) -> list[str]:
    lines = [
        "## False promotions",
        "",
        "Share of runs with any false promotion; all 60 attempts are as good as the baseline, or",
        "one unit worse. Confirmation evaluations per run beside it.",
        "",
        "| noise | attempts | rule | any false promotion | challengers | evaluations |",
        "|---|---|---|---|---|---|",
    ]
    for world in WORLDS:
        for setting in SETTINGS:
            lines.append(_null_row(world, setting, 0.0, runs))
    lines.append(_null_row(WORLDS[0], SEQUENTIAL, -1.0, runs))
    lines.append(_null_row(WORLDS[0], BAND, -1.0, runs))
    return lines


def _null_row(world: World, setting: Setting, value: float, runs: int) -> str:
    rng = random.Random(f"null {world.name} {setting.name} {value}")
    done = [simulate([value] * ATTEMPTS, world, setting, rng) for _ in range(runs)]
    false = sum(run.false > 0 for run in done)
    challengers = statistics.fmean(len(run.challenged) for run in done)
    spent = statistics.fmean(run.evaluations for run in done)
    return (
        f"| {world.name} | {value:+.0f} | {setting.name} | {rate(false, runs)} "
        f"| {challengers:.1f} | {spent:.0f} |"
    )


def power_table(runs: int) -> list[str]:
    lines = [
        "## Detections",
        "",
        "One attempt of 60, at a uniformly drawn place, has a true gain; the others are as good",
        "as the baseline. `detected` counts from the attempt, its one selection seed included;",
        "`once challenging` from the first pair. Pairs are means over promotions.",
        "",
        "| noise | rule | gain | detected | once challenging | pairs |",
        "|---|---|---|---|---|---|",
    ]
    for world in WORLDS:
        for gain in (3.0, 2.0, 1.5, 1.0):
            lines.append(_power_row(world, SEQUENTIAL, gain, runs))
    for gain in (3.0, 2.0, 1.0):
        lines.append(_power_row(WORLDS[0], BAND, gain, runs))
    return lines


def _power_row(world: World, setting: Setting, gain: float, runs: int) -> str:
    rng = random.Random(f"power {world.name} {setting.name} {gain}")
    challenged, pairs = 0, []
    for _ in range(runs):
        place = rng.randrange(ATTEMPTS)
        values = [0.0] * ATTEMPTS
        values[place] = gain
        run = simulate(values[: place + 1], world, setting, rng)
        challenged += place in run.challenged
        pairs += [run.promoted[place]] if place in run.promoted else []
    return (
        f"| {world.name} | {setting.name} | {gain:g} | {rate(len(pairs), runs)} "
        f"| {rate(len(pairs), challenged)} | {statistics.fmean(pairs or [0]):.1f} |"
    )


def spending_table(runs: int) -> list[str]:
    lines = [
        "## Evaluations spent on one challenger",
        "",
        "Both sides counted; the tenth challenger of a run, Gaussian noise.",
        "",
        "| true gain | median | mean | 90th percentile |",
        "|---|---|---|---|",
    ]
    for gain in (-2.0, -1.0, -0.5, 0.0, 1.0, 2.0, 3.0, 10.0):
        rng = random.Random(f"spending {gain}")
        spent = sorted(_spent_on(gain, rng) for _ in range(runs))
        lines.append(
            f"| {gain:+g} | {statistics.median(spent):g} | {statistics.fmean(spent):.1f} "
            f"| {spent[int(0.9 * runs)]} |"
        )
    return lines


def _spent_on(gain: float, rng: random.Random) -> int:
    run = Run(WORLDS[0], SEQUENTIAL, rng)
    for _ in range(9):
        pairs = [[gaussian(rng) for _ in range(2)] for _ in range(2)]
        run.contest.noise = run.contest.noise.with_pairs(*pairs)
    run.contest.spent = 9
    run.confront(Subject(value=gain))
    return run.evaluations


def final_table(runs: int) -> list[str]:
    lines = [
        "## The final estimate",
        "",
        "A tenth of the 60 attempts gain 2 units each, one gains 4, the others are drawn from",
        "N(-1, 1). The final champion and the baseline are measured on 10 fresh paired seeds;",
        "`bias` is the mean of (estimate - truth) with its standard error. Beside it the value on",
        "the selection seed, and the pairs that promoted the champion.",
        "",
        "| noise | final: bias | covers | selected: bias | promoting pairs: bias |",
        "|---|---|---|---|---|",
    ]
    return lines + [_final_row(world, runs) for world in WORLDS]


def _final_row(world: World, runs: int) -> str:
    rng = random.Random(f"final {world.name}")
    final, selected, promoting, covered = [], [], [], 0
    for _ in range(runs):
        values = [rng.gauss(-1.0, 1.0) for _ in range(ATTEMPTS - 7)] + [2.0] * 6 + [4.0]
        rng.shuffle(values)
        run = simulate(values, world, SEQUENTIAL, rng)
        truth = run.champion.value
        effects = [world.seed_effect(rng) for _ in range(FINAL_SEEDS)]
        ours = [world.evaluate(run.champion, effect, rng) for effect in effects]
        theirs = [world.evaluate(BASELINE, effect, rng) for effect in effects]
        interval = paired_difference(ours, theirs)
        final.append(interval.mean - truth)
        covered += interval.low <= truth <= interval.high
        if run.promoted:
            selected.append(run.contest.selected - truth)
            promoting.append(run.metric - truth)
    return (
        f"| {world.name} | {_bias(final)} | {rate(covered, runs)} | {_bias(selected)} "
        f"| {_bias(promoting)} |"
    )


def _bias(errors: list[float]) -> str:
    error = statistics.stdev(errors) / math.sqrt(len(errors))
    return f"{statistics.fmean(errors):+.3f} ± {error:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100 runs a row")
    runs = 100 if parser.parse_args().quick else 1000
    started = time.perf_counter()
    for table in (null_table, power_table, spending_table, final_table):
        print("\n".join(table(runs)), end="\n\n", flush=True)
    print(f"{runs} runs a row, {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
