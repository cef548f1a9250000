"""Kill the driver again and again, resume, and compare with the undisturbed run.

Half of the kills come at a uniform instant, half within 5 ms of a commit or a rename, set off by a
hook inside the driver's process. A run is killed several times before it may finish.

With one worker the resumed run must have the digest of the undisturbed one. With more, the
invariants are checked: every decision in the log is reproduced by replaying it, nothing is lost or
charged twice, the limits hold, and no process is left running.

    uv run python benchmarks/crash.py --kills 200 --workers 1
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from outlay import events
from outlay.digest import digest
from outlay.execution import processes
from outlay.replay import verify
from outlay.sqlite_store import SqliteStore
from outlay.state import State

SCORE = """\
import json, random, sys
arguments = sys.argv[1:]
random.seed(int(arguments[1]) * 7919 + len(arguments))
gain = 0.1 * ("--a" in arguments) - 0.1 * ("--b" in arguments) + 0.05 * ("--c" in arguments)
print(json.dumps({"score": 0.5 + gain + random.gauss(0, 0.01)}))
"""

TASK = """\
[task]
name = "crash"
question = "Does a killed run come to the same end?"
[evaluate]
command = "{python} -I -S score.py --seed {{seed}}"
metric = "score"
direction = "maximize"
[seeds]
final = [1, 2, 3]
selection = [11]
[budget]
attempts = 6
[levers.a]
options = {{ off = "", on = "--a" }}
[levers.b]
options = {{ off = "", on = "--b" }}
[levers.c]
options = {{ off = "", on = "--c" }}
"""

HOOK = """\
import os, signal, sys, threading, time
from outlay import sqlite_store
count, target, delay = 0, int(sys.argv[1]), float(sys.argv[2])

def die():
    time.sleep(abs(delay))
    os.kill(os.getpid(), signal.SIGKILL)

def hooked(function):
    def call(*arguments, **options):
        global count
        count += 1
        if count == target and delay >= 0:
            threading.Thread(target=die, daemon=True).start()
        found = function(*arguments, **options)
        if count == target and delay < 0:
            die()
        return found
    return call

sqlite_store.SqliteStore._run_script = hooked(sqlite_store.SqliteStore._run_script)
os.rename = hooked(os.rename)
from pathlib import Path
Path.rename = hooked(Path.rename)
from outlay.cli import main
sys.argv = ["outlay", *sys.argv[3:]]
sys.exit(main())
"""


def write_task(folder: Path) -> None:
    (folder / "score.py").write_text(SCORE)
    (folder / "outlay.toml").write_text(TASK.format(python=sys.executable))


def command(folder: Path, workers: int, hook: tuple[int, float] | None = None) -> list[str]:
    search = ["search", str(folder), "--json", "--workers", str(workers)]
    if hook is None:
        return [sys.executable, "-m", "outlay", *search]
    return [sys.executable, "-c", HOOK, str(hook[0]), str(hook[1]), *search]


def run_whole(folder: Path, workers: int) -> float:
    began = time.monotonic()
    done = subprocess.run(command(folder, workers), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the run failed with {done.returncode}: {done.stderr}")
    json.loads(done.stdout)
    return time.monotonic() - began


def kill_once(folder: Path, workers: int, typical: float, dice: random.Random) -> str:
    """Start the search, kill its driver, and return how it ended."""
    near = dice.random() < 0.5
    hook = (dice.randint(1, 30), dice.uniform(-0.005, 0.005)) if near else None
    child = subprocess.Popen(
        command(folder, workers, hook), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        child.wait(None if near else dice.uniform(0, typical))
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGKILL)
        child.wait()
    killed = child.returncode == -signal.SIGKILL
    return ("near a commit" if near else "uniform") if killed else "finished first"


def broken(folder: Path, workers: int, expected: str) -> list[str]:
    """Return what is wrong with a run that was killed and resumed, and is over now."""
    with SqliteStore(folder / ".outlay" / "store.db") as store:
        entries = list(store.read("crash"))
    state = State.of(entries)
    wrong = [f"replay: {line}" for line in verify(entries)]
    if workers == 1 and digest(entries) != expected:
        wrong.append("digest differs from the undisturbed run")
    wrong += invariants(state, [entry.event for entry in entries])
    left = [p.pid for p in processes.table() if str(folder) in _command_line(p.process.pid)]
    if left:
        wrong.append(f"processes left running: {left}")
    return wrong


def invariants(state: State, log: list[events.AnyEvent]) -> list[str]:
    wrong = []
    settled = Counter(
        e.attempt
        for e in log
        if isinstance(e, events.AttemptSettled) and e.outcome in ("scored", "failed", "lost")
    )
    if state.ended is None:
        wrong.append("the run has not ended")
    if any(count != 1 for count in settled.values()) or len(settled) != state.attempts:
        wrong.append(f"attempts settled other than once: {settled}")
    if state.ledger.spent.attempts != state.attempts or state.attempts > 6:
        wrong.append(f"{state.ledger.spent.attempts} charged, {state.attempts} launched, limit 6")
    if state.ledger.reservations or state.works:
        wrong.append(f"still held: {state.ledger.reservations}")
    if any(status in ("failed", "lost") for status in (n.status for n in state.tree.nodes)):
        wrong.append("an attempt of a sound program failed or was lost")
    return wrong


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def campaign(kills: int, workers: int, seed: int, per_run: int = 8) -> tuple[Counter[str], int]:
    """Kill until `kills` kills have hit; return what ended how, and the number of bad runs."""
    dice, counts, bad = random.Random(f"{seed}/{workers}"), Counter[str](), 0
    with tempfile.TemporaryDirectory(prefix="outlay-crash-") as top:
        reference = Path(top, "reference")
        reference.mkdir()
        write_task(reference)
        typical = run_whole(reference, workers)
        with SqliteStore(reference / ".outlay" / "store.db") as store:
            expected = digest(list(store.read("crash")))
        while counts["uniform"] + counts["near a commit"] < kills:
            folder = Path(top, f"run{sum(counts.values())}")
            folder.mkdir()
            write_task(folder)
            for _ in range(per_run):
                counts[kill_once(folder, workers, typical, dice)] += 1
            run_whole(folder, workers)
            counts["runs"] += 1
            for line in broken(folder, workers, expected):
                bad += 1
                print(f"{folder.name}: {line}", file=sys.stderr)
            if os.isatty(2):
                print(f"\r{dict(counts)}", end="", file=sys.stderr)
    return counts, bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    failed = 0
    for workers in arguments.workers:
        began = time.monotonic()
        counts, bad = campaign(arguments.kills, workers, arguments.seed)
        failed += bad
        print(
            f"{workers} workers: {counts['uniform']} kills at uniform instants, "
            f"{counts['near a commit']} within 5 ms of a commit or rename, "
            f"{counts['finished first']} came too late; {counts['runs']} runs resumed, "
            f"{bad} broken ({time.monotonic() - began:.0f} s)"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
