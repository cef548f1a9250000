"""What the attempt process costs beside running the command by hand, and how workers scale.

    python benchmarks/wrapper.py            both parts
    python benchmarks/wrapper.py --blocks 40 --seconds 20

Part 1 runs, in turn, the evaluator by hand and as a job (written down, `outlay attempt` started by
the pool, its result read) on the same workspace, and prints the median difference and the median
of the ratios with 95 % bootstrap intervals. On a busy machine processor time says more.
Part 2 counts attempts that sleep one second, done by 1 and by 4 workers in the same wall clock.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from outlay.execution import sandbox, snapshot
from outlay.execution.environment import child_environment
from outlay.execution.job import Job, Subject
from outlay.execution.pool import LocalPool

if TYPE_CHECKING:
    from collections.abc import Callable

SCRIPT = "print('{\"score\": 0.5}')\n"
SLEEP = "import time\ntime.sleep(1)\n" + SCRIPT
TARGET_MS, TARGET_RATIO = 100.0, 3.6


class Lab:
    """Makes jobs over one workspace."""

    def __init__(self, root: Path, script: str) -> None:
        self.workspace, self.run_folder = root / "workspace", root / "run"
        self.workspace.mkdir(parents=True)
        (self.workspace / "score.py").write_text(script)
        self.files = snapshot.take(self.workspace, self.run_folder / "objects")
        self.numbers = itertools.count(1)
        self.command = (sys.executable, "score.py")
        self.environment = child_environment((), 1)

    def job(self, kind: sandbox.Kind) -> Job:
        name = f"a{next(self.numbers)}.1"
        return Job(
            id=name,
            token=os.urandom(8).hex(),
            folder=str(self.run_folder / "jobs" / name),
            objects=str(self.run_folder / "objects"),
            subjects=(Subject(label="n1", files=self.files),),
            runs=((0, 1),),
            metric="score",
            command=self.command,
            environment=self.environment,
            sandbox=kind,
            mask=(str(self.workspace),),
        )

    def by_hand(self) -> None:
        subprocess.run(
            self.command,
            cwd=self.workspace,
            env=self.environment,
            capture_output=True,
            check=True,
        )

    def attempt(self, kind: sandbox.Kind) -> None:
        """Run one job as the driver does: written down, started, waited for."""
        with LocalPool(self.run_folder, 1) as pool:
            pool.start(self.job(kind))
            (result,) = pool.wait(None)
        assert result.status == "done", result


class Spent(NamedTuple):
    """Milliseconds of wall clock, and of processor time of everything that was started."""

    wall: float
    cpu: float


def spent(work: Callable[[], None]) -> Spent:
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    work()
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(1000 * wall, 1000 * cpu)


def interval(values: list[float]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the median."""
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(values, k=len(values))) for _ in range(2000))
    return medians[50], medians[1949]


def cost(root: Path, blocks: int) -> None:
    lab = Lab(root / "cost", SCRIPT)
    print("| sandbox | by hand | as a job | difference (95 %) | ratio (95 %) | CPU difference |")
    print("|---|---|---|---|---|---|")
    for kind in (kind for kind in sandbox.KINDS if sandbox.works(kind)):
        job = partial(lab.attempt, kind)
        lab.by_hand()
        job()
        pairs = [(spent(lab.by_hand), spent(job)) for _ in range(blocks)]
        print(row(kind, pairs))
    print(f"milliseconds, medians; target: difference at most {TARGET_MS:.0f}")
    print(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")


def row(kind: str, pairs: list[tuple[Spent, Spent]]) -> str:
    hand, ours = (
        statistics.median(one.wall for one in column) for column in zip(*pairs, strict=True)
    )
    apart = [ours.wall - hand.wall for hand, ours in pairs]
    ratios = [ours.wall / hand.wall for hand, ours in pairs]
    cpu = statistics.median(ours.cpu - hand.cpu for hand, ours in pairs)
    (low, high), (ratio_low, ratio_high) = interval(apart), interval(ratios)
    return (
        f"| {kind} | {hand:.1f} | {ours:.1f}"
        f" | {statistics.median(apart):.1f} ({low:.1f} to {high:.1f})"
        f" | {statistics.median(ratios):.2f} ({ratio_low:.2f} to {ratio_high:.2f}) | {cpu:.1f} |"
    )


def done_within(lab: Lab, workers: int, wall: float) -> int:
    """Return how many attempts that many workers finish in the wall clock."""
    kind, count = sandbox.best(), 0
    deadline = time.monotonic() + wall
    with LocalPool(lab.run_folder, workers) as pool:
        while (left := deadline - time.monotonic()) > 0:
            while pool.free:
                pool.start(lab.job(kind))
            count += sum(result.status == "done" for result in pool.wait(left))
    return count


def scaling(root: Path, wall: float) -> None:
    lab = Lab(root / "scaling", SLEEP)
    one, four = done_within(lab, 1, wall), done_within(lab, 4, wall)
    print(f"attempts that sleep 1 s, done in {wall:.0f} s: 1 worker {one}, 4 workers {four}")
    print(f"ratio {four / one:.2f}, target at least {TARGET_RATIO}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=20.0, help="0 leaves part 2 out")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cost(Path(folder), options.blocks)
        if options.seconds:
            scaling(Path(folder), options.seconds)


if __name__ == "__main__":
    main()
