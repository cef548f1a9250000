"""A search whose plans are experiments: the gate, the beliefs, and what people see of both."""

from __future__ import annotations

import json
import sys
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from outlay import events
from outlay.designs.costs import Design
from outlay.designs.posteriors import posterior
from outlay.designs.statefile import parse_state
from outlay.replay import verify
from outlay.state import State
from tests.e2e.conftest import edit, log_of
from tests.e2e.scripted import researcher
from tests.e2e.test_agents import level_task
from tests.model_server import ModelServer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.conftest import Command

SCORE = """\
import json, random, sys
from pathlib import Path
seed = int(sys.argv[sys.argv.index("--seed") + 1])
random.seed(seed)
level = float(Path("level.txt").read_text())
truth = {"ema": 1.0, "dropout": 0.0, "warmup": 0.0}
shown = {arm: truth[arm] for arm in Path("arms.txt").read_text().split()}
print(json.dumps({"score": min(level, 0.6) + random.gauss(0, 0.005), **shown}))
"""

EXECUTOR = """\
import os, re
from pathlib import Path
plan = Path(os.environ["OUTLAY_PLAN"]).read_text()
assert not Path("state.toml").exists() and "carries it" not in plan
Path("level.txt").write_text(re.search(r"Set the level to ([0-9.]+)[.]", plan)[1])
arms = "".join(re.findall(r"experiment: run (.*) and the baseline", plan))
Path("arms.txt").write_text(arms.replace(",", ""))
"""

STATE = """\
arms = ["ema", "dropout", "warmup"]
seeds = [2, 8]
budget = 12
cost = { unit = "GPU hours", setup = 1, per_arm = 1, per_seed = 0.5 }
[[hypotheses]]
name = "averaging carries it"
signature = { ema = 1 }
[[hypotheses]]
name = "dropout carries it"
signature = { dropout = 1 }
"""

GOOD = {"arms": ["ema", "dropout"], "seeds": 4}  # 5 of the 12 hours
BLANK = {"arms": ["warmup"], "seeds": 4}  # both predict the same of it
DEAR = {"arms": ["ema", "dropout", "warmup"], "seeds": 8}  # 8, of which 7 are left


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """A folder whose program an agent can raise from 0.2 to 0.6 and can ask for arms."""
    folder = level_task(tmp_path)
    (folder / "score.py").write_text(SCORE)
    (folder / "arms.txt").write_text("")
    (folder / "state.toml").write_text(STATE)
    (tmp_path / "agent.py").write_text(EXECUTOR)
    edit(folder, '["level.txt"]', '["level.txt", "arms.txt"]\nhypotheses = "state.toml"')
    secondary = 'secondary = ["ema", "dropout", "warmup"]\n[search]\nchildren = 2\n[seeds]'
    edit(folder, "[seeds]", secondary)
    return folder


def search(task: Path, outlay: Command, designs: list[dict[str, Any]], *options: str) -> Any:
    """Run the search with a reflector that names these designs; return what it printed."""
    with ModelServer(researcher(designs)) as server:
        with (task / "outlay.toml").open("a") as file:
            file.write(f'[reflector]\nclient = "model"\nmodel = "m"\nurl = "{server.url}"\n')
        agent = f"command:{sys.executable} -I -S {task.parent / 'agent.py'}"
        return outlay("search", task, "--agent", agent, *options)


def test_designs_are_sent_back_before_an_attempt_is_spent_and_the_other_one_is_learnt_from(
    task: Path, outlay: Command
) -> None:
    done = search(task, outlay, [GOOD, DEAR, BLANK], "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["status"], found["attempts"], found["problems"]) == ("budget", 3, [])
    check_beliefs(found["beliefs"])
    check_log(task)
    check_words(task, outlay, done.stderr)


def check_beliefs(found: dict[str, Any]) -> None:
    assert (found["unit"], found["budget"], found["left"]) == ("GPU hours", 12.0, 7.0)
    state = parse_state(tomllib.loads(STATE))
    expected = posterior(state, Design((0, 1), 4), [1.0, 0.0])
    now = [one["posterior"] for one in found["hypotheses"]]
    assert now == pytest.approx(list(expected), abs=1e-12)
    assert now[0] > 0.9
    (done,) = found["experiments"]
    assert (done["node"], done["cost"], done["outcome"]) == (1, 5.0, {"ema": 1.0, "dropout": 0.0})
    dear, blank = found["sent_back"]
    assert (dear["saved"], blank["saved"], found["saved"]) == (8.0, 4.0, 12.0)
    assert "unaffordable: it costs 8 GPU hours, and 7 are left" in dear["reason"]
    assert "uninformative: it would tell 0 nats for 4 GPU hours" in blank["reason"]


def check_log(task: Path) -> None:
    """The log gives the same decisions and beliefs again, and no attempt was on a bad design."""
    log = log_of(task)
    assert verify(log) == []
    settled = [e.event for e in log if isinstance(e.event, events.ReflectionSettled)]
    assert [[r.saved for r in event.rejected] for event in settled] == [[], [8.0], [4.0], []]
    asked = [e.event for e in log if isinstance(e.event, events.ReflectionLaunched)]
    assert [bool(event.problems) for event in asked] == [False, False, True, False]
    again = State.of(log)
    assert again.beliefs is not None
    carried_out = {again.nodes[attempt] for attempt in (1, 2, 3)}
    assert {1} == carried_out & set(again.beliefs.experiments)


def check_words(task: Path, outlay: Command, said: str) -> None:
    """People see the beliefs as they go, in `show` and in the report."""
    assert "1 new plan, 1 sent back, 8 GPU hours saved" in said
    assert "its design: ema 1, dropout 0; most believed: averaging carries it, 0.9" in said
    shown = outlay("show", task).stdout
    assert "0.500 → 0.934  averaging carries it" in shown
    assert "2 plans sent back before an attempt was spent: 12 GPU hours saved." in shown
    page = (task / ".outlay/runs/switches/report.html").read_text()
    assert "<h2>Hypotheses</h2>" in page
    assert "Most believed: averaging carries it, 0.934 after 0.500 at the start." in page


def test_an_outcome_off_the_grid_teaches_nothing_and_is_said(task: Path, outlay: Command) -> None:
    (task / "score.py").write_text(SCORE.replace('"dropout": 0.0', '"dropout": 0.3'))
    done = search(task, outlay, [GOOD], "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [one["posterior"] for one in found["beliefs"]["hypotheses"]] == [0.5, 0.5]
    (problem,) = found["problems"]
    assert problem.startswith("attempt 2: its design told nothing: ")
    assert "0.3" in problem
