"""A run whose agents cost nothing, so that what is left is Outlay's own bookkeeping.

It goes through everything that a real run goes through: `decide`, `Driver`, `State.apply` and a
`SqliteStore` that is synced to the disk twice an attempt.
"""

from __future__ import annotations

import os
import time
from random import Random
from typing import TYPE_CHECKING, Literal

from outlay.driver import Driver
from outlay.events import Child, Reflected, Ticked
from outlay.execution.job import Evaluated, Result
from outlay.jobs import Place
from outlay.runs import Settings, open_run
from outlay.sqlite_store import SqliteStore
from outlay.task import Budget, Coordination, Evaluator, Metric, Search, Task, Workspace

if TYPE_CHECKING:
    from pathlib import Path

    from outlay.allocation.tree import Node
    from outlay.execution.job import Job
    from outlay.state import State

RUN = "noop"
STEP = 0.02
"""Standard deviation of a child's merit around its parent's; the metric lies in [0, 1]."""
NOISE = 0.005
LOG_PAGES = 1000
"""Pages that SQLite lets its write-ahead log grow to."""
KEEP_THE_LOG = "PRAGMA wal_checkpoint(RESTART)"
"""Empties the write-ahead log but keeps its file: the state in which a long run spends its time.

A file that still grows makes every synced write cost up to twice as much.
"""


class ThreeChildren:
    """Proposes what was asked for, with priors drawn from the run's own stream."""

    def reflect(self, state: State, node: Node, asked: int) -> Reflected:
        random, first = state.random("reflect"), len(state.tree.nodes)
        children = tuple(
            Child(
                node=first + k,
                prior=round(random.random(), 3),
                hypothesis=f"Idea {first + k}, which builds on node {node.id}, helps the metric.",
            )
            for k in range(asked)
        )
        return Reflected(node=node.id, asked=asked, children=children)


class Instant:
    """Answers every job at once: a node is as good as its parent, more or less."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._random = Random(state.sequence)
        self._merits: dict[int, float] = {}
        self._answers: list[Result] = []

    def start(self, job: Job) -> None:
        nodes = [self._node(subject.label) for subject in job.subjects]
        gauss = self._random.gauss
        runs = tuple(
            Evaluated(
                subject=place,
                seed=seed,
                value=self.merit(nodes[place]) + (seed or 0) % 7 * NOISE / 7 + gauss(0, NOISE),
                seconds=0.001,
            )
            for place, seed in job.runs
        )
        self._answers.append(
            Result(id=job.id, status="done", runs=runs, seconds=0.001, sandbox="bwrap")
        )

    def adopt(self, job_id: str, token: str) -> None:
        raise NotImplementedError("nothing is ever in flight between two sittings here")

    def wait(self, timeout: float | None) -> list[Result]:
        answers, self._answers = self._answers, []
        return answers

    def end(self, job_id: str) -> None:
        """Nothing is ever in flight when somebody could ask."""

    def close(self) -> None:
        """There is nothing to close."""

    def merit(self, node: int) -> float:
        if node < 0:
            return 0.5
        if node not in self._merits:
            parent = self.state.tree.nodes[node].parent
            above = 0.5 if parent is None else parent.score
            moved = (0.5 if above is None else above) + self._random.gauss(0, STEP)
            self._merits[node] = min(max(moved, 0.05), 0.95)
        return self._merits[node]

    def _node(self, label: str) -> int:
        return -1 if label == "baseline" else int(label[1:])


def task(attempts: int, confirmation: Literal["sequential", "none"] = "none") -> Task:
    return Task(
        name=RUN,
        question="What does the bookkeeping cost?",
        workspace=Workspace(path="/"),
        evaluator=Evaluator(command=("true", "{seed}")),
        metric=Metric(name="score", direction="maximize", reward="identity"),
        budget=Budget(attempts=attempts),
        coordination=Coordination(confirmation=confirmation),
        search=Search(policy="adaptive"),
    )


class Run:
    """A run in a store of its own that goes on for as many attempts as it is asked to."""

    def __init__(
        self, folder: Path, attempts: int, confirmation: Literal["sequential", "none"] = "none"
    ) -> None:
        folder.mkdir(parents=True)
        self.path = folder / "store.db"
        self.store = SqliteStore(self.path, "write")
        settings = Settings(seed=1, agent="command:noop")
        state, began = open_run(self.store, task(attempts, confirmation), RUN, settings, None)
        for event in began:
            state.apply(event, 0.0)
        self.store.append(RUN, began, at=time.time(), elapsed=0.0)
        self.state = state
        self._driver = Driver(
            self.store,
            RUN,
            state,
            Place(folder=folder, environment=dict(os.environ)),
            Instant(state),
            reflector=ThreeChildren(),
        )

    def go(self, attempts: int) -> None:
        """Carry out so many more attempts."""
        goal = self.state.attempts + attempts
        self._driver.drive(lambda state: state.attempts >= goal and not state.works)

    def build(self, attempts: int) -> None:
        """Carry out so many attempts without waiting for the disk, for a history to start from."""
        connection = self.store._connection
        connection.execute("PRAGMA synchronous=OFF")
        self.go(attempts)
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute(KEEP_THE_LOG)

    def warm(self) -> None:
        """Bring the write-ahead log to the size that it has after a long history."""
        self.store._connection.execute("PRAGMA synchronous=OFF")
        self.store.create("ballast")
        for _ in range(LOG_PAGES):
            self.store.append("ballast", [Ticked()], at=0.0, elapsed=0.0)
        self.store.remove("ballast")
        self.store._connection.execute("PRAGMA synchronous=FULL")
        self.store._connection.execute(KEEP_THE_LOG)

    @property
    def depth(self) -> tuple[float, int]:
        """Mean and largest depth of the executed nodes; the root has 0."""
        depths = [node.depth for node in self.state.tree.nodes if node.attempt]
        return sum(depths) / len(depths), max(depths)
