"""Whole searches whose plans a model drafts: what it is told, and what it costs."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

from outlay import events
from tests.e2e.conftest import Command, edit, log_of
from tests.e2e.test_agents import level_task
from tests.model_server import ModelServer, Turn, turns

if TYPE_CHECKING:
    from pathlib import Path

EXECUTOR = """\
import os, re
from pathlib import Path
plan = Path(os.environ["OUTLAY_PLAN"]).read_text()
print("the agent begins")
for step in range(3000):
    print("RuntimeError: loss is nan" if step == 1500 else f"step {step} of many")
Path("level.txt").write_text(re.search("Set the level to (0[.][0-9]+)", plan)[1])
"""

DRAFTER = """\
import json, os, re
from pathlib import Path
text = Path(os.environ["OUTLAY_PLAN"]).read_text()
schema = json.loads(re.search(r"valid by this JSON schema:\\n(.*)", text)[1])
if "children" in schema["properties"]:
    asked = schema["properties"]["children"]["maxItems"]
    edit = schema["$defs"]["child"]["properties"]["edits"]["items"]["properties"]
    line = next(line for line in edit["search"]["enum"] if line.startswith("Set"))
    level = float(re.search("[0-9.]+[0-9]", line)[0])
    if level != 0.5:
        levels = [level + k / 100 for k in range(1, 4)]
    elif "What was wrong with your last answer" in text:
        levels = [0.4]
    else:
        levels = [0.55, 0.56] if "Left out of the search" in text else [0.45, None, 0.1]
    children = [
        {
            "hypothesis": f"Level {level} is better.",
            "edits": [
                {"search": line if level else "gone", "replace": f"Set the level to {level}."}
            ],
            "changes": f"Level {level}.",
            "axis": "level",
            "direction": "down" if (level or 0) < 0.5 else "up",
            "chance": 50,
            "rationale": "Nobody knows.",
            "risks": "It may be too much.",
        }
        for level in levels[:asked]
    ]
    print(json.dumps({"children": children}))
else:
    plan = {"title": "T", "hypothesis": "H", "approach": ["Set the level to 0.5."]}
    print(json.dumps(plan))
"""

ASKS = """\
import json, sys, urllib.request
from pathlib import Path
url, key = sys.argv[1:]
body = {"model": "m", "messages": [{"role": "user", "content": "Up or down?"}]}
head = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
asked = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), head)
said = json.load(urllib.request.urlopen(asked))["choices"][0]["message"]["content"]
level = Path("level.txt")
level.write_text(f"{float(level.read_text()) + 0.1 * (said == 'Go up.'):.1f}")
"""

ROOT = {"title": "T", "hypothesis": "H", "approach": ["Set the level to 0.5."]}


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """A folder whose program is best at 0.6, with scripts that draft plans and carry them out."""
    folder = level_task(tmp_path)
    (tmp_path / "agent.py").write_text(EXECUTOR)
    (tmp_path / "drafter.py").write_text(DRAFTER)
    edit(folder, 'direction = "maximize"', 'direction = "maximize"\nreward_scale = 0.1')
    edit(folder, f'"{tmp_path / "agent.py"}"', f'"{tmp_path}"')
    return folder


def agent(task: Path) -> str:
    return f"command:{sys.executable} -I -S {task.parent / 'agent.py'}"


def drafter(task: Path) -> str:
    return f"command:{sys.executable} -I -S {task.parent / 'drafter.py'}"


def search(task: Path, outlay: Command, reflector: str) -> Any:
    with (task / "outlay.toml").open("a") as file:
        file.write(f"[reflector]\n{reflector}")
    done = outlay("search", task, "--json", "--agent", agent(task))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def prompts(task: Path) -> list[str]:
    """Return what the model was asked, in order."""
    jobs = task / ".outlay" / "runs" / "switches" / "jobs"
    places = sorted(jobs.glob("r*.1"), key=lambda place: int(place.stem[1:]))
    return [json.loads((place / "job.json").read_text())["agent"]["text"] for place in places]


def block(prompt: str, name: str) -> str:
    """Return what stands between a prompt's markers of that name; empty without them."""
    found = re.search(rf"^<<<{name} (\w+)>>>\n(.*?)\n<<<end of {name} \1>>>$", prompt, re.M | re.S)
    return found[2] if found else ""


def test_what_is_known_is_in_the_requests(task: Path, outlay: Command) -> None:
    edit(task, "attempts = 3", "attempts = 7")
    found = search(task, outlay, f"client = {json.dumps(drafter(task))}\n")
    assert found["champion"]["fresh"]["mean"] > 0.54
    first, root, again, wider, below = prompts(task)[:5]
    assert "A first plan, as one JSON object" in first
    for text in ("- baseline: score = 0.2", "- left: 7 attempts", "standard deviation 0.00"):
        assert text in first
    _check_the_first_revision(root)
    assert block(again, "answer").startswith("child 2: edit 1 of 1: found no match of 'gone'")
    assert '"replace": "Set the level to 0.45."' in block(again, "answer")
    assert "- node 1, not tried yet: [level: down] Level 0.45." in block(again, "history")
    assert again.endswith("Now answer with one plan.\n")
    assert re.search(r"\(pruned\):\n- node 2, 0\.1\d+, pruned: ", block(wider, "history"))
    _check_what_lies_around(below)


def _check_the_first_revision(prompt: str) -> None:
    assert "- this plan (node 0): score = 0.506441" in prompt
    assert "- champion (node 0): 0.506441" in prompt
    assert "- compared on fresh seeds: 1, confirmed: 1" in prompt
    assert block(prompt, "plan").endswith("\nSet the level to 0.5.\n")
    log = block(prompt, "log")
    assert log.startswith("== agent ==\nthe agent begins\nstep 0 of many\n")
    assert "\nRuntimeError: loss is nan\n" in log
    assert '{"score": 0.506' in log.splitlines()[-4]
    assert "-0.2\n" in block(prompt, "patch")
    assert "+0.5\n" in block(prompt, "patch")


def _check_what_lies_around(prompt: str) -> None:
    assert "- this plan (node 1): score = 0.456441" in prompt
    assert "- its parent (node 0): 0.506441" in prompt
    assert "- left: 3 attempts" in prompt
    assert "-0.5\n" in block(prompt, "patch")  # from the parent, not from the start
    history = block(prompt, "history")
    assert "Its siblings:\n- node 2, 0.106441, pruned: [level: down] Level 0.1." in history
    assert "- node 4, not tried yet: [level: up] Level 0.55. (expected 50%)" in history
    assert "(axis: direction):\n- level: down\n" in history
    assert re.search(r"by axis, largest first:\n- level: 0\.\d+", history)


@pytest.mark.parametrize("model", ["fake-1", "anthropic:fake-1"])
def test_a_model_behind_an_address_is_charged_what_it_told(
    task: Path, outlay: Command, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    key = "sk-of-the-provider-1"
    monkeypatch.setenv("MODEL_KEY", key)
    edit(task, "attempts = 3", "attempts = 1")
    with ModelServer(turns(Turn(text=json.dumps(ROOT))), keys=(key,)) as server:
        found = search(
            task, outlay, f'model = "{model}"\nurl = "{server.url}"\nkey = "MODEL_KEY"\n'
        )
        told = server.told(key)
        asked = read_prompt(server.seen[-1].body)
    assert asked.startswith(prompts(task)[0])
    charged = found["charges"]["planning"]
    assert charged["tokens_in"] == told.input - told.cached
    assert (charged["tokens_cached"], charged["tokens_out"]) == (told.cached, told.output)
    (settled,) = [e.event for e in log_of(task) if isinstance(e.event, events.ReflectionSettled)]
    assert settled.agent is not None
    assert (settled.agent.requests, settled.agent.complete) == (1, True)
    files = [path for path in (task / ".outlay").rglob("*") if path.is_file()]
    assert not [path for path in files if key.encode() in path.read_bytes()]


def read_prompt(body: bytes) -> str:
    """Return the only message of a request in OpenAI's or Anthropic's protocol."""
    (message,) = json.loads(body)["messages"]
    content = message["content"]
    return content if isinstance(content, str) else content[0]["text"]


def test_a_run_without_a_first_plan_says_why(task: Path, outlay: Command) -> None:
    (task.parent / "drafter.py").write_text("print('I would rather not.')")
    with (task / "outlay.toml").open("a") as file:
        file.write(f"[reflector]\nclient = {json.dumps(drafter(task))}\n")
    done = outlay("search", task, "--agent", agent(task))
    assert done.returncode == 4
    assert (
        "no attempt has a score: no first plan could be carried out: the answer: " in done.stderr
    )


# Baselines: the same agents and the same accounting, with no model that drafts.


@pytest.mark.parametrize(
    ("policy", "attempts", "scores"),
    [
        ("single", 1, [0.3]),
        ("linear", 3, [0.3, 0.4, 0.5]),
        ("best-of-n", 3, [0.3, 0.3, 0.3]),
    ],
)
def test_baselines_are_metered_as_any_agent(
    task: Path,
    outlay: Command,
    monkeypatch: pytest.MonkeyPatch,
    policy: str,
    attempts: int,
    scores: list[float],
) -> None:
    monkeypatch.setenv("MODEL_KEY", "sk-1")
    (task.parent / "agent.py").write_text(ASKS)
    with ModelServer(turns(Turn(text="Go up.")), keys=("sk-1",)) as server:
        with (task / "outlay.toml").open("a") as file:
            file.write(f'[agent]\nmodel = "m"\nurl = "{server.url}"\nkey = "MODEL_KEY"\n')
            file.write("[prices.m]\ninput = 100.0\ncached = 10.0\noutput = 1000.0\n")
        options = ("--agent", f"{agent(task)} {{url}} {{key}}", "--policy", policy)
        done = outlay("search", task, "--json", *options)
        assert done.returncode == 0, done.stderr
        told = server.told("sk-1")
    found = json.loads(done.stdout)
    assert (found["attempts"], found["policy"], told.requests) == (attempts, policy, attempts)
    settled = [e.event for e in log_of(task) if isinstance(e.event, events.AttemptSettled)]
    values = [event.evaluations[0].value for event in settled]
    assert values == pytest.approx(scores, abs=0.03)
    charged = found["charges"]["total"]
    assert charged["tokens_in"] == told.input - told.cached
    assert (charged["tokens_cached"], charged["tokens_out"]) == (told.cached, told.output)
    fresh, cached, out = told.input - told.cached, told.cached, told.output
    assert charged["usd"] == pytest.approx((100 * fresh + 10 * cached + 1000 * out) / 1e6)
    assert "planning" not in found["charges"]
