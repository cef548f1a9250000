"""What adapter and proxy add to an attempt, and how soon a person sees what an agent does.

    python benchmarks/agents.py
    python benchmarks/agents.py --blocks 40 --clients script,codex,claude
    python benchmarks/agents.py --blocks 0 --events 60

Part 1 runs three things in turn, over the same scripted model: a client by hand (the adapter's own
command line, straight to the model, in a new copy of the workspace and a new home); an attempt
without an agent; an attempt with the client, behind bridge and proxy, its exchanges recorded.
What adapter and proxy add is the third less the other two. `script` is a client that does
nothing but ask twice and write a file; the others are the real ones on PATH.
Part 2 draws a search on a terminal while its agent tells the time, and looks when that is drawn.

Printed are medians with 95 % bootstrap intervals. On a busy machine processor time says more.
"""

from __future__ import annotations

import argparse
import os
import pty
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from metering import measured, running  # noqa: E402
from tests.model_server import Asked, Turn  # noqa: E402
from wrapper import Lab, Spent, interval, spent  # noqa: E402

from outlay.agents.clients.contract import Request  # noqa: E402
from outlay.agents.clients.registry import by_name  # noqa: E402
from outlay.execution.job import AgentWork  # noqa: E402
from outlay.execution.pool import LocalPool  # noqa: E402

if TYPE_CHECKING:
    from outlay.execution.sandbox import Kind

TARGET_ATTEMPT, TARGET_EVENT = 150.0, 1000.0

ASKS = """\
import http.client, json, sys
host = sys.argv[1].removeprefix("http://")
http_ = http.client.HTTPConnection(host, timeout=30)
for part in ("first", "second"):
    body = json.dumps({"model": "m", "stream": True, "input": part})
    http_.request("POST", "/v1/responses", body, {"authorization": "Bearer " + sys.argv[2]})
    assert b"response.completed" in http_.getresponse().read()
open("level.txt", "w").write("1")
print(json.dumps({"type": "end", "ok": True}))
"""

TELLS = """\
import json, sys, time
for number in range(int(sys.argv[1])):
    time.sleep(0.3 + 0.037 * (number % 10))
    print(json.dumps({"type": "tool", "text": f"clock {time.time():.3f} end"}), flush=True)
time.sleep(1)
open("level.txt", "w").write("1")
"""

SEARCH = """\
[task]
name = "clock"
question = "What time is it?"
[evaluate]
command = "python3 score.py"
metric = "score"
direction = "maximize"
[budget]
attempts = 1
[sandbox]
read = ["{agent}"]
"""

SCORE = "import json, random\nprint(json.dumps({'score': random.random()}))\n"


def writes(asked: Asked) -> Turn:
    """Have a file written, and say so; the script of the server."""
    return Turn(text="done") if asked.results else Turn(shell="echo 1 > level.txt")


class Attempts(Lab):
    """Makes jobs with and without a client, and runs the client by hand."""

    def __init__(self, root: Path, client: str, url: str) -> None:
        super().__init__(root, SCORE)
        self.root, self.url = root, url
        command = ("python3", "-I", "-c", ASKS, "{url}", "{key}") if client == "script" else ()
        self.work = AgentWork(
            client="command" if client == "script" else client,
            command=command,
            model="fake-1",
            url=url,
            text="Write a file.",
        )

    def alone(self) -> None:
        with tempfile.TemporaryDirectory(dir=self.root) as home:
            folder = Path(home, "work")
            shutil.copytree(self.workspace, folder)
            asked = by_name(self.work.client).invoke(
                Request(
                    prompt=self.work.text,
                    folder=str(folder),
                    home=home,
                    command=self.work.command,
                    model=self.work.model,
                    url=self.url,
                    key="k",
                )
            )
            for name, text in asked.files.items():
                Path(home, name).parent.mkdir(parents=True, exist_ok=True)
                Path(home, name).write_text(text)
            subprocess.run(
                asked.command,
                cwd=folder,
                env=self.environment | asked.environment,
                input=asked.stdin.encode(),
                capture_output=True,
                check=True,
            )
            assert (folder / "level.txt").exists()

    def with_client(self, kind: Kind) -> None:
        with LocalPool(self.run_folder, 1) as pool:
            pool.start(self.job(kind)._replace(agent=self.work))
            (result,) = pool.wait(None)
        assert result.status == "done", result
        assert result.agent is not None
        assert result.agent.requests == 2


def attempts(root: Path, clients: list[str], blocks: int, kind: Kind) -> None:
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'benchmarks'}"}
    server = (sys.executable, "-m", "tests.model_server", "--script", "agents:writes")
    print("| client | by hand | attempt | with client | added (95 %) | added CPU |")
    print("|---|---|---|---|---|---|")
    with running(server, env=environment) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        for client in clients:
            lab = Attempts(root / client, client, url)
            ways = [lab.alone, partial(lab.attempt, kind), partial(lab.with_client, kind)]
            print(f"| {client} | {row(measured([partial(spent, way) for way in ways], blocks))} |")
    print(f"milliseconds, medians; sandbox {kind}; target: at most {TARGET_ATTEMPT:.0f} added\n")


def row(columns: list[list[Spent]]) -> str:
    walls = [f"{statistics.median(one.wall for one in column):.0f}" for column in columns]
    added = [b.wall - a.wall - hand.wall for hand, a, b in zip(*columns, strict=True)]
    cpu = [b.cpu - a.cpu - hand.cpu for hand, a, b in zip(*columns, strict=True)]
    low, high = interval(added)
    apart = f"{statistics.median(added):.0f} ({low:.0f} to {high:.0f})"
    return f"{' | '.join(walls)} | {apart} | {statistics.median(cpu):.0f}"


def events(root: Path, count: int) -> None:
    """Print how long after an agent tells something it is drawn."""
    task, agent = root / "clock", root / "agent.py"
    task.mkdir()
    (task / "score.py").write_text(SCORE)
    (task / "outlay.toml").write_text(SEARCH.format(agent=agent))
    agent.write_text(TELLS)
    named = f"command:{sys.executable} -I {agent} {count}"
    command = [Path(sys.executable).with_name("outlay"), "search", task, "--agent", named]
    screen, terminal = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
    search = subprocess.Popen(
        command, env=environment, stdin=terminal, stderr=terminal, stdout=subprocess.DEVNULL
    )
    os.close(terminal)
    waits = sorted(drawn(screen).values())
    os.close(screen)
    search.wait()
    print(
        f"of {count} events {len(waits)} drawn, after {1000 * statistics.median(waits):.0f} ms "
        f"(median), {1000 * waits[-1]:.0f} ms (longest); target {TARGET_EVENT:.0f} ms"
    )


def drawn(screen: int) -> dict[str, float]:
    """Return when each clock was first seen, in seconds after its time."""
    seen: dict[str, float] = {}
    rest = b""
    while True:
        try:
            piece = os.read(screen, 1 << 16)
        except OSError:  # how a terminal says that nobody writes to it any more
            return seen
        now, rest = time.time(), (rest + piece)[-100_000:]
        for told in re.findall(rb"clock ([0-9.]+) end", rest):
            seen.setdefault(told.decode(), now - float(told))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=20, help="0 leaves part 1 out")
    parser.add_argument("--clients", default="script")
    parser.add_argument("--events", type=int, default=30, help="0 leaves part 2 out")
    parser.add_argument("--sandbox", default="bwrap")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.blocks:
            attempts(Path(folder), options.clients.split(","), options.blocks, options.sandbox)
        if options.events:
            events(Path(folder), options.events)
    print(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
