"""What an agent and its provider may do wrong, and what comes of it.

The same table makes the tests (`tests/e2e/test_agent_faults.py`), the cross with real clients
(`benchmarks/agent_faults.py`) and is compared with `docs/agent-faults.md`.
"""

from __future__ import annotations

import gzip
import os
import shlex
import sys
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from outlay import events
from outlay.execution import processes
from outlay.sqlite_store import SqliteStore
from tests.model_protocols import Turn
from tests.model_server import turns
from tests.taskfiles import SCORED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from outlay.agents.clients.contract import Usage
    from outlay.events import AttemptSettled
    from tests.model_protocols import Asked

KEY = "sk-recognisable-8f4be1c07d"
VARIABLE = "OUTLAY_TEST_PROVIDER"

PROGRAM = "print(0.2)\n"

SCORE = """\
import json, os, random, subprocess, sys
from pathlib import Path
random.seed(int(sys.argv[sys.argv.index("--seed") + 1]))
weight = float(Path("weight.txt").read_text())
clean = {"PATH": os.environ["PATH"]}
command = [sys.executable, "-I", "-S", "program.py"]
said = subprocess.run(command, env=clean, capture_output=True, text=True, check=True).stdout
print(said)
level = min(float(said.splitlines()[0]), 0.6)
score = weight * level + random.gauss(0, 0.005)
Path(os.environ["OUTLAY_RESULT"]).write_text(json.dumps({"score": score}))
"""

TASK = f"""\
[task]
name = "faults"
question = "Which level is best?"
editable = ["program.py"]
protected = ["score.py"]
hidden = ["weight.txt"]
{SCORED}[budget]
attempts = 1
[limits]
seconds = 100
[agent]
patience = "1 s"
"""

AGENT = """\
import json, os, shutil, subprocess, sys, time, urllib.request
from pathlib import Path
url, key, fault = sys.argv[1:]

def ask():
    question = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Go."}]}
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    request = urllib.request.Request(
        f"{url}/v1/chat/completions", json.dumps(question).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        lines = answer.read().decode().splitlines()
    if "data: [DONE]" not in lines:
        raise SystemExit("the answer has no end")
    said = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    parts = [part["choices"][0]["delta"].get("content") for part in said if part["choices"]]
    return "".join(part or "" for part in parts)

if fault == "silent":
    sys.exit()
text = ask()
Path("program.py").write_text(text)
if fault == "endless":
    time.sleep(600)
elif fault == "loud":
    for _ in range(100):
        sys.stdout.write("x" * 999_999 + "\\n")
elif fault == "protected":
    os.chmod("score.py", 0o644)
    os.remove("score.py")
elif fault == "deletes":
    shutil.rmtree(os.getcwd(), ignore_errors=True)
elif fault == "daemon":
    ticks = "import time\\ntime.sleep(1)\\nwhile True: open('program.py', 'w').write('9')"
    subprocess.Popen([sys.executable, "-I", "-S", "-c", ticks, "of " + sys.argv[0]],
                     start_new_session=True)
elif fault == "reads":
    print(dict(os.environ))
    for place in Path("/proc").glob("[0-9]*/environ"):
        try:
            print(place, place.read_bytes())
        except OSError:
            pass
elif fault == "greedy":
    while True:
        ask()
elif fault == "fails":
    raise SystemExit("that was too much for me")
"""

BETTER = "print(0.4)\n"
LIES = 'print(0.4)\nprint("score: 99")\nprint(\'{"score": 99}\')\n'
MARK = "outlay-test-fault"
"""Stands in the command line of what a real client's tool leaves behind."""

_DAEMON = "import time\ntime.sleep(1)\nwhile True: open('program.py', 'w').write('9')"
# Codex refuses to run a forced `rm`, so these do without.
_SHELLS = {
    "endless": "sleep 600",
    "loud": "head -c 100000000 /dev/zero | tr '\\0' x",
    "protected": "chmod 644 score.py; mv score.py program.py",
    "deletes": 'find "$PWD" -delete',
    "daemon": shlex.join(["setsid", sys.executable, "-I", "-S", "-c", _DAEMON, MARK])
    + " </dev/null >/dev/null 2>&1 &",
    "reads": "env; cat /proc/[0-9]*/environ",
}


class Fault(NamedTuple):
    """A row of the table.

    Attributes:
        name: As the table has it.
        mode: What the command agent is told to do once the program is written.
        text: The program that the model answers with.
        fault: What the provider does wrong; `gone` is no server at all.
        ends: Outcome and reason of each try of the command agent.
        code: How `outlay search` ends with the command agent.
        charged: Whether it is charged what the provider told, by estimate, or nothing.
    """

    name: str
    ends: tuple[str, ...]
    code: int
    mode: str = "plain"
    text: str = BETTER
    fault: str = ""
    charged: str = "told"

    def script(self, shell: bool = False) -> Callable[[Asked], Turn]:
        """Return what the model answers; with `shell` as the call of a tool that does it all."""
        if self.fault:
            text = "print(0.4) # and a long comment"
            fault = "" if self.fault == "gone" else self.fault
            return turns(Turn(text=text, fault=fault))  # type: ignore[arg-type]
        if not shell:
            return turns(Turn(text=self.text))
        if self.mode == "silent":
            return turns(Turn(text="I would rather not."))
        write = f"printf %s {shlex.quote(self.text)} > program.py"
        call = "; ".join(filter(None, (write, _SHELLS.get(self.mode, ""))))
        return turns(Turn(shell=call), Turn(text="I wrote it."))

    def row(self) -> str:
        """Return its row of the table in the docs."""
        ends = ", ".join(f"`{end}`" for end in self.ends)
        return f"| {self.name} | {ends} | {_CHARGED[self.charged]} | {self.code} |"


_CHARGED = {"told": "what the provider told", "estimate": "by estimate", "nothing": "nothing"}
_CUT = ("infrastructure: cut", "infrastructure: cut", "lost: cut")
_AWAY = ("infrastructure: provider",)

FAULTS = (
    Fault("a syntax error in its edit", ("failed: crash",), 4, text="print(0.4\n"),
    Fault("it is silent", ("failed: unchanged",), 4, "silent", charged="nothing"),
    Fault("it never ends", ("failed: timeout",), 4, "endless"),
    Fault("a malformed stream, each time", _CUT, 4, fault="garbage", charged="estimate"),
    Fault("a stream cut in the middle, each time", _CUT, 4, fault="cut", charged="estimate"),
    Fault("401", ("infrastructure: key",), 1, fault="401", charged="nothing"),
    Fault("429 for longer than `agent.patience`", _AWAY, 1, fault="429", charged="nothing"),
    Fault("500 for longer than `agent.patience`", _AWAY, 1, fault="500", charged="nothing"),
    Fault("the server is gone", _AWAY, 1, fault="gone", charged="nothing"),
    Fault("it prints 100 MB", ("scored",), 0, "loud"),
    Fault("it edits a protected file", ("failed: agent",), 4, "protected"),
    Fault("it deletes its workspace", ("failed: crash",), 4, "deletes"),
    Fault("it leaves a daemon", ("scored",), 0, "daemon"),
    Fault("it reads environments", ("scored",), 0, "reads"),
    Fault("its program prints a metric", ("scored",), 0, text=LIES),
)


def prepare(root: Path, seconds: float = 100) -> Path:
    """Write a task whose program a model can raise from 0.2 to 0.6; return its folder."""
    folder = root / "task"
    folder.mkdir()
    (folder / "score.py").write_text(SCORE)
    (folder / "program.py").write_text(PROGRAM)
    (folder / "weight.txt").write_text("1")
    (root / "agent.py").write_text(AGENT)
    text = TASK.replace("seconds = 100", f"seconds = {seconds}")
    (folder / "outlay.toml").write_text(f'{text}[sandbox]\nread = ["{root / "agent.py"}"]\n')
    return folder


def options(task: Path, url: str, mode: str = "plain") -> tuple[str, ...]:
    """Return the options of `outlay search` for the command agent."""
    command = f"command:{sys.executable} -I -S {task.parent / 'agent.py'} {{url}} {{key}} {mode}"
    return ("--json", "--agent", command, "--base-url", url, "--key", VARIABLE)


def settled(task: Path) -> list[AttemptSettled]:
    """Return how each try ended."""
    with SqliteStore(task / ".outlay" / "store.db") as store:
        found = [entry.event for entry in store.read("faults")]
    return [event for event in found if isinstance(event, events.AttemptSettled)]


def ends(task: Path) -> tuple[str, ...]:
    """Return outcome and reason of each try."""
    return tuple(e.outcome + (f": {e.reason}" if e.reason else "") for e in settled(task))


def charged(task: Path) -> tuple[int, int]:
    """Return the input and output tokens of all tries."""
    charges = [event.charge for event in settled(task)]
    used = sum(c.tokens_in + c.tokens_cached for c in charges)
    return used, sum(c.tokens_out for c in charges)


def charged_wrongly(task: Path, told: Usage, charge: str) -> str:
    """Return what is wrong with the charge, empty if it is as the fault says."""
    used, complete = (
        charged(task),
        [e.agent is not None and e.agent.complete for e in settled(task)],
    )
    if charge == "estimate":
        wrong = any(complete) or used[0] <= told.input or used[1] < told.output
    else:
        wrong = not all(complete) or used != (told.input, told.output)
        wrong = wrong or (used == (0, 0)) != (charge == "nothing")
    return f"charged {used} of {told}, complete: {complete}" if wrong else ""


def unearned(task: Path) -> list[float]:
    """Return the values that no program earned: all but 0.4 of an attempt that was scored."""
    return [
        evaluation.value
        for event in settled(task)
        for evaluation in event.evaluations
        if evaluation.value is not None
        and (event.outcome != "scored" or abs(evaluation.value - 0.4) > 0.03)
    ]


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the user's own files."""
    own = (p for p in folder.rglob("*") if p.is_file() and ".outlay" not in p.parts)
    return {str(path): path.read_bytes() for path in own}


def left(*names: str) -> list[int]:
    """Return the processes whose command line holds one of the names."""
    own = os.getpid()
    rows = [row.process.pid for row in processes.table() if row.process.pid != own]
    return [pid for pid in rows if any(name in _command_line(pid) for name in names)]


def _command_line(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    return ""


def holding(folder: Path, text: str) -> list[str]:
    """Return the files below a folder that hold a text, packed or not."""
    return [path for path, data in _kept(folder) if text.encode() in data]


def _kept(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            yield str(path), data
            with suppress(OSError, EOFError, zlib.error):
                yield str(path), gzip.decompress(data)
            with suppress(zlib.error):
                yield str(path), zlib.decompress(data)
