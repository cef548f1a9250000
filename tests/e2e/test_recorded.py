"""A search with an agent and a model, recorded, and searched again elsewhere without either."""

from __future__ import annotations

import json
import lzma
import os
import subprocess
import urllib.parse
from typing import TYPE_CHECKING, Any

import pytest

from outlay.execution.metering.record import OWN_SECRET
from outlay.recording.again import replay
from tests.e2e.conftest import OUTLAY, Command
from tests.e2e.scripted import KEY, researcher, write_agent, write_task
from tests.model_server import ModelServer, Turn
from tests.recording.samples import rewritten, sealed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.model_protocols import Asked

pytestmark = pytest.mark.xdist_group("recorded")  # they share one search

OTHER = "planted-0123456789-abcdef"
"""A key of another provider, in the environment of whoever records."""

TELLS = f"""\
import os, urllib.parse
print("my key is", key, "and the other", {KEY!r}, dict(os.environ))
open("notes.txt", "w").write({KEY!r} + " and " + {OTHER!r} + " and " + key)
address = url + "/v1/models?key=" + urllib.parse.quote({KEY!r}, safe="")
header = {{"authorization": "Bearer " + key}}
urllib.request.urlopen(urllib.request.Request(address, headers=header)).read()"""


def telling(script: Callable[[Asked], Turn]) -> Callable[[Asked], Turn]:
    """Return a script whose texts tell the provider's key."""

    def told(asked: Asked) -> Turn:
        turn = script(asked)
        return turn if turn.answer else turn._replace(text=f"{turn.text} Key: {asked.key}")

    return told


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A search whose agent tells every key everywhere; its task's folder and what it printed."""
    root = tmp_path_factory.mktemp("recorded")
    server = ModelServer(telling(researcher()), keys=(KEY,))
    with pytest.MonkeyPatch.context() as patch, server:
        patch.setenv("SCRIPTED_KEY", KEY)
        patch.setenv("OTHER_API_KEY", OTHER)
        name, more = write_agent(root, TELLS)
        question = f"Which level? Use {KEY}, or else {OTHER}."
        task = write_task(root / "task", server.url, attempts=4, question=question, more=more)
        found = _json(root, "search", task, "--agent", name)
        assert _json(root, "record", "switches", "--store", task, "--out", root / "run.record")
        found["told"] = server.told(KEY)
        yield task, found


def _json(folder: Path, *words: str | Path) -> dict[str, Any]:
    command = [OUTLAY, *map(str, words), "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_charges_are_what_the_server_counted(run: tuple[Path, dict[str, Any]]) -> None:
    _, found = run
    told, total = found["told"], found["charges"]["total"]
    assert total["tokens_in"] + total["tokens_cached"] == told.input > 0
    assert (total["tokens_cached"], total["tokens_out"]) == (told.cached, told.output)


def test_the_record_is_searched_again_with_model_and_task_gone(
    run: tuple[Path, dict[str, Any]], outlay: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, _ = run
    monkeypatch.delenv("SCRIPTED_KEY", raising=False)
    for more in ((), ("--evaluate",)):
        again = outlay("replay", task.parent / "run.record", "--json", *more)
        assert again.returncode == 0, again.stdout + again.stderr
        found = json.loads(again.stdout)
        assert found["same"]
        assert found["digest"] == found["recorded"]
        assert bool(found["evaluations"]) == bool(more)


def test_the_record_holds_no_secret_in_any_form(run: tuple[Path, dict[str, Any]]) -> None:
    text = lzma.decompress((run[0].parent / "run.record").read_bytes())
    for secret in (KEY, OTHER):
        for form in (secret, urllib.parse.quote(secret, safe=""), json.dumps(secret)[1:-1]):
            assert form.encode() not in text
    assert OWN_SECRET.search(text.decode()) is None
    # What was planted is there, cut: in the task, a program, an address, an answer.
    for place in (b"Use [redacted]", b"[redacted] and [redacted] and [redacted]",
                  b"/v1/models?key=[redacted]", b"Key: [redacted]"):  # fmt: skip
        assert place in text
    assert os.uname().nodename.encode() not in text.split(b"RunStarted")[1][:4000]


def test_logs_of_the_agent_hold_no_secret(run: tuple[Path, dict[str, Any]]) -> None:
    jobs = run[0] / ".outlay" / "runs" / "switches" / "jobs"
    logs = list(jobs.glob("*/agent.jsonl"))
    assert len(logs) >= 4
    assert any("my key is [redacted]" in log.read_text() for log in logs)
    for log in [*logs, *jobs.glob("*/result.json")]:
        assert KEY not in log.read_text()
        assert OWN_SECRET.search(log.read_text()) is None


def test_usage_is_counted_from_the_exchanges_again(run: tuple[Path, dict[str, Any]]) -> None:
    def less(lines: list[bytes]) -> list[bytes]:
        at = next(n for n, line in enumerate(lines) if b'"line":"exchange"' in line)
        changed = json.loads(lines[at])
        while not changed["exchange"]["usage"]:
            at += 1
            changed = json.loads(lines[at])
        changed["exchange"]["usage"]["output"] += 1
        return sealed([*lines[:at], json.dumps(changed).encode() + b"\n", *lines[at + 1 :]])

    found = replay(rewritten(run[0].parent / "run.record", less))
    assert "charge: recorded" in found.difference


def test_plans_are_read_out_of_the_answers_again(run: tuple[Path, dict[str, Any]]) -> None:
    def other(lines: list[bytes]) -> list[bytes]:
        answer, old, new = b'"line":"answer"', b"level to 0.5.", b"level to 0.7."
        assert any(answer in line and old in line for line in lines)
        return sealed([line.replace(old, new) if answer in line else line for line in lines])

    found = replay(rewritten(run[0].parent / "run.record", other))
    assert "children: recorded" in found.difference


def test_a_run_of_the_store_is_searched_again(
    run: tuple[Path, dict[str, Any]], outlay: Command
) -> None:
    again = outlay("replay", "switches", "--store", run[0], "--json")
    assert again.returncode == 0, again.stdout + again.stderr
    assert json.loads(again.stdout)["same"]
