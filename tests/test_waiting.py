"""A challenger that the budget cannot compare is not judged; a raised limit compares it first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import outlay
from outlay import Budget, Lever, Metric, Option, Task, Workspace
from outlay.runs import Settings
from outlay.session import sitting
from outlay.task import Evaluator

if TYPE_CHECKING:
    from pathlib import Path


class Clock:
    """Moves by half a second whenever a configuration is evaluated."""

    def __init__(self) -> None:
        self.now = 0.0

    def evaluate(self, configuration: dict[str, str], seed: int | None) -> float:
        self.now += 0.5
        return 0.5 + 0.2 * (configuration["a"] == "on") + (seed or 0) % 7 * 1e-3


def research(seconds: float) -> Task:
    return Task(
        name="waiting",
        question="Does a gain wait for its comparison?",
        workspace=Workspace(path="/"),
        evaluator=Evaluator(),
        metric=Metric(name="score", direction="maximize"),
        budget=Budget(seconds=seconds),
        levers=(Lever(name="a", options=(Option(name="off"), Option(name="on", args=("-a",)))),),
    )


def drive(task: Task, clock: Clock, store: Path) -> outlay.Run:
    with sitting(task, "waiting", Settings(), store=store, function=clock.evaluate) as driver:
        # The driver's clock is the evaluations' own, so that the limit is hit where it should be.
        driver._monotonic = lambda: clock.now
        driver._began = clock.now
        driver.engine._clock = lambda: clock.now
        driver.drive()
        return outlay.Run("waiting", list(driver.store.read("waiting")))


def test_an_unaffordable_comparison_waits_and_goes_first_when_the_limit_is_raised(
    tmp_path: Path,
) -> None:
    clock, store = Clock(), tmp_path / "store.db"
    short = drive(research(15.2), clock, store).summary()
    assert short.status == "budget"
    assert short.untested == [1]
    assert short.champion is not None
    assert short.champion.node == 0
    longer = drive(research(60.0), clock, store).summary()
    assert longer.untested == []
    assert longer.champion is not None
    assert longer.champion.node == 1
    assert longer.status == "exhausted"
