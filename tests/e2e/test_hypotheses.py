"""A search whose plans are experiments: the gate, the beliefs, and what people see of both."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from outlay import events
from outlay.replay import verify
from outlay.state import State
from tests.e2e.conftest import Command, digest_of, log_of
from tests.e2e.scripted import researcher
from tests.model_server import ModelServer

if TYPE_CHECKING:
    from pathlib import Path

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

TASK = f"""\
[task]
name = "switches"
question = "Which level is best?"
editable = ["level.txt", "arms.txt"]
hypotheses = "state.toml"
[evaluate]
command = "{sys.executable} -I -S score.py --seed {{seed}}"
metric = "score"
direction = "maximize"
secondary = ["ema", "dropout", "warmup"]
[seeds]
final = [1001, 1002, 1003]
[search]
children = 2
[budget]
attempts = 3
"""

GOOD = {"arms": ["ema", "dropout"], "seeds": 4}  # 5 of the 12 hours
BLANK = {"arms": ["warmup"], "seeds": 4}  # both predict the same of it
DEAR = {"arms": ["ema", "dropout", "warmup"], "seeds": 8}  # 8, of which 7 are left


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """A folder whose program an agent can raise from 0.2 to 0.6."""
    folder = tmp_path / "task"
    folder.mkdir()
    (folder / "score.py").write_text(SCORE)
    (folder / "level.txt").write_text("0.2")
    (folder / "arms.txt").write_text("")
    (folder / "state.toml").write_text(STATE)
    (tmp_path / "agent.py").write_text(EXECUTOR)
    return folder


def search(task: Path, outlay: Command, designs: list[dict[str, Any]], *options: str) -> Any:
    """Run the search with a reflector that names these designs; return what it printed."""
    with ModelServer(researcher(designs)) as server:
        reach = f'[reflector]\nclient = "model"\nmodel = "fake-1"\nurl = "{server.url}"\n'
        read = f'[sandbox]\nread = ["{task.parent / "agent.py"}"]\n'
        (task / "outlay.toml").write_text(TASK + reach + read)
        agent = f"command:{sys.executable} -I -S {task.parent / 'agent.py'}"
        return outlay("search", task, "--agent", agent, *options)


def test_a_design_is_bounced_and_another_one_moves_the_beliefs(
    task: Path, outlay: Command
) -> None:
    done = search(task, outlay, [GOOD, DEAR, BLANK], "--json")
    assert done.returncode == 0, done.stderr
    print(done.stdout, done.stderr)
