"""Levers of every kind, and every way to give a metric, through whole searches."""

from __future__ import annotations

import hashlib
import itertools
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from outlay import events
from outlay.digest import digest
from outlay.sqlite_store import SqliteStore
from outlay.state import State
from tests.e2e.conftest import OUTLAY, SCORE, TASK, Command, digest_of, edit, log_of, until

if TYPE_CHECKING:
    from pathlib import Path

PYTHON = f"{sys.executable} -I -S"

MIXED = """\
import json, os, sys
from pathlib import Path
here = Path(__file__).parent
sys.path.insert(0, str(here))
from part import PART
arguments = sys.argv[1:]
seed = int(arguments[arguments.index("--seed") + 1])
noise = 0.002 * (seed * 2654435761 % 1009 / 1009 - 0.5)
score = 1.0 - 0.1 * ("--fast" in arguments) - 0.1 * (os.environ.get("MODE") == "b")
score -= PART + 0.1 * (here / "data" / "two.txt").read_text().count("better")
print(json.dumps({"loss": score + noise, "arguments": len(arguments), "text": "no number"}))
"""

PATCH = """\
--- a/data/two.txt
+++ b/data/two.txt
@@ -1,2 +1,2 @@
 first
-second
+better
"""

FOUR = f"""\
[task]
name = "switches"
question = "Which of four kinds lowers the loss?"
protected = ["score.py"]
[evaluate]
command = "{PYTHON} score.py --seed {{seed}}"
metric = "loss"
direction = "minimize"
secondary = ["arguments", "text", "absent"]
[seeds]
final = [1001, 1002, 1003]
[budget]
attempts = 24
[levers.argument]
options = {{ off = "", on = "--fast" }}
[levers.variable.options]
off = ""
on = {{ env = {{ MODE = "b" }} }}
[levers.file.options]
off = ""
on = {{ files = {{ "part.py" = "variants/part.py" }} }}
[levers.patch.options]
off = ""
on = {{ patch = "better.patch" }}
"""


def lay_out(folder: Path) -> None:
    for path, text in {
        "score.py": MIXED,
        "part.py": "PART = 0.0\n",
        "variants/part.py": "PART = 0.1\n",
        "data/two.txt": "first\nsecond\n",
        "better.patch": PATCH,
        "outlay.toml": FOUR,
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=n", "-c", "user.email=e@example.com", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def everything(folder: Path) -> dict[str, str]:
    """Return kind, mode, time and content of all that lies in a folder but Outlay's own."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not name.startswith(".outlay"):
            status = path.lstat()
            content = path.read_bytes() if path.is_file() else b""
            text = f"{status.st_mode} {hashlib.sha256(content).hexdigest()}"
            found[name] = f"{text} {status.st_mtime_ns}" if path.is_file() else text
    return found


@pytest.mark.parametrize("kind", ["plain", "dirty"])
def test_all_four_kinds_help_together_and_the_tree_is_untouched(
    task: Path, outlay: Command, kind: str
) -> None:
    lay_out(task)
    (task / ".gitignore").write_text("scratch/\n")
    (task / "scratch").mkdir()
    (task / "scratch" / "notes.txt").write_text("mine")
    if kind == "dirty":
        (task / "part.py").write_text("PART = -5.0\n")
        git(task, "init", "-q")
        git(task, "add", ".")
        git(task, "commit", "-qm", "first")
        (task / "part.py").write_text("PART = -4.0\n")
        git(task, "add", "part.py")
        (task / "part.py").write_text("PART = 0.0\n")
        (task / "untracked.txt").write_text("also mine")
    before = everything(task)
    done = outlay("search", task, "--json")
    assert done.returncode == 0, done.stderr
    assert everything(task) == before
    found = json.loads(done.stdout)
    assert found["champion"]["configuration"] == dict.fromkeys(
        ("argument", "variable", "file", "patch"), "on"
    )
    assert found["baseline"]["fresh"]["mean"] == pytest.approx(1.0, abs=0.002)
    assert found["difference"]["mean"] == pytest.approx(0.4, abs=0.002)
    assert found["difference"]["low"] > 0.35
    state = State.of(log_of(task))
    assert state.started is not None
    assert state.started.dirty == (kind == "dirty")
    _check_secondary(task)
    if kind == "dirty":
        _check_handed_back(task, outlay)


def _check_secondary(task: Path) -> None:
    settled = [e.event for e in log_of(task) if isinstance(e.event, events.AttemptSettled)]
    metrics = [evaluation.metrics for event in settled for evaluation in event.evaluations]
    assert {frozenset(found) for found in metrics} == {frozenset({"arguments"})}
    assert {found["arguments"] for found in metrics} == {2.0, 3.0}


def _check_handed_back(task: Path, outlay: Command) -> None:
    status, head = git(task, "status", "--porcelain"), git(task, "rev-parse", "HEAD")
    before = {k: v for k, v in everything(task).items() if not k.startswith(".git/")}
    store = task / ".outlay" / "store.db"
    done = outlay("export", "--store", store, "--branch", "better", "--json")
    assert done.returncode == 0, done.stderr
    after = {k: v for k, v in everything(task).items() if not k.startswith(".git/")}
    assert after == before
    assert git(task, "status", "--porcelain") == status
    assert git(task, "rev-parse", "HEAD") == head
    assert git(task, "show", "better:part.py") == "PART = 0.1\n"
    assert git(task, "show", "better:data/two.txt") == "first\nbetter\n"
    assert "--fast" in " ".join(json.loads(done.stdout)["command"])
    patch = task.parent / "out" / "best.patch"
    assert outlay("export", "--store", store, "--patch", patch).returncode == 0
    git(task, "apply", str(patch))
    assert (task / "part.py").read_text() == "PART = 0.1\n"


def test_an_evaluator_that_edits_a_protected_file_has_no_score(
    task: Path, outlay: Command
) -> None:
    # A link is not mounted read-only as a file is, so that even in a namespace the edit succeeds.
    (task / "ten.txt").write_text("10")
    (task / "limit.txt").symlink_to("ten.txt")
    score = (task / "score.py").read_text()
    cheat = (
        'if "--cheat" in arguments:\n'
        "    import os, pathlib\n"
        "    pathlib.Path('limit.txt').unlink()\n"
        "    pathlib.Path('limit.txt').write_text('99')\n"
    )
    (task / "score.py").write_text(score.replace("gain = ", cheat + "gain = ", 1))
    edit(task, "[evaluate]", 'protected = ["limit.txt"]\n[evaluate]')
    edit(task, 'on = "--a"', 'cheat = "--cheat"')
    done = outlay("search", task, "--json")
    assert done.returncode == 4, done.stderr
    (settled,) = [e.event for e in log_of(task) if isinstance(e.event, events.AttemptSettled)]
    assert settled.outcome == "failed"
    assert settled.reason == "protected"
    assert "limit.txt" in settled.detail
    assert all(evaluation.value is None for evaluation in settled.evaluations)
    assert json.loads(done.stdout)["champion"]["configuration"] == {"a": "off"}


def test_an_option_that_the_correctness_command_rejects_has_no_score(
    task: Path, outlay: Command
) -> None:
    lay_out(task)
    (task / "variants" / "part.py").write_text("PART = 0.9  # wrong\n")
    (task / "check.py").write_text(
        "import sys\nfrom pathlib import Path\n"
        "sys.exit('it is wrong' if 'wrong' in Path('part.py').read_text() else 0)\n"
    )
    edit(task, "attempts = 24", "attempts = 5")
    edit(task, "[evaluate]", f'[evaluate]\ncheck = "{PYTHON} check.py"')
    done = outlay("search", task, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["champion"]["configuration"]["file"] == "off"
    state = State.of(log_of(task))
    with_file = [node for node in state.tree.nodes if state.configuration(node)["file"] == "on"]
    tried = [node for node in with_file if node.attempt]
    assert tried
    assert {node.status for node in tried} == {"failed"}
    settled = [e.event for e in log_of(task) if isinstance(e.event, events.AttemptSettled)]
    failed = [e for e in settled if e.outcome == "failed"]
    assert {e.reason for e in failed} == {"check"}
    assert all("it is wrong" in e.detail for e in failed)


def test_a_function_as_evaluator_runs_in_the_attempt_and_keeps_its_limits(
    task: Path, outlay: Command
) -> None:
    (task / "program.py").write_text(
        "import time\n"
        "def score(config, seed):\n"
        "    if config['a'] == 'hangs':\n"
        "        time.sleep(100)\n"
        "    return {'score': 0.2 * (config['a'] == 'on') + 0.001 * (seed % 7), 'seen': seed}\n"
    )
    text = (task / "outlay.toml").read_text().splitlines()
    lines = ['function = "program:score"' if x.startswith("command") else x for x in text]
    (task / "outlay.toml").write_text("\n".join(lines) + "\n")
    edit(task, "[budget]", "[limits]\nseconds = 2\n[budget]")
    edit(task, 'direction = "maximize"', 'direction = "maximize"\nsecondary = ["seen"]')
    edit(task, 'off = "", on = "--a"', 'off = "", on = "", hangs = ""')
    done = outlay("search", task, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["champion"]["configuration"] == {"a": "on"}
    assert found["difference"]["mean"] == pytest.approx(0.2, abs=0.01)
    settled = [e.event for e in log_of(task) if isinstance(e.event, events.AttemptSettled)]
    assert {(e.outcome, e.reason) for e in settled} == {("scored", ""), ("failed", "timeout")}
    seen = [x.metrics for e in settled if e.outcome == "scored" for x in e.evaluations]
    assert seen == [{"seen": 1.0}]


@pytest.mark.parametrize("way", ["json file", "OUTLAY_RESULT", "line"])
def test_every_way_to_give_the_metric_comes_to_the_same_end(
    task: Path, outlay: Command, way: str, printed: str
) -> None:
    ways = {
        "json file": "open('out.json', 'w').write(json.dumps({'score': found}))",
        "OUTLAY_RESULT": (
            "print('score: 99'); "
            "open(os.environ['OUTLAY_RESULT'], 'w').write(json.dumps({'score': found}))"
        ),
        "line": "print('score: ' + repr(found)); print('done')",
    }
    score = (task / "score.py").read_text().replace("import json", "import os, json")
    last = 'print(json.dumps({"score": 0.5 + gain + random.gauss(0, 0.01)}))'
    assert last in score
    new = f"found = 0.5 + gain + random.gauss(0, 0.01)\n{ways[way]}"
    (task / "score.py").write_text(score.replace(last, new))
    if way == "json file":
        edit(task, "[seeds]", 'read = "out.json"\n[seeds]')
    done = outlay("search", task, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    same = ("champion", "baseline", "difference", "attempts", "status")
    assert {key: found[key] for key in same} == json.loads(printed)


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the same search finds when the metric is printed."""
    folder = tmp_path_factory.mktemp("printed")
    (folder / "score.py").write_text(SCORE)
    (folder / "outlay.toml").write_text(TASK)
    done = subprocess.run(
        [OUTLAY, "search", str(folder), "--json"], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    same = ("champion", "baseline", "difference", "attempts", "status")
    return json.dumps({key: found[key] for key in same})


def test_evaluations_under_machine_noise_never_overlap(task: Path, outlay: Command) -> None:
    (task / "score.py").write_text(
        "import json, sys, time\n"
        "began = time.monotonic()\n"
        "time.sleep(0.02)\n"
        "gain = sum(0.2 for word in sys.argv if word in ('--a', '--b'))\n"
        "score = 0.5 + gain + 1e-4 * (time.monotonic() * 1e6 % 7)\n"
        "print(json.dumps({'score': score, 'began': began, 'ended': time.monotonic()}))\n"
    )
    edit(task, " --seed {seed}", "")
    edit(task, "[seeds]", 'noise = "machine"\nsecondary = ["began", "ended"]\n[seeds]')
    edit(task, "attempts = 16", "attempts = 4")
    with (task / "outlay.toml").open("a") as file:
        file.write('[levers.b]\noptions = { off = "", on = "--b", more = "--c", odd = "--d" }\n')
    done = outlay("search", task, "--json", "--workers", "3")
    assert done.returncode == 0, done.stderr
    settled = [
        entry.event
        for entry in log_of(task)
        if isinstance(entry.event, events.AttemptSettled | events.MeasurementSettled)
    ]
    spans = sorted(
        (x.metrics["began"], x.metrics["ended"]) for e in settled for x in e.evaluations
    )
    assert len(spans) > 12
    assert all(ended <= began for (_, ended), (began, _) in itertools.pairwise(spans))


def test_killed_twice_a_run_with_all_kinds_has_the_same_digest(
    task: Path, outlay: Command
) -> None:
    lay_out(task)
    edit(task, "attempts = 24", "attempts = 2")
    assert outlay("search", task).returncode == 0
    expected = digest_of(task)
    other = ("search", task, "--store", task / ".outlay" / "other" / "store.db")
    jobs = task / ".outlay" / "other" / "runs" / "switches" / "jobs"
    for job in ("m1.1", "a1.1"):
        with subprocess.Popen(
            [OUTLAY, *map(str, other)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as driver:
            until((jobs / job / "claim").exists)
            driver.kill()
    assert outlay(*other).returncode == 0
    with SqliteStore(other[-1]) as store:
        assert digest(store.read("switches")) == expected


def test_the_workspaces_own_packages_are_linked_and_not_copied(
    task: Path, outlay: Command
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", task / ".venv"], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    package = task / ".venv" / "lib" / version / "site-packages" / "bonus.py"
    package.write_text("BONUS = 3.0\n")
    score = (task / "score.py").read_text()
    score = score.replace("import json", "import bonus, json").replace("0.5 +", "bonus.BONUS +")
    (task / "score.py").write_text(score)
    edit(task, PYTHON, ".venv/bin/python")
    done = outlay("search", task, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["baseline"]["fresh"]["mean"] == pytest.approx(3.0, abs=0.05)
    assert outlay("diff", "baseline", "champion", "--store", task).returncode == 0
    files = outlay("export", "--store", task, "--folder", task.parent / "out")
    assert files.returncode == 0, files.stderr
    assert not (task.parent / "out" / ".venv").exists()
