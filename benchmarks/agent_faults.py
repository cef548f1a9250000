"""Every fault of an agent and its provider with every real client, each through a whole search.

    OUTLAY_CLIENTS=.clients python benchmarks/agent_faults.py
    OUTLAY_CLIENTS=.clients python benchmarks/agent_faults.py --client codex --fault cut

The clients are those that `.ci/clients` installed, the model is the scripted one, the faults are
those of `tests/agent_faults.py`; what the command agent does itself, a real client is made to do
by a call of its shell. Of every search must hold: the charge is what the server told (by estimate
where an answer broke off), no value that no program earned, no process left, the user's files as
they were, the key in no file. Ends with 1 if any of it does not hold.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests import agent_faults as faults  # noqa: E402
from tests.model_server import ModelServer  # noqa: E402

CLIENTS = ("codex", "claude", "opencode")
SECONDS = 40
"""Limit of an attempt with a fault that does not end by itself."""


class Cell(NamedTuple):
    """What came of one fault with one client."""

    ends: tuple[str, ...]
    tokens: int
    seconds: float
    broken: tuple[str, ...]


def carry_out(client: str, fault: faults.Fault) -> Cell:
    """Search once in a new folder, and look at everything that must hold."""
    with tempfile.TemporaryDirectory() as root:
        task = faults.prepare(Path(root), SECONDS)
        before = faults.files_of(task)
        with ModelServer(fault.script(shell=True)) as server:
            if fault.fault == "gone":
                server.__exit__()
            command = [Path(sys.executable).with_name("outlay"), "search", task, "--json"]
            command += ["--agent", client, "--model", "fake-1", "--policy", "linear"]
            command += ["--base-url", server.url, "--key", faults.VARIABLE]
            begun = time.monotonic()
            done = subprocess.run(
                command, env=_environment(), capture_output=True, text=True, check=False
            )
            seconds = time.monotonic() - begun
            told = server.told(faults.KEY)
        charge = "told" if fault.mode == "silent" else fault.charged
        checks = {
            faults.charged_wrongly(task, told, charge): True,
            "a value that was not earned": faults.unearned(task),
            "the user's files changed": faults.files_of(task) != before,
            "processes left": faults.left(root, faults.MARK),
            "the key was printed": faults.KEY in done.stdout + done.stderr,
            "the key is in a file": faults.holding(task / ".outlay", faults.KEY),
            f"no attempt: {done.stderr.strip()[-200:]}": not faults.settled(task),
        }
        broken = tuple(text for text, found in checks.items() if text and found)
        return Cell(faults.ends(task), sum(faults.charged(task)), seconds, broken)


def _environment() -> dict[str, str]:
    folder = Path(os.environ["OUTLAY_CLIENTS"]).resolve()
    places = (f"{folder}/node_modules/.bin", f"{folder}/bin", os.environ["PATH"])
    return os.environ | {"PATH": os.pathsep.join(places), faults.VARIABLE: faults.KEY}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--client", action="append", choices=CLIENTS, help="only these")
    parser.add_argument("--fault", action="append", help="only those whose name has this in it")
    given = parser.parse_args()
    if not os.environ.get("OUTLAY_CLIENTS"):
        parser.error("OUTLAY_CLIENTS names no folder with the clients; see .ci/clients")
    chosen = [f for f in faults.FAULTS if any(n in f.name for n in given.fault or [""])]
    clients = given.client or CLIENTS
    print(f"| what goes wrong | {' | '.join(clients)} |")
    print("|---" * (1 + len(clients)) + "|")
    broken = []
    for fault in chosen:
        cells = [carry_out(client, fault) for client in clients]
        print(f"| {fault.name} | {' | '.join(map(_shown, cells))} |", flush=True)
        for client, cell in zip(clients, cells, strict=True):
            broken += [f"{client}, {fault.name}: {text}" for text in cell.broken]
    print(f"\n{len(chosen) * len(clients)} searches; what did not hold: {len(broken)}")
    print("\n".join(broken))
    sys.exit(bool(broken))


def _shown(cell: Cell) -> str:
    ends = ", ".join(f"`{end}`" for end in cell.ends) or "none"
    return f"{ends}; {cell.tokens:,} tokens, {cell.seconds:.0f} s"


if __name__ == "__main__":
    main()
