"""Made-up events for the tests of stores: one of every kind, with every field filled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlay import events
from outlay.budget import Charge
from outlay.task import Budget

if TYPE_CHECKING:
    from outlay.events import AnyEvent

_CHARGE = Charge(attempts=1, tokens_in=2, tokens_cached=3, tokens_out=4, usd=0.5, seconds=6.5)
_LIMITS = Budget(attempts=1, tokens=2, usd=0.5, seconds=3.5)
_DESIGN = events.Design(arms=("ema", "dropout"), seeds=4)

_EVALUATIONS = (
    events.Evaluation(node=1, seed=2, value=-0.1, seconds=0.3, metrics={"ü": 1e-300}),
    events.Evaluation(node=1, seed=3, fault="none\n", role="repeat"),
)

_AGENT = events.AgentUse(
    client="codex",
    version="1.2",
    model="m",
    requests=3,
    reasoning=4,
    cache_write=5,
    source="stream",
    complete=False,
)

_REVISED = events.Child(
    node=1,
    kind="continue",
    changes={"lever": "on"},
    axis="lever",
    direction="on",
    prior=0.25,
    hypothesis='It "helps".',
    rationale="'quoted'; \\ and \x00",
    risks="–",
)
_DRAFTED = events.Child(
    node=2, plan="# Plan\n", edits=(("a", "b"),), summary="A.\n", design=_DESIGN
)


def one_of_each() -> list[AnyEvent]:
    """Return one event of every kind, in the order of `AnyEvent`; every field is filled in one."""
    return [*_sitting(), *_measuring(), *_reflecting(), *_attempting()]


def _sitting() -> list[AnyEvent]:
    return [
        events.RunStarted(
            uid="u",
            task="{}",
            task_hash="h",
            files="f",
            seed=1,
            budget=_LIMITS,
            dirty=True,
            agent="codex",
            workers=2,
        ),
        events.SittingStarted(pid=1, host="h", workers=2),
        events.BudgetChanged(budget=_LIMITS),
        events.Ticked(),
        events.StopRequested(),
    ]


def _measuring() -> list[AnyEvent]:
    return [
        events.MeasurementLaunched(
            work="m1",
            trial=1,
            purpose="baseline",
            runs=((0, 1), (-1, 2)),
            attempt=3,
            checks=(("bare", 1),),
            reserve=_CHARGE,
        ),
        events.MeasurementSettled(
            work="m1",
            trial=1,
            outcome="failed",
            reason="crash",
            detail="line",
            evaluations=_EVALUATIONS,
            charge=_CHARGE,
            sandbox="bwrap",
        ),
        events.ScaleFixed(center=0.1, scale=1 / 3),
    ]


def _reflecting() -> list[AnyEvent]:
    return [
        events.Reflected(node=0, asked=2, children=(_REVISED,), reason="why", charge=_CHARGE),
        events.ReflectionLaunched(
            work="r1",
            trial=2,
            node=0,
            asked=2,
            problems=("no",),
            sent_back="r0",
            reserve=_CHARGE,
        ),
        events.ReflectionSettled(
            work="r1",
            trial=2,
            outcome="lost",
            reason="agent",
            detail="line",
            children=(_DRAFTED,),
            rejected=(events.Rejected(reason="no", design=_DESIGN, saved=2.0),),
            charge=_CHARGE,
            agent=_AGENT,
            sandbox="bwrap",
        ),
    ]


def _attempting() -> list[AnyEvent]:
    return [
        events.AttemptLaunched(attempt=1, trial=2, node=1, reserve=_CHARGE),
        events.AttemptSettled(
            attempt=1,
            trial=2,
            outcome="failed",
            reason="crash",
            detail="line",
            evaluations=_EVALUATIONS,
            files="f",
            charge=_CHARGE,
            sandbox="bwrap",
            agent=_AGENT,
            summary="I did it.",
        ),
        events.Judged(
            attempt=1, promoted=True, pairs=2, estimate=0.1, low=0.05, high=0.15, reason="why"
        ),
        events.RunEnded(status="exhausted", reason="why"),
    ]
