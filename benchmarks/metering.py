"""What the metering proxy adds to each request of an agent, and to the start of an attempt.

    python benchmarks/metering.py
    python benchmarks/metering.py --blocks 40

Part 1 sends the same streamed request (40 kB asked, 1,000 characters answered in 84 events) to a
scripted model directly, through the proxy, and through bridge and proxy, in short blocks whose
order rotates, over connections that stay open. The proxy records every exchange to a file.
Part 2 starts, in turn, processes with and without the proxy, and with and without the bridge.

Printed are medians of the differences and of the ratios of two blocks of one round with 95 %
bootstrap intervals. On a busy machine processor time says more.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.model_server import Asked, Turn  # noqa: E402
from wrapper import Spent, interval, spent  # noqa: E402

from outlay.execution.metering.bridge import bridged  # noqa: E402
from outlay.execution.metering.provider import Upstream  # noqa: E402
from outlay.execution.metering.proxy import Proxy  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from outlay.agents.clients.contract import Usage

REQUESTS = 20
TARGET_REQUEST, TARGET_START = 5.0, 150.0
BODY = json.dumps({"model": "m", "stream": True, "input": "word " * 8000}).encode()

PLAIN = "import outlay.execution.attempt, outlay.execution.evaluation"
WITH_PROXY = f"""{PLAIN}
from outlay.execution.metering.provider import Upstream
from outlay.execution.metering.proxy import Proxy
with Proxy(Upstream("http://127.0.0.1:1", "k"), secret="s", told=print, patience=0):
    pass
"""


def answer(_: Asked) -> Turn:
    """Answer everything alike; the script of the server."""
    return Turn(text="word " * 200)


def ignore(_: Usage) -> None:
    """Stand in for who keeps the usage."""


@contextmanager
def running(command: tuple[str, ...], **given: object) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **given)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Client:
    """One connection that stays open."""

    def __init__(self, port: int) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def block(self) -> float:
        """Return milliseconds a request."""
        begun = time.perf_counter()
        for _ in range(REQUESTS):
            self._http.request("POST", "/v1/responses", BODY, {"authorization": "Bearer s"})
            assert b"response.completed" in self._http.getresponse().read()
        return 1000 * (time.perf_counter() - begun) / REQUESTS


def requests(folder: Path, blocks: int) -> None:
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'benchmarks'}"}
    server = (sys.executable, "-m", "tests.model_server", "--script", "metering:answer")
    with ExitStack() as stack:
        process = stack.enter_context(running(server, env=environment))
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        proxies = [
            stack.enter_context(
                Proxy(
                    Upstream(url, "key"),
                    secret="s",
                    told=ignore,
                    patience=0.0,
                    record=folder / "exchanges.jsonl.gz",
                    socket=place,
                )
            )
            for place in (None, folder / "model.sock")
        ]
        port = free_port()
        shell = ("sh", "-c", "echo ready; exec sleep 3600")
        bridge = stack.enter_context(running(bridged(shell, port, str(folder / "model.sock"))))
        assert bridge.stdout is not None
        bridge.stdout.readline()
        ports = [int(url.rpartition(":")[2]), proxies[0].port, port]
        rounds = measured([Client(port).block for port in ports], blocks)
    print("| way | ms a request | added ms (95 %) | ratio (95 %) |\n|---|---|---|---|")
    for name, column in zip(("direct", "proxy", "bridge and proxy"), rounds, strict=True):
        print(f"| {name} | {statistics.median(column):.2f} | {compared(rounds[0], column)} |")
    print(f"target: at most {TARGET_REQUEST:.0f} ms added\n")


def measured(ways: list[Callable[[], float]], blocks: int) -> list[list[float]]:
    """Return one column for each way, a block a round; the order rotates."""
    columns: list[list[float]] = [[] for _ in ways]
    for way in ways:
        way()
    for number in range(blocks):
        for at in range(len(ways)):
            chosen = (number + at) % len(ways)
            columns[chosen].append(ways[chosen]())
    return columns


def compared(plain: list[float], ours: list[float]) -> str:
    apart = [b - a for a, b in zip(plain, ours, strict=True)]
    ratios = [b / a for a, b in zip(plain, ours, strict=True)]
    cells = (
        f"{statistics.median(values):.2f} ({low:.2f} to {high:.2f})"
        for values, (low, high) in ((apart, interval(apart)), (ratios, interval(ratios)))
    )
    return " | ".join(cells)


def starts(folder: Path, blocks: int) -> None:
    true = ("true",)
    pairs = {
        "proxy": ((sys.executable, "-c", PLAIN), (sys.executable, "-c", WITH_PROXY)),
        "bridge": (true, bridged(true, free_port(), str(folder / "nobody"))),
    }
    print("| start of | without, ms | with, ms | added ms (95 %) | ratio (95 %) | added CPU ms |")
    print("|---|---|---|---|---|---|")
    total = 0.0
    for name, commands in pairs.items():
        runs = [partial(subprocess.run, command, check=True) for command in commands]
        rounds = [[spent(run) for run in runs] for _ in range(blocks + 1)][1:]
        plain, ours = ([one[at] for one in rounds] for at in (0, 1))
        total += statistics.median(b.wall - a.wall for a, b in zip(plain, ours, strict=True))
        print(f"| {name} | {started(plain, ours)} |")
    print(f"together {total:.0f} ms; target with an adapter: {TARGET_START:.0f} ms an attempt")


def started(plain: list[Spent], ours: list[Spent]) -> str:
    walls = [[one.wall for one in column] for column in (plain, ours)]
    cpu = statistics.median(b.cpu - a.cpu for a, b in zip(plain, ours, strict=True))
    before, after = (statistics.median(column) for column in walls)
    return f"{before:.1f} | {after:.1f} | {compared(*walls)} | {cpu:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        requests(Path(folder), options.blocks)
        starts(Path(folder), options.blocks)
    print(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
