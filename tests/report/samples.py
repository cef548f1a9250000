"""Runs to look at: in process over a synthetic function, and real ones over a small program."""

from __future__ import annotations

import random
import subprocess
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from outlay import events, runs
from outlay.events import Entry
from outlay.session import sitting
from outlay.task import (
    Budget,
    Coordination,
    Evaluator,
    Lever,
    Metric,
    Option,
    Search,
    Seeds,
    Task,
    Workspace,
    to_json,
)

if TYPE_CHECKING:
    from pathlib import Path

    from outlay.state import State

NASTY = "<script>alert(1)</script>"
GAINS = {"depth": (0.0, 0.03, 0.01), "scale": (0.0, 0.02), "optimizer": (0.0, 0.05, -0.2)}
GAINS |= {"dropout": (0.0, 0.0, -0.04), "augment": (0.0, 0.01, 0.0), "warmup": (0.0, 0.0)}


def lever(name: str, count: int) -> Lever:
    arguments = [(), *((f"--{name}", str(k)) for k in range(1, count))]
    return Lever(
        name=name,
        options=tuple(Option(name=f"o{k}", args=args) for k, args in enumerate(arguments)),
    )


def task(attempts: int = 5, **changes: object) -> Task:
    made = Task(
        name="six",
        question="Which switches raise the accuracy?",
        workspace=Workspace(path="/nowhere"),
        evaluator=Evaluator(command=("python3", "train.py", "--seed", "{seed}")),
        metric=Metric(name="accuracy", direction="maximize"),
        budget=Budget(attempts=attempts),
        levers=tuple(lever(name, len(gains)) for name, gains in GAINS.items()),
        coordination=Coordination(dead_ends=False),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def accuracy(configuration: dict[str, str], seed: int | None) -> float:
    noise = random.Random(f"{seed}/{sorted(configuration.items())}").gauss(0, 0.01)
    if configuration["optimizer"] == "o2" and configuration["depth"] == "o2":
        raise RuntimeError(f"loss is nan {NASTY}")
    return 0.6 + noise + sum(GAINS[k][int(v[1:])] for k, v in configuration.items())


def flat(configuration: dict[str, str], seed: int | None) -> float:
    return random.Random(f"{seed}/{sorted(configuration.items())}").gauss(0.5, 0.01)


def broken(configuration: dict[str, str], seed: int | None) -> float:
    raise RuntimeError(f"no data {NASTY}")


def drive(research: Task, function=accuracy, **options) -> tuple[State, list[Entry]]:
    """Return the state and the log of a whole run in process."""
    settings = runs.Settings()
    options = {"store": None, **options}
    with sitting(research, research.name, settings, function=function, **options) as driver:
        driver.drive()
        return driver.state, list(driver.store.read(research.name))


@cache
def finished(attempts: int) -> tuple[State, list[Entry]]:
    """Return a finished run over the six levers; not to be changed."""
    return drive(task(attempts))


def started(research: Task | None = None, agent: str = "levers") -> list[Entry]:
    """Return the log of a run in which nothing has happened yet."""
    research = research or task()
    event = events.RunStarted(
        uid="u",
        task=to_json(research),
        task_hash="h",
        files="f" * 64,
        seed=0,
        agent=agent,
        budget=research.budget,
    )
    return log(event)


def log(*recorded: events.AnyEvent, after: int = 0) -> list[Entry]:
    """Return the events as entries, one step each, numbered on from `after`."""
    return [
        Entry(sequence=k, step=k, at=1e9 + k, elapsed=float(k), event=event)
        for k, event in enumerate(recorded, after + 1)
    ]


# A real program in a git repository.

PROGRAM = """
import argparse, json, random
from part import BONUS
p = argparse.ArgumentParser()
p.add_argument("--seed", type=int)
p.add_argument("--lift", type=float, default=0.0)
a = p.parse_args()
base = 0.5
print("on seed", a.seed)
print(json.dumps({"score": base + BONUS + a.lift + random.Random(a.seed).gauss(0, 0.01)}))
"""

PATCH = """--- a/score.py
+++ b/score.py
@@ -7,3 +7,3 @@
 a = p.parse_args()
-base = 0.5
+base = 0.6
 print("on seed", a.seed)
"""


def git(folder: Path, *arguments: str) -> str:
    names = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main")
    done = subprocess.run(
        ("git", *names, "-C", str(folder), *arguments), capture_output=True, text=True, check=True
    )
    return done.stdout


def repository(folder: Path) -> Path:
    """Make a repository whose subfolder `work` holds the program, and return that subfolder."""
    work = folder / "work"
    work.mkdir(parents=True)
    (folder / "README").write_text("top\n")
    (work / "score.py").write_text(PROGRAM.lstrip("\n"))
    (work / "part.py").write_text("BONUS = 0.0\n")
    (work / "better.py").write_text("BONUS = 0.2\n")
    (work / "base.patch").write_text(PATCH)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return work


def program_task(work: Path) -> Task:
    return Task(
        name="real",
        question="What raises the score?",
        workspace=Workspace(path=str(work)),
        evaluator=Evaluator(command=("python3", "score.py", "--seed", "{seed}")),
        metric=Metric(name="score", direction="maximize"),
        budget=Budget(attempts=4),
        seeds=Seeds(final=(1001, 1002)),
        search=Search(policy="greedy"),
        levers=(
            Lever(
                name="all",
                options=(
                    Option(name="off"),
                    Option(
                        name="on",
                        args=("--lift", "0.1"),
                        files={"part.py": "better.py"},
                        patch="base.patch",
                    ),
                ),
            ),
        ),
    )


def drive_program(work: Path) -> Path:
    """Run the search over the real program and return its store."""
    path = runs.default_store(work)
    with sitting(program_task(work), "real", runs.Settings(), store=path) as driver:
        driver.drive()
    return path
