"""What an agent and its provider may do wrong, in whole searches; see docs/agent-faults.md."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from outlay.execution import sandbox
from tests.agent_faults import (
    BETTER,
    FAULTS,
    KEY,
    VARIABLE,
    Fault,
    charged,
    charged_wrongly,
    ends,
    files_of,
    holding,
    left,
    options,
    prepare,
    settled,
    unearned,
)
from tests.e2e.conftest import Command, edit
from tests.model_protocols import Turn
from tests.model_server import ModelServer, in_order, turns

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from tests.model_protocols import Asked

ROOT = Path(__file__).resolve().parents[2]


def says(text: str = BETTER) -> Callable[[Asked], Turn]:
    return turns(Turn(text=text))


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose program a model can raise from 0.2 to 0.6, and a key."""
    monkeypatch.setenv(VARIABLE, KEY)
    return prepare(tmp_path)


@pytest.fixture
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


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_each_fault_ends_as_the_table_says(fault: Fault, task: Path, outlay: Command) -> None:
    if fault.mode == "endless":
        edit(task, "seconds = 100", "seconds = 3")
    before = files_of(task)
    with ModelServer(fault.script()) as server:
        if fault.fault == "gone":
            server.__exit__()
        done = outlay("search", task, *options(task, server.url, fault.mode))
        told = server.told(KEY)
    assert done.returncode == fault.code, done.stderr
    assert ends(task) == fault.ends
    assert charged_wrongly(task, told, fault.charged) == ""
    assert (unearned(task), files_of(task)) == ([], before)
    assert left(str(task.parent / "agent.py")) == []
    _check_secret(task, done)


def test_the_page_has_the_rows_that_are_tested() -> None:
    page = (ROOT / "docs" / "agent-faults.md").read_text()
    _, _, section = page.partition("## What comes of a fault\n")
    table = re.findall(r"^\|.*\|$", section.partition("\n## ")[0], re.MULTILINE)
    assert table[2 : 2 + len(FAULTS)] == [fault.row() for fault in FAULTS]


WEAKER = {
    "protected": ("failed: protected",),
    "deletes": ("failed: protected",),
    "daemon": ("scored",),
    "reads": ("scored",),
    "endless": ("failed: timeout",),
}


# Nothing but a namespace hides the processes of one user from each other.
@pytest.mark.parametrize(
    ("weaker", "mode"),
    [("unshare", mode) for mode in WEAKER]
    + [("subreaper", mode) for mode in WEAKER if mode != "reads"],
    indirect=["weaker"],
)
def test_without_bubblewrap_the_same_comes_of_it(
    mode: str, weaker: str, task: Path, outlay: Command
) -> None:
    edit(task, "seconds = 100", "seconds = 3")
    before = files_of(task)
    with ModelServer(says()) as server:
        done = outlay("search", task, *options(task, server.url, mode))
        told = server.told(KEY)
    assert ends(task) == WEAKER[mode], done.stderr
    (event,) = settled(task)
    assert (event.sandbox, event.charge.tokens_out) == (weaker, told.output)
    assert (unearned(task), files_of(task)) == ([], before)
    assert left(str(task.parent / "agent.py")) == []
    _check_secret(task, done)


def _check_secret(task: Path, done: subprocess.CompletedProcess[str]) -> None:
    assert KEY not in done.stdout + done.stderr
    assert holding(task / ".outlay", KEY) == []


def test_a_limit_inside_the_attempt_is_passed_by_one_answer_at_most(
    task: Path, outlay: Command
) -> None:
    edit(task, "seconds = 100", "seconds = 100\ntokens = 1000")
    with ModelServer(says()) as server:
        done = outlay("search", task, *options(task, server.url, "greedy"))
        told = server.told(KEY)
    assert (done.returncode, ends(task)) == (4, ("failed: budget",)), done.stderr
    (event,) = settled(task)
    assert charged_wrongly(task, told, "told") == ""
    one = 1300 - 1150 + 12 + 115  # an answer of the scripted model, cached input at a tenth
    assert 1000 <= event.charge.tokens < 1000 + one
    assert event.detail == "the limit of the attempt was reached"
    assert unearned(task) == []


@pytest.mark.parametrize(
    ("mode", "limit"), [("greedy", "seconds = 100\ntokens = 1000"), ("fails", "seconds = 100")]
)
def test_partial_work_is_evaluated_where_the_user_wants_it(
    mode: str, limit: str, task: Path, outlay: Command
) -> None:
    edit(task, "seconds = 100", limit)
    edit(task, "[agent]", "[agent]\npartial = true")
    with ModelServer(says()) as server:
        done = outlay("search", task, *options(task, server.url, mode))
        told = server.told(KEY)
    assert (done.returncode, ends(task)) == (0, ("scored",)), done.stderr
    assert charged_wrongly(task, told, "told") == ""
    assert unearned(task) == []
    found = json.loads(done.stdout)
    assert found["difference"]["mean"] == pytest.approx(0.2)


def test_a_provider_that_comes_back_costs_wall_clock_only(task: Path, outlay: Command) -> None:
    edit(task, 'patience = "1 s"', 'patience = "60 s"')
    edit(task, "seconds = 100", "seconds = 6")
    busy = Turn(fault="429", retry_after="4")
    with ModelServer(
        in_order(busy, Turn(fault="500", retry_after="4"), Turn(text=BETTER))
    ) as server:
        done = outlay("search", task, *options(task, server.url))
        told = server.told(KEY)
    assert (done.returncode, ends(task)) == (0, ("scored",)), done.stderr
    assert charged_wrongly(task, told, "told") == ""
    assert (told.requests, server.asked[KEY]) == (1, 3)
    assert unearned(task) == []


def test_a_provider_that_stays_away_is_no_mark_against_the_idea(
    task: Path, outlay: Command
) -> None:
    with ModelServer(turns(Turn(fault="529"))) as server:
        done = outlay("search", task, *options(task, server.url))
    assert (done.returncode, ends(task)) == (1, ("infrastructure: provider",)), done.stderr
    with ModelServer(says()) as server:
        done = outlay("search", task, *options(task, server.url))
    assert done.returncode == 0, done.stderr
    assert ends(task) == ("infrastructure: provider", "scored")
    assert len({event.attempt for event in settled(task)}) == 1
    assert json.loads(done.stdout)["attempts"] == 1


def test_usage_that_no_proxy_counted_is_incomplete(task: Path, outlay: Command) -> None:
    usage = {"type": "usage", "input": 1200, "cached": 1000, "output": 40, "usd": 0.01}
    script = f"print({json.dumps(json.dumps(usage))}); open('program.py', 'w').write({BETTER!r})"
    (task.parent / "agent.py").write_text(script)
    command = options(task, "")[2].partition(" {url}")[0]
    done = outlay("search", task, "--json", "--agent", command)
    assert (done.returncode, ends(task)) == (0, ("scored",)), done.stderr
    (event,) = settled(task)
    assert event.agent is not None
    assert (event.agent.source, event.agent.complete) == ("stream", False)
    assert charged(task) == (1200, 40)


def test_without_a_proxy_a_limit_is_held_by_what_the_client_tells(
    task: Path, outlay: Command
) -> None:
    usage = {"type": "usage", "input": 600, "output": 40}
    script = f"import time\nwhile True: print({json.dumps(usage)!r}, flush=True); time.sleep(1)"
    (task.parent / "agent.py").write_text(script)
    edit(task, "seconds = 100", "seconds = 100\ntokens = 1000")
    command = options(task, "")[2].partition(" {url}")[0]
    done = outlay("search", task, "--json", "--agent", command)
    assert (done.returncode, ends(task)) == (4, ("failed: budget",)), done.stderr
    (event,) = settled(task)
    assert event.agent is not None
    assert event.agent.complete is False
    assert event.charge.tokens >= 1000
