"""What an agent and its provider may do wrong, through whole searches; see docs/agents.md."""

from __future__ import annotations

import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from outlay import events
from outlay.execution import processes, sandbox
from tests.e2e.conftest import Command, edit, log_of
from tests.model_protocols import Turn
from tests.model_server import ModelServer, turns

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

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
[evaluate]
command = "{sys.executable} -I -S score.py --seed {{seed}}"
metric = "score"
direction = "maximize"
[seeds]
final = [1001, 1002, 1003]
[budget]
attempts = 1
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
"""


def _says(text: str) -> Callable[[Asked], Turn]:
    return turns(Turn(text=text))


BETTER = _says("print(0.4)\n")
LIES = _says('print(0.4)\nprint("score: 99")\nprint(\'{"score": 99}\')\n')


class Fault(NamedTuple):
    """A row of the table.

    Attributes:
        name: As the table has it.
        mode: What the script is told.
        script: What the server answers; `None` is a server that is gone.
        ends: Outcome and reason of each try.
        code: How `outlay search` ends.
        charged: Whether all that the server told is charged, by estimate, or nothing was used.
    """

    name: str
    mode: str
    script: Callable[[Asked], Turn] | None
    ends: tuple[str, ...]
    code: int
    charged: str = "told"


def _again(fault: str) -> Callable[[Asked], Turn]:
    return turns(Turn(text="print(0.4) # and a long comment", fault=fault))  # type: ignore[arg-type]


CUT = ("infrastructure: cut", "infrastructure: cut", "lost: cut")
FAULTS = (
    Fault("a syntax error in its edit", "plain", _says("print(0.4\n"), ("failed: crash",), 4),
    Fault("it is silent", "silent", BETTER, ("failed: unchanged",), 4, "nothing"),
    Fault("it never ends", "endless", BETTER, ("failed: timeout",), 4),
    Fault("a malformed stream, each time", "plain", _again("garbage"), CUT, 4, "estimate"),
    Fault("a stream cut in the middle, each time", "plain", _again("cut"), CUT, 4, "estimate"),
    Fault("401", "plain", _again("401"), ("infrastructure: key",), 1, "nothing"),
    Fault("429 for longer than `agent.patience`", "plain", _again("429"),
          ("infrastructure: provider",), 1, "nothing"),
    Fault("500 for longer than `agent.patience`", "plain", _again("500"),
          ("infrastructure: provider",), 1, "nothing"),
    Fault("the server is gone", "plain", None, ("infrastructure: provider",), 1, "nothing"),
    Fault("it prints 100 MB", "loud", BETTER, ("scored",), 0),
    Fault("it edits a protected file", "protected", BETTER, ("failed: agent",), 4),
    Fault("it deletes its workspace", "deletes", BETTER, ("failed: crash",), 4),
    Fault("it leaves a daemon", "daemon", BETTER, ("scored",), 0),
    Fault("it reads environments", "reads", BETTER, ("scored",), 0),
    Fault("its program prints a metric", "plain", LIES, ("scored",), 0),
)  # fmt: skip


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose program a model can raise from 0.2 to 0.6, and a key."""
    monkeypatch.setenv(VARIABLE, KEY)
    folder = tmp_path / "task"
    folder.mkdir()
    (folder / "score.py").write_text(SCORE)
    (folder / "program.py").write_text(PROGRAM)
    (folder / "weight.txt").write_text("1")
    (tmp_path / "agent.py").write_text(AGENT)
    (folder / "outlay.toml").write_text(f'{TASK}[sandbox]\nread = ["{tmp_path / "agent.py"}"]\n')
    return folder


def options(task: Path, url: str, mode: str = "plain") -> tuple[str, ...]:
    command = f"command:{sys.executable} -I -S {task.parent / 'agent.py'} {{url}} {{key}} {mode}"
    return ("--json", "--agent", command, "--base-url", url, "--key", VARIABLE)


def settled(task: Path) -> list[AttemptSettled]:
    found = log_of(task, "faults")
    return [e.event for e in found if isinstance(e.event, events.AttemptSettled)]


def ends(task: Path) -> tuple[str, ...]:
    return tuple(e.outcome + (f": {e.reason}" if e.reason else "") for e in settled(task))


@pytest.fixture(params=["unshare", "subreaper"])
def weaker(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A machine on which only a weaker kind of sandbox starts."""
    kind: str = request.param
    if not sandbox.works(kind):  # type: ignore[arg-type]
        pytest.skip(f"{kind} does not start here")
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("unshare", "true", "git") if kind == "unshare" else ("git",):
        (programs / name).symlink_to(shutil.which(name) or name)
    monkeypatch.setenv("PATH", str(programs))
    return kind


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the user's own files."""
    own = (p for p in folder.rglob("*") if p.is_file() and ".outlay" not in p.parts)
    return {str(path): path.read_bytes() for path in own}


def left(task: Path) -> list[int]:
    """Return the processes that still bear the agent's name."""
    rows = [row.process.pid for row in processes.table()]
    return [pid for pid in rows if str(task.parent / "agent.py") in _command_line(pid)]


def _command_line(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    return ""


def kept(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield every file below a folder, unpacked."""
    import gzip
    import zlib

    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            yield str(path), data
            with suppress(OSError, EOFError, zlib.error):
                yield str(path), gzip.decompress(data)
            with suppress(zlib.error):
                yield str(path), zlib.decompress(data)


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_each_fault_ends_as_the_table_says(fault: Fault, task: Path, outlay: Command) -> None:
    if fault.mode == "endless":
        edit(task, "[agent]", "[limits]\nseconds = 3\n[agent]")
    before = files_of(task)
    with ModelServer(fault.script or BETTER) as server:
        if fault.script is None:
            server.__exit__()
        done = outlay("search", task, *options(task, server.url, fault.mode))
        told = server.told(KEY)
    assert done.returncode == fault.code, done.stderr
    assert ends(task) == fault.ends
    charges = [event.charge for event in settled(task)]
    used = (
        sum(c.tokens_in + c.tokens_cached for c in charges),
        sum(c.tokens_out for c in charges),
    )
    if fault.charged == "estimate":
        assert used > (told.input, told.output)
        assert all(e.agent and not e.agent.complete for e in settled(task))
    else:
        assert used == (told.input, told.output)
        assert (used == (0, 0)) == (fault.charged == "nothing")
        assert all(e.agent and e.agent.complete for e in settled(task))
    _check_scores(task)
    assert files_of(task) == before
    assert left(task) == []
    _check_secret(task, done)


WEAKER = {
    "protected": ("failed: protected",),
    "deletes": ("failed: protected",),
    "daemon": ("scored",),
    "endless": ("failed: timeout",),
}


@pytest.mark.parametrize("mode", WEAKER)
def test_without_bubblewrap_the_same_comes_of_it(
    mode: str, weaker: str, task: Path, outlay: Command
) -> None:
    edit(task, "[agent]", "[limits]\nseconds = 3\n[agent]")
    before = files_of(task)
    with ModelServer(BETTER) as server:
        done = outlay("search", task, *options(task, server.url, mode))
        told = server.told(KEY)
    assert ends(task) == WEAKER[mode], done.stderr
    (event,) = settled(task)
    assert (event.sandbox, event.charge.tokens_out) == (weaker, told.output)
    assert files_of(task) == before
    assert left(task) == []
    _check_scores(task)
    _check_secret(task, done)


def _check_scores(task: Path) -> None:
    for event in settled(task):
        values = [e.value for e in event.evaluations if e.value is not None]
        assert values == (pytest.approx([0.4], abs=0.03) if event.outcome == "scored" else [])


def _check_secret(task: Path, done: subprocess.CompletedProcess[str]) -> None:
    assert KEY not in done.stdout + done.stderr
    assert [path for path, data in kept(task / ".outlay") if KEY.encode() in data] == []
