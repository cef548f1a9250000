"""What one attempt costs the driver, beside Optuna and beside plain SQLite.

    uv run --group peers python benchmarks/overhead.py [--quick]

All arms run in one process, in rounds of blocks whose order rotates, because the time of a synced
write moves with whatever else the machine does; a figure is the median over rounds of the ratio
of two blocks of the same round. Exit code 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple, Protocol

from noop import RUN, Run

if TYPE_CHECKING:
    from collections.abc import Callable

EDGE = 200
"""Attempts at the beginning and at the end of a run that are compared."""
SPARE = 10
"""Attempts left in the budget, so that a reopened run has a first decision to make."""


class Arm(Protocol):
    def go(self, attempts: int) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    sizes: tuple[int, ...]
    optuna_history: int
    load_trials: int
    rounds: int
    reopenings: int


FULL = Options(
    sizes=(100, 1_000, 10_000, 100_000),
    optuna_history=1_000,
    load_trials=10_000,
    rounds=10,
    reopenings=5,
)
QUICK = Options(sizes=(100, 1_000), optuna_history=100, load_trials=1_000, rounds=4, reopenings=3)


class Target(NamedTuple):
    name: str
    found: float
    allowed: float
    unit: str = ""

    def line(self) -> str:
        verdict = "met" if self.found <= self.allowed else "MISSED"
        return f"{verdict:7}{self.name}: {self.found:.3g}{self.unit}, allowed {self.allowed:g}"


def main() -> int:
    options, parent = _options()
    folder = Path(tempfile.mkdtemp(prefix="overhead-", dir=parent))
    try:
        targets = [t for size in options.sizes for t in one_size(folder, size, options)]
        confirmed(folder, options)
        targets += reopening(folder, options)
    finally:
        shutil.rmtree(folder)
    print("\nTargets")
    print("\n".join(target.line() for target in targets))
    return int(any(target.found > target.allowed for target in targets))


def one_size(folder: Path, size: int, options: Options) -> list[Target]:
    """Compare the last attempts of a run of this size with the other arms."""
    from peers import Ledger, Study, journal, rdb

    block = EDGE // options.rounds
    history = size - EDGE if size > EDGE else size
    here = folder / str(size)
    budget = history + EDGE + SPARE
    own = Run(here / "outlay", budget)
    own.build(history)
    fresh = Run(here / "fresh", budget)
    fresh.warm()
    fresh.go(1)
    peers = min(history, options.optuna_history)
    arms: dict[str, Arm] = {
        "outlay": own,
        "fresh": fresh,
        "ledger": Ledger(here / "ledger", history),
        "sqlite": Study(rdb(here / "rdb" / "optuna.db"), peers),
        "journal": Study(journal(here / "journal" / "optuna.log"), peers),
    }
    os.sync()  # what the histories left unwritten would be waited for by the first blocks
    times = interleave(arms, options.rounds, block)
    for run in (own, fresh):
        run.store.close()
    mean, deepest = own.depth
    print(
        f"\n{history} recorded attempts (Optuna: {peers} trials), {options.rounds} rounds of "
        f"{block}; tree of {len(own.state.tree.nodes)} nodes, depth {mean:.1f} mean, {deepest} max"
    )
    names = {
        "outlay": "Outlay",
        "fresh": f"Outlay, first {EDGE} attempts of such a run",
        "ledger": "two rows, two commits",
        "sqlite": "Optuna, SQLite",
        "journal": "Optuna, journal",
    }
    for arm, name in names.items():
        low, middle, high = spread(times["outlay"], times[arm])
        milliseconds = 1e3 * median(times[arm]) / block
        print(
            f"  {name:42} {milliseconds:8.3f} ms an attempt; Outlay over it "
            f"{middle:6.3f} [{low:.3f}, {high:.3f}]"
        )
    print(f"  {own.path.stat().st_size / own.state.attempts:.0f} bytes an attempt")
    return _targets(size, times)


def _targets(size: int, times: dict[str, list[float]]) -> list[Target]:
    def ratio(arm: str) -> float:
        return spread(times["outlay"], times[arm]).middle

    found = [
        Target(f"{size}: over two plain commits", ratio("ledger"), 1.5),
        Target(f"{size}: over Optuna's SQLite", ratio("sqlite"), 0.1),
        Target(f"{size}: over Optuna's journal", ratio("journal"), 0.5),
    ]
    flat = {10_000: 1.2, 100_000: 1.5}
    if size in flat:
        name = f"{size}: last {EDGE} over first {EDGE}"
        found.append(Target(name, ratio("fresh"), flat[size]))
    return found


def interleave(arms: dict[str, Arm], rounds: int, block: int) -> dict[str, list[float]]:
    """Return each arm's seconds, block by block; every round begins with another arm."""
    names, times = list(arms), {name: [] for name in arms}
    gc.collect()
    for turn in range(rounds):
        for place in range(len(names)):
            name = names[(turn + place) % len(names)]
            began = time.perf_counter()
            arms[name].go(block)
            times[name].append(time.perf_counter() - began)
    return times


class Spread(NamedTuple):
    low: float
    middle: float
    high: float


def spread(ours: list[float], theirs: list[float]) -> Spread:
    """Return the median of the block ratios between their quartiles."""
    ratios = sorted(a / b for a, b in zip(ours, theirs, strict=True))
    return Spread(ratios[len(ratios) // 4], median(ratios), ratios[-1 - len(ratios) // 4])


def confirmed(folder: Path, options: Options) -> None:
    """Print what sequential confirmation adds, its fresh evaluations counted in."""
    budget = options.rounds * 50 + SPARE
    arms: dict[str, Arm] = {
        kind: Run(folder / kind, budget, kind) for kind in ("sequential", "none")
    }
    for arm in arms.values():
        arm.go(1)
    times = interleave(arms, options.rounds, 50)
    low, middle, high = spread(times["sequential"], times["none"])
    measured = arms["sequential"].state.measurements
    print(
        f"\nWith sequential confirmation, {measured} measurements in {options.rounds * 50} "
        f"attempts: {middle:.2f} [{low:.2f}, {high:.2f}] times the cost without"
    )


def reopening(folder: Path, options: Options) -> list[Target]:
    """Compare reopening up to the first decision with Optuna's load; fresh processes."""
    from peers import build_rdb

    optuna = folder / "load" / "optuna.db"
    build_rdb(optuna, options.load_trials)
    optuna_bytes = optuna.stat().st_size / options.load_trials
    print(f"\nReopening, each in a process of its own, {options.reopenings} times in turn")
    targets = []
    for size in [n for n in options.sizes if n >= options.load_trials]:
        store = folder / str(size) / "outlay" / "store.db"
        ours, theirs, processor, memory = [], [], [], 0.0
        for _ in range(options.reopenings):
            seconds, used, memory = measured("reopen_outlay", store)
            ours.append(seconds)
            processor.append(used)
            if size == options.load_trials:
                theirs.append(measured("reopen_optuna", optuna)[0])
        print(
            f"  Outlay, {size} attempts: {median(ours):.3f} s ({median(processor):.3f} s of "
            f"processor time), {memory:.0f} MB resident at most"
        )
        if theirs:
            print(f"  Optuna, {size} trials in SQLite: {median(theirs):.3f} s")
            ratio = spread(ours, theirs).middle
            targets.append(Target(f"reopening {size} over Optuna's load", ratio, 1 / 20))
            size_ratio = store.stat().st_size / size / optuna_bytes
            print(f"  Optuna: {optuna_bytes:.0f} bytes a trial")
            targets.append(Target(f"bytes an attempt over Optuna's, {size}", size_ratio, 1.0))
        else:
            targets.append(Target(f"reopening {size}", median(ours), 3.0, " s"))
            targets.append(Target(f"reopening {size}, resident", memory, 300.0, " MB"))
    return targets


def measured(what: str, path: Path) -> tuple[float, float, float]:
    """Return seconds, seconds of processor time and peak megabytes of a function below."""
    command = [sys.executable, __file__, "--measure", what, str(path)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds, processor, megabytes = output.split()
    return float(seconds), float(processor), float(megabytes)


def reopen_outlay(path: str) -> None:
    from noop import ThreeChildren

    from outlay.decision import decide
    from outlay.runs import load_state
    from outlay.sqlite_store import SqliteStore

    began, used = time.perf_counter(), time.process_time()
    with SqliteStore(path, "write") as store:
        state = load_state(store, RUN, for_good=True)
        decided = decide(state, state.elapsed, ThreeChildren())
    seconds = time.perf_counter() - began
    if decided is None:
        raise SystemExit(f"{path}: nothing to decide; the run has ended")
    print(seconds, time.process_time() - used, peak_memory())


def reopen_optuna(path: str) -> None:
    from peers import load_rdb

    began, used = time.perf_counter(), time.process_time()
    load_rdb(Path(path))
    print(time.perf_counter() - began, time.process_time() - used, peak_memory())


def peak_memory() -> float:
    """Return the largest resident set of this process so far, megabytes.

    `getrusage` would count what the parent had before it became this program.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


MEASURABLE: dict[str, Callable[[str], None]] = {
    "reopen_outlay": reopen_outlay,
    "reopen_optuna": reopen_optuna,
}


def _options() -> tuple[Options, str | None]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run of about a minute")
    parser.add_argument("--sizes", type=int, nargs="+", help="recorded attempts")
    parser.add_argument("--optuna-history", type=int, help="most trials recorded before")
    parser.add_argument("--rounds", type=int, help=f"rounds that {EDGE} attempts are split into")
    parser.add_argument("--dir", help="folder on the disk to measure")
    parser.add_argument("--measure", nargs=2, metavar=("WHAT", "PATH"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        MEASURABLE[given.measure[0]](given.measure[1])
        sys.exit()
    base = QUICK if given.quick else FULL
    options = Options(
        sizes=tuple(given.sizes or base.sizes),
        optuna_history=given.optuna_history or base.optuna_history,
        load_trials=base.load_trials,
        rounds=given.rounds or base.rounds,
        reopenings=base.reopenings,
    )
    return options, given.dir or os.environ.get("TMPDIR")


if __name__ == "__main__":
    sys.exit(main())
