"""A Harbor task folder read as a task, and what it cannot have."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from outlay import taskfile
from outlay.errors import InputError
from outlay.execution import sandbox
from outlay.task import Budget

EXAMPLE = Path(__file__).parents[1] / "examples" / "harbor"
pytestmark = pytest.mark.skipif(not sandbox.works("bwrap"), reason="bubblewrap does not start")

DOCS = Path(__file__).parents[1] / "docs" / "task-file.md"

AUTOLAB = """
version = "1.0"
[metadata]
author = "AutoLab"
tags = ["simd"]
[agent]
timeout_sec = 7200
[verifier]
timeout_sec = 300
[environment]
cpus = 2
memory_mb = 4096
storage_mb = 2048
gpus = 0
allow_internet = false
[optimization]
metric = "runtime_seconds"
direction = "lower"
[optimization.baseline]
score = 12.0
method = "as it stands"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path in ("environment/solve.c", "tests/test.sh", "solution/solve.sh"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("")
    (tmp_path / "task.toml").write_text(AUTOLAB)
    (tmp_path / "instruction.md").write_text("# Faster\n\nOptimize `/app/solve.c`.\n")
    return tmp_path


def given(folder: Path, text: str) -> Path:
    (folder / "task.toml").write_text(text)
    return folder


def test_a_task_of_autolab(folder: Path) -> None:
    task = taskfile.load(folder)
    assert task == taskfile.recognise(folder)
    assert task.question == "# Faster\n\nOptimize `/app/solve.c`.\n"
    assert task.evaluator.command == ("bash", "/tests/test.sh")
    assert (task.evaluator.container, task.evaluator.noise) == ("/app", "machine")
    assert (task.metric.name, task.metric.secondary) == ("reward", ("metric",))
    assert (task.metric.low, task.metric.high, task.metric.reward) == (0.0, 1.0, "identity")
    assert task.workspace.hidden == ("task.toml", "tests", "solution")
    assert task.workspace.protected == ("instruction.md",)
    assert (task.limits.seconds, task.limits.memory) == (7500.0, 4096 * 2**20)
    assert (task.sandbox.network, task.sandbox.gpu) == (False, False)
    assert task.budget == Budget(attempts=25)
    assert taskfile.load(folder, Budget(attempts=3)).budget.attempts == 3


def test_its_notes_name_what_is_not_honoured_and_nothing_else(folder: Path) -> None:
    named = [note.partition(":")[0] for note in taskfile.notes(taskfile.load(folder))]
    assert named == [
        "environment.cpus",
        "environment.storage_mb",
        "agent.timeout_sec, verifier.timeout_sec",
    ]


def test_unknown_keys_and_absent_ones_are_noted(folder: Path) -> None:
    task = taskfile.load(
        given(folder, "shape = 1\n[environment]\nmemory = '2G'\ncolour = 'red'\n")
    )
    found = taskfile.notes(task)
    assert "shape: unknown to Outlay, ignored" in found
    assert "environment.colour: unknown to Outlay, ignored" in found
    assert any("no limit of time" in note for note in found)
    assert any("there is no network" in note for note in found)
    assert (task.limits.seconds, task.limits.memory) == (None, 2 * 2**30)
    assert task.name == folder.name


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("apt-get update", "(apt-get)"),
        ("python3 -m pip install pytest", "(pip install)"),
        ("uvx pytest /tests", "(uvx)"),
        ("python3 /tests/adapt.py", ""),
    ],
)
def test_a_verifier_that_installs_something_is_noted(folder: Path, line: str, named: str) -> None:
    (folder / "tests" / "test.sh").write_text(f"#!/bin/bash\n{line}\n")
    found = [note for note in taskfile.notes(taskfile.load(folder)) if "install" in note]
    assert [named in note for note in found] == [True] * bool(named)


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("", False),
        ("allow_internet = true", True),
        ("allow_internet = true\nallowed_hosts = ['example.org']", False),
        ("network_mode = 'public'", True),
        ("network_mode = 'no-network'", False),
        ("network_mode = 'allowlist'\nallowed_hosts = ['example.org']", False),
    ],
)
def test_the_network_is_open_only_where_the_task_says_so(
    folder: Path, text: str, network: bool
) -> None:
    task = taskfile.load(given(folder, f"[environment]\n{text}\n"))
    assert task.sandbox.network is network
    assert network or any("network" in note for note in taskfile.notes(task)) or "no-" in text


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("schema_version = '2.0'", "schema_version"),
        ("[[steps]]\nname = 'one'", "steps"),
        ("[environment.env]\nKEY = '${KEY}'", "environment.env"),
        ("[[environment.mcp_servers]]\nname = 'x'", "environment.mcp_servers"),
        ("[environment.healthcheck]\ncommand = 'true'", "environment.healthcheck"),
        ("[verifier]\nenv = { KEY = 'x' }", "verifier.env"),
        ("[verifier]\nenvironment_mode = 'separate'", "verifier.environment_mode"),
        ("[[verifier.collect]]\ncommand = 'x'", "verifier.collect"),
        ("[agent]\ntimeout_sec = 'long'", "agent.timeout_sec"),
        ("[agent]\ntimeout_sec = -1000", "limits.seconds"),
        ("[environment]\nmemory_mb = true", "environment.memory_mb"),
        ("[environment]\nworkdir = '/usr'", "evaluate.container"),
        ("[environment]\nworkdir = '/usr/src/app'", "evaluate.container"),
        ("[environment]\nworkdir = '/app/..'", "evaluate.container"),
        ("[environment]\nworkdir = 'app'", "evaluate.container"),
        ("[task]\nname = 'org/-'", "task.name"),
        ("agent = 1", "agent"),
    ],
)
def test_what_cannot_be_honoured_is_an_error(folder: Path, text: str, key: str) -> None:
    with pytest.raises(InputError, match=rf"{re.escape(key)}: found .*, allowed: "):
        taskfile.load(given(folder, text))


@pytest.mark.parametrize("missing", ["instruction.md", "tests/test.sh"])
def test_a_part_that_is_missing_is_named(folder: Path, missing: str) -> None:
    (folder / missing).unlink()
    with pytest.raises(InputError, match=f"found no {missing}"):
        taskfile.load(folder)


def test_several_services_are_refused(folder: Path) -> None:
    (folder / "environment" / "docker-compose.yaml").write_text("services: {}\n")
    with pytest.raises(InputError, match="services"):
        taskfile.load(folder)


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        ("FROM x\nWORKDIR /workspace/\nRUN make\n", "/workspace"),
        ("FROM x\nWORKDIR /build\n  WORKDIR /code\n", "/code"),
        ("FROM x\nWORKDIR /app/src\n", "/app/src"),
        ("FROM x\nWORKDIR $HOME\n", "/app"),
        ("FROM x\n", "/app"),
    ],
)
def test_the_folder_is_the_one_of_the_dockerfile(folder: Path, lines: str, place: str) -> None:
    (folder / "environment" / "Dockerfile").write_text(lines)
    task = taskfile.load(folder)
    assert task.evaluator.container == place
    assert "environment/Dockerfile" in task.workspace.hidden
    assert any(
        note.startswith("environment/Dockerfile: not built") for note in taskfile.notes(task)
    )


def test_a_place_that_hides_what_a_run_needs_is_refused(folder: Path) -> None:
    place = f"/{Path(sys.prefix).parts[1]}"
    (folder / "outlay.toml").write_text(f'[evaluate]\ncontainer = "{place}"\n')
    with pytest.raises(InputError, match=rf"evaluate.container: found '{place}'"):
        taskfile.load(folder)


def test_a_task_file_beside_it_sets_what_it_likes(folder: Path) -> None:
    (folder / "outlay.toml").write_text(
        '[evaluate]\nmetric = "speedup"\nrange = [0, 100]\nreward = "logistic"\n'
        '[budget]\ntime = "1h"\n[seeds]\nfinal = [2, 3]\n'
    )
    task = taskfile.load(folder)
    assert (task.metric.name, task.metric.high, task.metric.reward) == ("speedup", 100, "logistic")
    assert task.budget == Budget(seconds=3600.0)
    assert task.evaluator.container == "/app"


def test_the_page_says_what_the_layout_supplies() -> None:
    page = DOCS.read_text().split("## A folder in Harbor's layout")[1]
    block = re.search(r"```toml\n(.*?)```", page, re.DOTALL)
    assert block is not None
    said = taskfile.load_text(
        block[1].replace("[task]", '[task]\nname = "x"\nquestion = "q"'), "page", EXAMPLE
    )
    task = taskfile.load(EXAMPLE)
    assert said.evaluator == task.evaluator
    assert (said.workspace, said.budget) == (task.workspace, task.budget)
    assert said.metric.name == task.metric.name
    assert (said.metric.low, said.metric.high) == (task.metric.low, task.metric.high)
