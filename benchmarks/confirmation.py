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
from dataclasses import dataclass, field

from outlay.coordination.challenge import Standing, is_challenger
from outlay.coordination.confirmation import (
    Band,
    Evidence,
    Judgement,
    Rule,
    Sequential,
    judge,
    paired_difference,
)
from outlay.coordination.noise import Noise

ATTEMPTS = 60
BASELINE_SEEDS = 3
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


@dataclass(slots=True)
class Champion:
    """The champion of the moment and what was seen of it."""

    subject: Subject
    values: list[float]
    selection: float
    metric: float


@dataclass(slots=True)
class Run:
    """What happened in one simulated run."""

    champion: Champion
    noise: Noise = field(default_factory=Noise)
    rejected: int = 0
    evaluations: int = 0
    false: int = 0
    challenged: list[int] = field(default_factory=list)
    promoted: dict[int, int] = field(default_factory=dict)  # attempt to pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A rule and how it is used."""

    name: str
    rule: Rule
    carried: bool = False
    stubborn: bool = False  # goes on to the last pair where the rule gives up earlier


SEQUENTIAL = Setting(name="sequential", rule=Sequential())
SETTINGS = (
    SEQUENTIAL,
    Setting(name="sequential, giving up ignored", rule=Sequential(), stubborn=True),
    Setting(name="band, incumbent carried", rule=Band(), carried=True),
    Setting(name="band, incumbent remeasured", rule=Band()),
)


def simulate(values: list[float], world: World, setting: Setting, rng: random.Random) -> Run:
    """Return a run whose attempt i has the true gain `values[i]` over the baseline."""
    selection_effect = world.seed_effect(rng)
    run = Run(_baseline(world, selection_effect, rng))
    run.noise = Noise().with_group(run.champion.values)
    for attempt, value in enumerate(values):
        subject = Subject(value=value, sd=rng.choice(world.spreads))
        score = world.evaluate(subject, selection_effect, rng)
        champion = run.champion
        standing = Standing(mean=statistics.fmean(champion.values), selection=champion.selection)
        if is_challenger(score, standing, run.noise):
            run.challenged.append(attempt)
            _confirm(run, attempt, subject, score, world, setting, rng)
    return run


def _baseline(world: World, selection_effect: float, rng: random.Random) -> Champion:
    subject = Subject(value=0.0)
    values = [world.evaluate(subject, world.seed_effect(rng), rng) for _ in range(BASELINE_SEEDS)]
    selection = world.evaluate(subject, selection_effect, rng)
    return Champion(subject, values, selection, statistics.fmean(values))


def _confirm(
    run: Run,
    attempt: int,
    subject: Subject,
    score: float,
    world: World,
    setting: Setting,
    rng: random.Random,
) -> None:
    champion = run.champion
    ours, theirs, judgement = confront(
        subject, champion, run.noise, run.rejected, world, setting, rng
    )
    run.evaluations += len(ours) + len(theirs)
    if setting.carried:
        run.noise = run.noise.with_group(ours)
    else:
        run.noise = run.noise.with_pairs(ours, theirs)
    champion.values.extend(theirs)
    if judgement.verdict == "promote":
        run.promoted[attempt] = judgement.pairs
        run.false += subject.value <= champion.subject.value
        run.champion = Champion(subject, ours, score, statistics.fmean(ours))
    else:
        run.rejected += 1


def confront(
    subject: Subject,
    champion: Champion,
    noise: Noise,
    index: int,
    world: World,
    setting: Setting,
    rng: random.Random,
) -> tuple[list[float], list[float], Judgement]:
    """Return the values of challenger and incumbent, and the last judgement."""
    ours: list[float] = []
    theirs: list[float] = []
    while True:
        effect = world.seed_effect(rng)
        ours.append(world.evaluate(subject, effect, rng))
        if not setting.carried:
            theirs.append(world.evaluate(champion.subject, effect, rng))
        evidence = Evidence(
            challenger=tuple(ours),
            incumbent=(champion.metric,) if setting.carried else tuple(theirs),
            source="carried" if setting.carried else "remeasured",
            noise=noise,
            index=index,
        )
        judgement = judge(evidence, setting.rule)
        stop = judgement.verdict != "continue"
        if setting.stubborn and judgement.verdict == "reject":
            stop = judgement.pairs == setting.rule.max_pairs
        if stop:
            return ours, theirs, judgement


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
    lines.append(_null_row(WORLDS[0], SETTINGS[2], -1.0, runs))
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
        lines.append(_power_row(WORLDS[0], SETTINGS[2], gain, runs))
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
    world = WORLDS[0]
    champion = _baseline(world, 0.0, rng)
    noise = Noise().with_group(champion.values)
    for _ in range(9):
        pairs = [[gaussian(rng) for _ in range(2)] for _ in range(2)]
        noise = noise.with_pairs(*pairs)
    ours, theirs, _ = confront(Subject(value=gain), champion, noise, 9, world, SEQUENTIAL, rng)
    return len(ours) + len(theirs)


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
        champion, truth = run.champion, run.champion.subject.value
        effects = [world.seed_effect(rng) for _ in range(FINAL_SEEDS)]
        ours = [world.evaluate(champion.subject, effect, rng) for effect in effects]
        theirs = [world.evaluate(Subject(value=0.0), effect, rng) for effect in effects]
        interval = paired_difference(ours, theirs)
        final.append(interval.mean - truth)
        covered += interval.low <= truth <= interval.high
        if run.promoted:
            selected.append(champion.selection - truth)
            promoting.append(champion.metric - truth)
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
