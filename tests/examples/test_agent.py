"""The example with a coding agent: with a real one over a scripted model, and with none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.agents.clients.real import installed
from tests.e2e.conftest import OUTLAY
from tests.e2e.test_examples import copy
from tests.model_server import ModelServer, Turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.model_protocols import Asked

DECREASING = """\
import json, sys
sizes = json.load(sys.stdin)
room, place = [], [0] * len(sizes)
for item in sorted(range(len(sizes)), key=lambda k: -sizes[k]):
    for bin in range(len(room) + 1):
        if bin == len(room):
            room.append(1.0)
        if room[bin] >= sizes[item]:
            break
    room[bin] -= sizes[item]
    place[item] = bin
json.dump(place, sys.stdout)
"""


def packer() -> Callable[[Asked], Turn]:
    """Return a model that drafts plans, and writes the good program in its second attempt."""
    numbers = count()

    def script(asked: Asked) -> Turn:
        if asked.schema is not None:
            answer = _answer(asked.schema["properties"], asked.schema.get("$defs", {}))
            return Turn(answer=answer, text=json.dumps(answer))
        if asked.results:
            return Turn(text="I have changed pack.py.")
        better = f"cat > pack.py <<'END'\n{DECREASING}END"
        return Turn(shell=better if next(numbers) else "echo '# first look' >> pack.py")

    return script


def _answer(form: dict[str, object], parts: dict[str, object]) -> dict[str, object]:
    if "children" not in form:
        return {"title": "Look", "hypothesis": "A note helps.", "approach": ["Add a note."]}
    edit = parts["child"]["properties"]["edits"]["items"]["properties"]  # type: ignore[index]
    line = next(line for line in edit["search"]["enum"] if "Add a note" in line)
    child = {
        "hypothesis": "Large items first.",
        "edits": [{"search": line, "replace": "Place the largest items first."}],
        "changes": "Sorted.",
        "axis": "order",
        "direction": "large-first",
        "chance": 80,
        "rationale": "Small items fill what is left.",
        "risks": "None.",
    }
    return {"children": [child]}


def run(folder: Path, environment: dict[str, str], *options: str) -> subprocess.CompletedProcess:
    kept = {name: os.environ[name] for name in ("HOME", "TMPDIR", "LANG") if name in os.environ}
    return subprocess.run(
        [OUTLAY, "search", str(folder), "--json", *options],
        env=kept | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def path(*before: str) -> str:
    return os.pathsep.join((*before, str(Path(sys.executable).parent), "/usr/bin", "/bin"))


@pytest.mark.real_client
@pytest.mark.xdist_group("clients")
@pytest.mark.parametrize(("client", "named"), [("codex", ()), ("claude", ("--agent", "claude"))])
def test_one_command_finds_the_better_packing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str, named: tuple[str, ...]
) -> None:
    installed(client, monkeypatch)
    folder = copy("agent", tmp_path, {})
    with ModelServer(packer()) as server:
        options = ("--base-url", server.url, "--model", "fake-1", "--attempts", "2", *named)
        done = run(folder, {"PATH": os.environ["PATH"]}, *options)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["difference"]["low"] > 0.15
    assert {(used["role"], used["client"]) for used in found["agents"]} == {
        ("reflector", client),
        ("executor", client),
    }
    assert all(used["complete"] and used["sources"] == ["proxy"] for used in found["agents"])


def test_without_any_agent_one_line_says_what_is_needed(tmp_path: Path) -> None:
    folder = copy("agent", tmp_path, {})
    done = run(folder, {"PATH": path()})
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    for words in ("found none that can work", "codex: not installed", "key in the environment"):
        assert words in line
    assert "--base-url URL --model NAME" in line
    assert not (folder / ".outlay").exists()


def test_an_agent_without_its_key_is_told_apart(tmp_path: Path) -> None:
    folder = copy("agent", tmp_path, {})
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "claude").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "claude").chmod(0o755)
    done = run(folder, {"PATH": path(str(tmp_path / "bin")), "OPENAI_API_KEY": "k"})
    assert done.returncode == 2
    assert "codex: not installed; claude: no ANTHROPIC_API_KEY;" in done.stderr


def test_a_wrong_key_is_found_before_anything_is_spent(tmp_path: Path) -> None:
    folder = copy("agent", tmp_path, {})
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "codex").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "codex").chmod(0o755)
    with ModelServer(keys=("right",)) as server:
        environment = {"PATH": path(str(tmp_path / "bin")), "MY_KEY": "very-secret"}
        options = ("--base-url", server.url, "--model", "m", "--key", "MY_KEY")
        done = run(folder, environment, *options)
        asked = [(seen.method, seen.path) for seen in server.seen]
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"MY_KEY: found a key that {server.url} refuses (401, Incorrect API key" in line
    assert "very-secret" not in line
    assert asked == [("GET", "/v1/models")]
    assert not (folder / ".outlay").exists()
