"""`outlay ablate` from the shell, on real processes and a real store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import outlay as library
from outlay.ablations import findings
from outlay.ablations.components import origin_of
from outlay.ablations.running import SurfaceReflector
from outlay.replay import verify
from outlay.runs import run_folder
from outlay.sqlite_store import SqliteStore
from tests.e2e.conftest import OUTLAY, Command, edit, until

SWITCHES = """\
import json, random, sys, time
arguments = sys.argv[1:]
on = {name: f"--{name}" in arguments for name in "abcd"}
random.seed(int(arguments[arguments.index("--seed") + 1]))
if "--slow" in arguments:
    time.sleep(0.3)
if on["c"] and not on["a"]:
    raise SystemExit("c needs a")
score = 0.5 + 0.2 * on["a"] + 0.1 * on["b"] - 0.3 * (on["a"] and on["b"])
print(json.dumps({"score": score + random.gauss(0, NOISE)}))
"""

LEVERS = "".join(f'[levers.{n}]\noptions = {{ off = "", on = "--{n}" }}\n' for n in "bcd")

PROGRAM = """\
GAIN = 0.0



# one



NOTE = "old"



# two



def score():
    return 0.5 + GAIN
"""

BETTER = (
    PROGRAM.replace("GAIN = 0.0", "GAIN = 0.2\nSCALE = 2")
    .replace('"old"', '"new"')
    .replace("0.5 + GAIN", "0.5 + GAIN * SCALE")
)

AGENT_TASK = f"""\
[task]
name = "agent"
question = "Which change of the program helps?"
editable = ["program.py"]
[evaluate]
command = "{sys.executable} -S evaluate.py --seed {{seed}}"
metric = "score"
direction = "maximize"
[seeds]
final = [1001, 1002, 1003]
[budget]
attempts = 1
"""

EVALUATE = """\
import json, random, sys
sys.path.insert(0, ".")
import program
random.seed(int(sys.argv[2]))
print(json.dumps({"score": program.score() + random.gauss(0, 0.001)}))
"""


@pytest.fixture
def switches(task: Path) -> Path:
    """Four switches without noise: a and b cancel each other, c breaks without a, d is idle."""
    (task / "score.py").write_text(SWITCHES.replace("NOISE", "0"))
    with (task / "outlay.toml").open("a") as file:
        file.write(LEVERS)
    return task


@pytest.fixture
def champion(tmp_path: Path, outlay: Command) -> Path:
    """The store of a search whose command agent made three hunks; the third needs the first."""
    folder = tmp_path / "agent"
    folder.mkdir()
    for name, text in (
        ("program.py", PROGRAM),
        ("better.py", BETTER),
        ("evaluate.py", EVALUATE),
        ("outlay.toml", AGENT_TASK),
    ):
        (folder / name).write_text(text)
    done = outlay("search", folder, "--agent", "command: cp better.py program.py", "--json")
    assert json.loads(done.stdout)["champion"]["node"] == 0, done.stderr
    return folder / ".outlay" / "store.db"


def test_all_configurations_of_a_task_tell_everything(switches: Path, outlay: Command) -> None:
    done = outlay("ablate", switches, "--budget", "16", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["run"], found["status"]) == ("switches-ablation", "budget")
    assert found["measurements"] == found["configurations"] == 16
    assert found["next"] is None
    assert found["charges"]["total"]["attempts"] == 15
    assert not found["noisy"]
    assert found["best"]["config"] == {"a": "on", "b": "off", "c": "off", "d": "off"}
    assert (found["best"]["value"], found["best"]["measured"]) == (pytest.approx(0.7), True)
    pair = found["interactions"][0]
    assert (pair["first"], pair["second"]) == ("a", "b")
    assert pair["high"] < 0
    assert {(c["factor"], c["effect"] > 0) for c in found["depends"]} == {
        (name, sign) for name in "ab" for sign in (True, False)
    }
    assert len(found["failed"]) == 4
    assert all("c needs a" in entry["reason"] for entry in found["failed"])
    assert found["blamed"] == [[{"a": "off", "c": "on"}]]


def test_the_files_stand_alone(switches: Path, outlay: Command) -> None:
    found = json.loads(outlay("ablate", switches, "--budget", "6", "--json").stdout)
    assert sorted(found["files"]) == sorted(
        [
            *("ablation.html", "ablation.md", "effects.png", "interactions.png"),
            *("surface.json", "surface.png"),
        ]
    )
    files = {name: Path(path) for name, path in found["files"].items()}
    for name in ("effects.png", "interactions.png", "surface.png"):
        assert files[name].read_bytes().startswith(b"\x89PNG")
    page = files["ablation.html"].read_text()
    assert page.count('src="data:image/png;base64,') == 3
    assert "http" not in page.replace('http-equiv="', "")
    surface = library.Surface.load(files["surface.json"])
    assert len(surface.measurements) == 6
    assert surface.predict({}).mean == pytest.approx(0.5)
    assert sorted(p.name for p in switches.iterdir()) == [".outlay", "outlay.toml", "score.py"]


def test_the_budget_counts_the_baseline_and_a_raised_one_goes_on(
    switches: Path, outlay: Command
) -> None:
    first = json.loads(outlay("ablate", switches, "--budget", "4", "--json").stdout)
    assert (first["measurements"], first["charges"]["total"]["attempts"]) == (4, 3)
    again = json.loads(outlay("ablate", switches, "--budget", "4", "--json").stdout)
    assert again == first
    more = json.loads(outlay("ablate", switches, "--budget", "7", "--json").stdout)
    assert (more["measurements"], more["charges"]["total"]["attempts"]) == (7, 6)
    store = switches / ".outlay" / "store.db"
    done = outlay("resume", "--store", store, "--attempts", "8", "--json")
    assert json.loads(done.stdout)["measurements"] == 9


def test_what_comes_next_is_said_with_its_gain_and_its_cost(
    switches: Path, outlay: Command
) -> None:
    first = json.loads(outlay("ablate", switches, "--budget", "4", "--json").stdout)
    ahead = first["next"]
    assert 0 < ahead["gain"] < 1
    assert ahead["reason"] == f"leaves the effects {ahead['gain']:.0%} less uncertain in sum"
    assert 0 < ahead["seconds"] < 60
    assert not ahead["affordable"]
    assert "Next would be" in Path(first["files"]["ablation.md"]).read_text()
    done = outlay("ablate", switches, "--budget", "4")
    assert f"{ahead['reason']}, takes about" in done.stdout
    assert "the budget does not pay for it" in done.stdout
    more = json.loads(outlay("ablate", switches, "--budget", "5", "--json").stdout)
    surface = library.Surface.load(more["files"]["surface.json"])
    assert surface.measurements[-1].config == ahead["config"]


def test_a_killed_ablation_goes_on_to_the_same_end(switches: Path, outlay: Command) -> None:
    edit(switches, "--seed {seed}", "--seed {seed} --slow")
    whole = json.loads(outlay("ablate", switches, "--budget", "6", "--run", "w", "--json").stdout)
    command = [OUTLAY, "ablate", str(switches), "--budget", "6"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
        folder = switches / ".outlay" / "runs" / "switches-ablation" / "jobs"
        until((folder / "a2.1" / "claim").exists)
        os.kill(first.pid, signal.SIGKILL)
    done = outlay("ablate", switches, "--budget", "6", "--json")
    found = json.loads(done.stdout)
    assert found["measurements"] == 6
    for key in ("effects", "interactions", "best", "failed"):
        assert found[key] == whole[key]
    _verify(switches / ".outlay" / "store.db", "switches-ablation")


def test_more_workers_measure_as_much(switches: Path, outlay: Command) -> None:
    done = outlay("ablate", switches, "--budget", "16", "--workers", "3", "--json")
    found = json.loads(done.stdout)
    assert found["measurements"] == 16
    assert found["blamed"] == [[{"a": "off", "c": "on"}]]


def test_people_get_a_short_table(switches: Path, outlay: Command) -> None:
    (switches / "score.py").write_text(SWITCHES.replace("NOISE", "0.005"))
    done = outlay("ablate", switches, "--budget", "10")
    assert done.returncode == 0, done.stderr
    assert "10 of 16 configurations measured" in done.stdout
    assert "effect       a=on" in done.stdout
    assert "champion" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--budget", "1"), "--budget"),
        (("--budget", "17"), "2 to 16"),
        (("--run", "switches", "--budget", "x"), "--budget"),
    ],
)
def test_a_budget_out_of_reach_is_refused_before_anything_is_spent(
    switches: Path, outlay: Command, arguments: tuple[str, ...], words: str
) -> None:
    done = outlay("ablate", switches, *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert not (switches / ".outlay").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--by", "hunk"), "--by: found with a task"),
        (("--run", ""), "run: found ''"),
        (("--seed", "-1"), "--seed"),
    ],
)
def test_options_that_would_be_ignored_are_refused(
    switches: Path, outlay: Command, options: tuple[str, ...], words: str
) -> None:
    done = outlay("ablate", switches, "--budget", "4", *options)
    assert done.returncode == 2
    assert words in done.stderr
    assert not (switches / ".outlay" / "store.db").exists()
    assert "RUN: found an empty name" in outlay("ablate", "--run", "").stderr


def test_what_always_breaks_is_said_first_and_bought_no_further(
    switches: Path, outlay: Command
) -> None:
    score = SWITCHES.replace('on["c"] and not on["a"]', 'on["c"]').replace("NOISE", "0")
    (switches / "score.py").write_text(score)
    done = outlay("ablate", switches, "--budget", "16")
    assert done.returncode == 0, done.stderr
    first, second, *_ = done.stdout.splitlines()
    assert "exhausted" in first
    assert "13 of 16 configurations measured" in first
    assert second == "broken       Every measured configuration with c=on failed, no other."
    page = (switches / ".outlay/runs/switches-ablation/ablation.md").read_text()
    said = page.index("Every measured configuration with c=on failed, no other.")
    assert said < page.index("On average over all backgrounds")


def test_a_task_without_levers_is_told_what_to_do(task: Path, outlay: Command) -> None:
    text = (task / "outlay.toml").read_text()
    (task / "outlay.toml").write_text(text[: text.index("[levers")])
    done = outlay("ablate", task)
    assert done.returncode == 2
    assert "[levers.NAME]" in done.stderr


def test_a_search_cannot_have_the_policy_of_an_ablation(task: Path, outlay: Command) -> None:
    done = outlay("search", task, "--policy", "star")
    assert done.returncode == 2
    assert "outlay ablate" in done.stderr


def test_a_champions_hunks_are_told_apart(champion: Path, outlay: Command) -> None:
    done = outlay("ablate", "--run", "agent", "--store", champion, "--budget", "8", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["run"] == "agent-node0-by-hunk"
    origin = found["origin"]
    assert (origin["run"], origin["node"], origin["by"]) == ("agent", 0, "hunk")
    assert not origin["self_reported"]
    assert origin["noise_sd"] == pytest.approx(0.001, rel=2)
    assert origin["noise_df"] > 0
    assert found["configurations"] == found["measurements"] == 8
    needed, idle, breaks = "program.py:1", "program.py:9", "program.py:18"
    assert {e["factor"] for e in found["effects"]} == {needed, idle, breaks}
    assert len(found["failed"]) == 2
    assert found["blamed"] == [[{breaks: "on", needed: "off"}]]
    assert sorted(found["minimal"]["kept"]) == sorted([needed, breaks])
    assert found["minimal"]["left_out"] == [idle]
    assert found["minimal"]["measured"]
    assert found["minimal"]["gain"] == pytest.approx(0.4, abs=0.05)
    _verify(champion, "agent-node0-by-hunk")


def test_the_minimal_patch_applies_and_resuming_by_name_goes_on(
    champion: Path, outlay: Command, tmp_path: Path
) -> None:
    outlay("ablate", "--run", "agent", "--store", champion, "--budget", "4")
    done = outlay(
        "resume", "agent-node0-by-hunk", "--store", champion, "--attempts", "7", "--json"
    )
    patch = Path(json.loads(done.stdout)["files"]["minimal.patch"])
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "program.py").write_text(PROGRAM)
    subprocess.run(["git", "apply", str(patch)], cwd=copy, check=True)
    assert (copy / "program.py").read_text() == BETTER.replace('"new"', '"old"')


def test_a_run_that_cannot_be_taken_apart_is_named(
    task: Path, champion: Path, outlay: Command
) -> None:
    done = outlay("ablate", "--run", "nobody", "--store", champion)
    assert done.returncode == 2
    assert "nobody" in done.stderr
    assert "agent" in done.stderr
    edit(task, '"--a"', '"--nothing"')
    outlay("search", task)
    store = task / ".outlay" / "store.db"
    done = outlay("ablate", "--run", "switches", "--store", store)
    assert done.returncode == 2
    assert "no gain was confirmed" in done.stderr
    outlay("ablate", task, "--budget", "2")
    done = outlay("ablate", "--run", "switches-ablation", "--store", store)
    assert done.returncode == 2
    assert "outlay resume switches-ablation" in done.stderr


def test_a_champions_levers_are_told_apart(switches: Path, outlay: Command) -> None:
    adds = SWITCHES.replace("0.1 * on", "0.01 * on").replace("- 0.3", "- 0.0")
    (switches / "score.py").write_text(adds.replace("NOISE", "0.001"))
    store = switches / ".outlay" / "store.db"
    search = json.loads(outlay("search", switches, "--json").stdout)
    changed = [k for k, v in search["champion"]["configuration"].items() if v == "on"]
    assert changed == ["a", "b"]
    budget = str(2 ** len(changed))
    done = outlay("ablate", "--run", "switches", "--store", store, "--budget", budget, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [e["factor"] for e in found["effects"]] == changed
    assert found["origin"]["by"] == "lever"
    assert found["minimal"]["kept"] == ["a"]
    assert found["minimal_command"][0].endswith("--seed {seed} --a")
    assert "minimal.patch" not in found["files"]


def test_python_goes_on_with_what_the_shell_began(switches: Path, outlay: Command) -> None:
    began = json.loads(outlay("ablate", switches, "--budget", "4", "--json").stdout)
    surface = library.ablate_task(switches, 6)
    ended = json.loads(outlay("ablate", switches, "--budget", "6", "--json").stdout)
    assert (began["measurements"], ended["measurements"]) == (4, 6)
    shell = library.Surface.load(ended["files"]["surface.json"])
    assert [t.config for t in shell.measurements] == [t.config for t in surface.measurements]
    assert surface.predict({"a": "on"}) == shell.predict({"a": "on"})
    task = library.load(switches)
    again = library.ablate_task(task, library.Budget(attempts=3), run="other")
    assert len(again.measurements) == 3
    store = switches / ".outlay" / "store.db"
    assert {run.name for run in SqliteStore(store).runs()} == {"switches-ablation", "other"}


def test_python_takes_a_champion_apart(champion: Path) -> None:
    surface = library.ablate_run("agent", 8, store=champion, name="parts")
    small = findings.minimal(surface)
    assert small is not None
    assert small.left_out == ["program.py:9"]
    assert (champion.parent / "runs" / "parts" / "minimal.patch").exists()


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda s, c: library.ablate_task(s, 1), "2 to 16"),
        (lambda s, c: library.ablate_task(s, 17), "2 to 16"),
        (lambda s, c: library.ablate_task(s, "8"), "a number of measurements"),
        (lambda s, c: library.ablate_task(s, library.Budget(usd=1.0)), "or seconds"),
        (lambda s, c: library.ablate_task(s / "nowhere"), "nowhere"),
        (lambda s, c: library.ablate_run("nobody", store=c), "agent"),
        (lambda s, c: library.ablate_run("agent", by="line", store=c), "hunk or file"),
        (lambda s, c: library.ablate_run("agent", 4, name="agent", store=c), "a new name"),
        (lambda s, c: library.ablate_run("agent", 4, name="../x", store=c), "run"),
        (lambda s, c: library.ablate(str(s), ["a"], 2), "ablate_task"),
    ],
)
def test_python_refuses_what_it_cannot_ablate(switches: Path, champion: Path, call, part) -> None:
    with pytest.raises(library.InputError, match=part):
        call(switches, champion)
    assert not (switches / ".outlay").exists()


def test_the_ablation_of_a_champion_may_be_named(champion: Path, outlay: Command) -> None:
    named = ("ablate", "--run", "agent", "--store", champion, "--name", "parts", "--budget", "3")
    assert json.loads(outlay(*named, "--json").stdout)["run"] == "parts"
    done = outlay(*named, "--seed", "7")
    assert done.returncode == 2
    assert "seed (0 then, 7 now)" in done.stderr
    assert "--name NEW" in done.stderr
    done = outlay(*named[:-3], "many", "--budget", "9")
    assert "2 to 8" in done.stderr
    assert not (champion.parent / "runs" / "many").exists()
    done = outlay("ablate", champion.parent.parent, "--name", "parts", "--budget", "3")
    assert done.returncode == 2
    assert "--run" in done.stderr


def test_a_baseline_without_a_score_is_an_error(switches: Path, outlay: Command) -> None:
    (switches / "score.py").write_text("raise SystemExit(3)")
    done = outlay("ablate", switches, "--json")
    assert done.returncode == 1
    assert done.stdout == ""
    (switches / "score.py").write_text(SWITCHES.replace("NOISE", "0"))
    assert outlay("ablate", switches, "--budget", "3").returncode == 0


def _verify(store: Path, run: str) -> None:
    with SqliteStore(store) as opened:
        entries = list(opened.read(run))
    objects = run_folder(store, run) / "objects"
    origin = origin_of(entries[0].event.files, objects)
    assert verify(entries, SurfaceReflector(origin)) == []
