from __future__ import annotations

import json
from typing import TYPE_CHECKING

from outlay.execution.agent import LOG
from outlay.execution.folder import write_metered
from outlay.report.working import working

if TYPE_CHECKING:
    from pathlib import Path


def tell(run: Path, *told: tuple[str, str], more: bytes = b"") -> None:
    job = run / "jobs" / "a1.1"
    job.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"at": 1.0, "kind": kind, "text": text}) for kind, text in told]
    with open(job / LOG, "ab") as log:
        log.write("".join(line + "\n" for line in lines).encode() + more)


def test_without_an_agent_nothing_is_said(tmp_path: Path) -> None:
    assert working(tmp_path, "a1.1") == ""


def test_the_latest_action_and_what_the_proxy_counted(tmp_path: Path) -> None:
    tell(tmp_path, ("session", "s1"), ("tool", "ls"), ("usage", "7 in, 1 out"))
    assert working(tmp_path, "a1.1") == "7 in, 1 out · tool: ls"
    tell(tmp_path, ("message", "I look."), ("usage", "9 in, 2 out"))
    used = {"tokens_in": 200, "tokens_cached": 1000, "tokens_out": 40, "usd": 0.125}
    write_metered(tmp_path / "jobs" / "a1.1", used)
    said = "1,200 tokens in, 40 out, 0.12 USD · message: I look."
    assert working(tmp_path, "a1.1") == said


def test_a_log_that_is_long_half_written_or_broken(tmp_path: Path) -> None:
    tell(tmp_path, *[("tool", f"step {number} {'x' * 90}") for number in range(200)])
    tell(tmp_path, more=b'[1]\n{"kind": 7, "text": "t"}\n\xff\xfe{\n{"kind": "tool", "text": "ha')
    assert working(tmp_path, "a1.1").startswith("tool: step 199 ")
