"""What a person sees on a terminal while an agent works."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from typing import TYPE_CHECKING

from outlay import events
from tests.e2e.conftest import OUTLAY, log_of
from tests.e2e.test_agents import SCORE, TASK

if TYPE_CHECKING:
    from pathlib import Path

WAITS = """\
import json, pathlib, sys, time
def tell(**fields): print(json.dumps(fields), flush=True)
tell(type="tool", text="count the \\x1b[31m levels")
tell(type="usage", input=1200, cached=1000, output=40)
while not pathlib.Path(sys.argv[1], "go").exists():
    time.sleep(0.01)
pathlib.Path("level.txt").write_text("0.5")
"""


def _read_until(screen: int, words: tuple[str, ...]) -> str:
    """Return what was drawn until all of the words were."""
    seen = b""
    while not all(word.encode() in seen for word in words):
        assert select.select([screen], [], [], 60)[0], seen[-2000:]
        seen += os.read(screen, 1 << 16)
    return seen.decode("utf-8", "replace")


def test_a_terminal_shows_what_an_agent_does_before_its_attempt_settles(tmp_path: Path) -> None:
    task, signals = tmp_path / "task", tmp_path / "signals"
    task.mkdir()
    signals.mkdir()
    (task / "score.py").write_text(SCORE)
    (task / "level.txt").write_text("0.2")
    (task / "weight.txt").write_text("1")
    (signals / "agent.py").write_text(WAITS)
    (task / "outlay.toml").write_text(f'{TASK}[sandbox]\nread = ["{signals}"]\n')
    agent = f"command:{sys.executable} -I -S {signals}/agent.py {signals}"
    screen, terminal = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
    command = [OUTLAY, "search", str(task), "--agent", agent, "--attempts", "1"]
    with subprocess.Popen(
        command, env=environment, stdin=terminal, stderr=terminal, stdout=subprocess.DEVNULL
    ) as search:
        os.close(terminal)
        shown = _read_until(screen, ("1200 in, 40 out", "tool: count the", "levels"))
        assert not [e for e in log_of(task) if isinstance(e.event, events.AttemptSettled)]
        assert "\x1b[31m levels" not in shown
        (signals / "go").touch()
        _read_until(screen, ("ended: the budget of",))
        assert search.wait(60) == 0
    os.close(screen)
    assert [e for e in log_of(task) if isinstance(e.event, events.AttemptSettled)]
