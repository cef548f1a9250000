"""What one job does, in real processes."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from outlay.execution import objects as store
from outlay.execution import snapshot
from outlay.execution.folder import read_claim, read_result
from tests.execution.conftest import SCORE, Lab, until, works

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from outlay.execution.sandbox import Kind

COMMAND = [sys.executable, "-P", "-m", "outlay", "attempt"]


def attempt(lab: Lab, job_id: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, str(lab.run_folder), job_id]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_second_start_finds_it_taken(lab: Lab) -> None:
    job = lab.job("open('../../../../../../count', 'a').write('x')\n" + SCORE, sandbox="subreaper")
    lab.written(job)
    first, second = attempt(lab, job.id), attempt(lab, job.id)
    assert (first.returncode, second.returncode) == (0, 0)
    assert "is taken; nothing was done" in second.stderr
    result = read_result(lab.folder(job))
    assert result is not None
    assert result.status == "done"
    claim = read_claim(lab.folder(job))
    assert claim is not None
    assert claim.token == job.token


def test_of_many_starts_at_once_one_works(lab: Lab) -> None:
    job = lab.job("import time; time.sleep(0.2)\n" + SCORE)
    lab.written(job)
    starts = [
        subprocess.Popen([*COMMAND, lab.run_folder, job.id], stderr=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    talk = [start.communicate(timeout=60)[1] for start in starts]
    assert sum("taken" in said for said in talk) == 5
    assert all(start.returncode == 0 for start in starts)
    assert lab.output(job).count("== n1 seed 1 ==") == 1


def test_no_such_job(lab: Lab) -> None:
    assert attempt(lab, "a9.1").returncode == 2
    assert subprocess.run([*COMMAND, "x"], capture_output=True, check=False).returncode == 2


def test_only_the_standard_library_is_imported(lab: Lab) -> None:
    script = """
import runpy, sys
before = set(sys.modules)
sys.argv = ["outlay", "attempt", sys.argv[1], sys.argv[2]]
try:
    runpy.run_module("outlay", run_name="__main__")
except SystemExit as end:
    assert end.code == 0, end.code
names = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(names - set(sys.stdlib_module_names) - {"outlay"}))
print(sorted(name for name in sys.modules if name.startswith("outlay.")))
"""
    job = lab.job(agent=works("touch", "value"), check=("true",))
    lab.written(job)
    done = subprocess.run(
        [sys.executable, "-c", script, str(lab.run_folder), job.id],
        capture_output=True,
        text=True,
        check=True,
    )
    others, ours = map(eval, done.stdout.splitlines())
    assert others == []
    known_ours = (
        "outlay.execution",
        "outlay.globs",
        "outlay.__main__",
        "outlay.agents.clients",
        "outlay.tokens",
    )
    ours.remove("outlay.agents")
    assert [name for name in ours if not name.startswith(known_ours)] == []


@pytest.mark.parametrize(
    ("script", "fields", "reason", "words"),
    [
        ("print('hello')", {}, "metric", "never printed"),
        ("print('score: 1'); print('score: 2')", {}, "metric", "different values"),
        ("print('{\"score\": NaN}')", {}, "metric", "NaN"),
        ("print('score: inf')", {}, "metric", "infinite"),
        ("print('{\"score\": true}')", {}, "metric", "no number"),
        ("print('score: 2')", {"high": 1.0}, "metric", "outside its range"),
        (SCORE + "\nraise SystemExit(3)", {}, "crash", "ended with 3: {"),
        (SCORE + "\n1/0", {}, "crash", "ZeroDivisionError"),
        (SCORE, {"source": "r.json"}, "metric", "r.json was not written"),
        (SCORE, {"command": ("no-such-program",)}, "crash", "no-such-program"),
        (SCORE, {"check": ("false",)}, "check", "the correctness command ended with 1"),
        (SCORE, {"agent": works("false")}, "agent", "the command ended with 1"),
        (SCORE, {"function": "nowhere:f"}, "crash", "nowhere"),
    ],
)
def test_a_failure_is_never_a_number(
    lab: Lab, script: str, fields: dict[str, object], reason: str, words: str
) -> None:
    result = lab.run(lab.job(script, **fields))
    assert (result.status, result.reason) == ("failed", reason)
    assert words in result.detail
    assert all(run.value is None and run.fault for run in result.runs)


def test_runs_in_order_until_the_first_fault(lab: Lab) -> None:
    script = "import sys\nseed = int(sys.argv[2])\nassert seed != 7\nprint('score:', seed)\n"
    job = lab.job(
        script,
        command=(sys.executable, "score.py", "--seed", "{seed}"),
        runs=((0, 1), (0, 5), (0, 7), (0, 9)),
    )
    result = lab.run(job)
    assert [(run.seed, run.value) for run in result.runs] == [(1, 1.0), (5, 5.0), (7, None)]
    assert result.reason == "crash"


def test_two_subjects_each_in_its_own_workspace(lab: Lab, kind: Kind) -> None:
    script = """
import json, os, sys
open("mark", "a").write("x")
print(json.dumps({"score": float(open("value").read()) + float(os.environ["ADD"]),
                  "marks": len(open("mark").read()), "args": len(sys.argv)}))
"""
    subjects = tuple(
        lab.subject({"score.py": script, "value": value}, env={"ADD": add}, args=args)
        for value, add, args in (("1", "0.5", ()), ("2", "0.25", ("--a", "b c; $(rm)")))
    )
    job = lab.job(
        subjects=subjects,
        runs=((0, 1), (1, 1), (1, 2), (0, 2)),
        secondary=("marks", "args"),
        sandbox=kind,
    )
    result = lab.run(job)
    assert result.status == "done", result
    assert [run.value for run in result.runs] == [1.5, 2.25, 2.25, 1.5]
    assert [run.metrics["marks"] for run in result.runs] == [1, 1, 2, 2]
    assert [run.metrics["args"] for run in result.runs] == [1, 3, 3, 1]
    assert not (lab.folder(job) / "work").exists()


def test_the_result_file_wins_and_is_fresh_each_time(lab: Lab, kind: Kind) -> None:
    script = """
import json, os, sys
place = os.environ["OUTLAY_RESULT"]
assert not os.path.exists(place)
if sys.argv[1] == "1":
    json.dump({"score": 3}, open(place, "w"))
print('{"score": 1}')
"""
    job = lab.job(
        script,
        command=(sys.executable, "score.py", "{seed}"),
        runs=((0, 1), (0, 2)),
        sandbox=kind,
    )
    assert [run.value for run in lab.run(job).runs] == [3.0, 1.0]


def test_a_metric_file_that_was_there_before_does_not_count(lab: Lab) -> None:
    files: dict[str, str | bytes] = {"score.py": "pass", "r.json": '{"score": 9}'}
    result = lab.run(lab.job(subjects=(lab.subject(files),), source="r.json"))
    assert (result.status, result.reason) == ("failed", "metric")
    files["score.py"] = "open('r.json', 'w').write('{\"score\": 2}')"
    result = lab.run(lab.job(subjects=(lab.subject(files),), source="r.json"))
    assert result.runs[0].value == 2.0


def test_a_metric_file_is_a_file(lab: Lab) -> None:
    for script in ("import os; os.mkfifo('r.json')", "import os; os.symlink('/etc', 'r.json')"):
        result = lab.run(lab.job(script, source="r.json"))
        assert (result.status, result.reason) == ("failed", "metric")


def test_a_function(lab: Lab, kind: Kind) -> None:
    module = """
import helper
def score(config, seed):
    return {"score": helper.BASE + seed, "size": len(config)}
def number(config, seed):
    return 4
def nan(config, seed):
    return float("nan")
"""
    files: dict[str, str | bytes] = {"pkg/mod.py": module, "helper.py": "BASE = 0.5"}
    subject = lab.subject(files, config={"a": "on", "b": "off"})
    fields = {"subjects": (subject,), "command": (), "secondary": ("size",), "sandbox": kind}
    result = lab.run(lab.job(function="pkg.mod:score", runs=((0, 3),), **fields))
    assert result.status == "done", result
    assert (result.runs[0].value, result.runs[0].metrics) == (3.5, {"size": 2.0})
    assert lab.run(lab.job(function="pkg.mod:number", **fields)).runs[0].value == 4.0
    result = lab.run(lab.job(function="pkg.mod:nan", **fields))
    assert (result.reason, result.runs[0].value) == ("metric", None)


def test_swaps_and_patches(lab: Lab) -> None:
    patch = "--- a/value\n+++ b/value\n@@ -1 +1 @@\n-1\n+2\n"
    files: dict[str, str | bytes] = {
        "score.py": "print('score:', float(open('value').read()) + float(open('w/x').read()))",
        "value": "1\n",
        "w/x": "10",
        "variants/x": "20",
        "p.diff": patch,
    }
    plain = lab.subject(files)
    changed = lab.subject(files, swaps={"w/x": "variants/x"}, patches=("p.diff",))
    job = lab.job(subjects=(changed,))
    result = lab.run(job)
    assert result.status == "done", result
    assert result.runs[0].value == 22.0
    assert result.files != plain.files
    held = snapshot.load(result.files, lab.objects)
    assert store.get(lab.objects, held["value"].blob) == b"2\n"
    assert store.get(lab.objects, held["w/x"].blob) == b"20"
    assert lab.run(lab.job(subjects=(plain,))).files == plain.files


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"patches": ("p.diff",)}, "does not fit value"),
        ({"patches": ("out.diff",)}, "leaves the workspace"),
        ({"patches": ("absent",)}, "'absent' is not there"),
        ({"swaps": {"value": "absent"}}, "is not there"),
        ({"swaps": {"value": "../../job.json"}}, "is not there"),
    ],
)
def test_a_change_that_does_not_apply(lab: Lab, fields: dict[str, object], words: str) -> None:
    files: dict[str, str | bytes] = {
        "score.py": SCORE,
        "value": "1\n",
        "p.diff": "--- a/value\n+++ b/value\n@@ -1 +1 @@\n-7\n+2\n",
        "out.diff": "--- /dev/null\n+++ b/../../x\n@@ -0,0 +1 @@\n+2\n",
    }
    result = lab.run(lab.job(subjects=(lab.subject(files, **fields),)))
    assert (result.status, result.reason) == ("failed", "patch")
    assert words in result.detail
    assert result.runs == ()


def test_data_is_linked(lab: Lab, kind: Kind) -> None:
    data = lab.root / "data"
    data.mkdir()
    (data / "x").write_text("4")
    job = lab.job(
        "print('score:', open('in/data/x').read())", data={str(data): "in/data"}, sandbox=kind
    )
    result = lab.run(job)
    assert (result.status, result.runs[0].value) == ("done", 4.0)
    assert (data / "x").read_text() == "4"


def test_the_environment_is_the_allowed_one(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    job = lab.job("import os\nprint(sorted(os.environ))\n" + SCORE)
    assert lab.run(job).status == "done"
    output = lab.output(job)
    assert "OPENAI_API_KEY" not in output
    for name in ("PATH", "OMP_NUM_THREADS", "OUTLAY_TOKEN", "OUTLAY_RESULT"):
        assert f"'{name}'" in output


def test_stdin_is_empty(lab: Lab) -> None:
    assert lab.run(lab.job("import sys\nassert sys.stdin.read() == ''\n" + SCORE)).status == "done"


def test_much_output_is_cut_and_the_metric_still_found(lab: Lab, kind: Kind) -> None:
    script = """
import sys
line = "x" * 999 + "\\n"
for _ in range(300_000):
    sys.stdout.write(line)
sys.stderr.write("e" * 50_000_000)
print('{"score": 0.5}')
"""
    job = lab.job(script, output=100_000, sandbox=kind)
    begun = time.monotonic()
    result = lab.run(job, 60)
    assert (result.status, result.runs[0].value) == ("done", 0.5)
    assert time.monotonic() - begun < 30
    out, err = ((lab.folder(job) / name).read_bytes() for name in ("out.txt", "err.txt"))
    assert len(out) + len(err) < 101_000
    assert b"bytes left out]" in out
    assert out.endswith(b'{"score": 0.5}\n')


def test_no_output_kept_and_the_metric_still_found(lab: Lab) -> None:
    assert lab.run(lab.job(output=0)).runs[0].value == 0.5


def test_waiting_for_the_lock_costs_nothing(lab: Lab) -> None:
    lock = lab.root / "lock"
    with open(lock, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        job = lab.job(exclusive=str(lock), seconds=1.0)
        lab.pool.start(job)
        assert lab.pool.wait(1.5) == []
        fcntl.flock(file, fcntl.LOCK_UN)
    (result,) = lab.pool.wait(10)
    assert result.status == "done", result
    assert result.seconds < 1.0


def test_a_job_that_waits_for_the_lock_can_be_ended(lab: Lab) -> None:
    lock = lab.root / "lock"
    with open(lock, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        job = lab.job(exclusive=str(lock))
        lab.pool.start(job)
        until((lab.folder(job) / "err.txt").exists)
        lab.pool.end(job.id)
        assert lab.pool.wait(10)[0].reason == "ended"


def test_keep(lab: Lab) -> None:
    job = lab.job(keep=True)
    lab.run(job)
    assert (lab.folder(job) / "work/0/score.py").exists()
    assert not (lab.folder(job) / "tmp").exists()


def test_whatever_modes_are_left_is_removed(lab: Lab) -> None:
    script = "import os\nos.makedirs('a/b')\nopen('a/b/c', 'w')\nos.chmod('a/b', 0)\n"
    job = lab.job(script + "os.chmod('a', 0)\n" + SCORE)
    assert lab.run(job).status == "done"
    assert not (lab.folder(job) / "work").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a small disk")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize(
    "script",
    [
        "open('big', 'wb').write(bytes(10_000_000))",
        "import sys\nfor _ in range(5000): print('x' * 999)\n" + SCORE,
    ],
)
def test_a_full_disk_is_no_fault_of_the_work(small_disk: Path, kind: Kind, script: str) -> None:
    lab = Lab(small_disk)
    result = lab.run(lab.job(script, sandbox=kind))
    assert (result.status, result.reason) == ("infrastructure", "disk"), result


def test_no_room_to_lay_out(small_disk: Path) -> None:
    lab = Lab(small_disk)
    files: dict[str, str | bytes] = {"score.py": SCORE, "zeros": bytes(1_500_000)}
    job = lab.job(subjects=(lab.subject(files),))
    result = lab.run(job)
    assert (result.status, result.reason) == ("infrastructure", "disk"), result


def test_the_record_is_json(lab: Lab) -> None:
    job = lab.job()
    lab.run(job)
    text = (lab.folder(job) / "result.json").read_text()
    assert json.loads(text)["format"] == 1
