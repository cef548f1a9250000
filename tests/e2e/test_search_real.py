"""Whole searches with the real clients, recorded, and searched again without them."""

from __future__ import annotations

import json
import lzma
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from outlay import events
from outlay.execution.metering.record import OWN_SECRET
from outlay.state import State
from tests.agents.clients.real import CLIENTS, REAL, installed
from tests.e2e.conftest import OUTLAY, digest_of, log_of
from tests.e2e.scripted import KEY, researcher, write_task
from tests.model_server import ModelServer

if TYPE_CHECKING:
    from pathlib import Path

    from outlay.agents.clients.contract import Usage

pytestmark = REAL


@pytest.mark.slow
@pytest.mark.parametrize("client", CLIENTS)
def test_a_search_finds_the_best_level_and_is_searched_again_without_the_client(
    client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(client, monkeypatch)
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    with ModelServer(researcher(), keys=(KEY,)) as server:
        task = write_task(tmp_path / "task", server.url)
        found = _json("search", task, "--agent", client)
        told = server.told(KEY)
    assert (found["status"], found["attempts"]) == ("budget", 6)
    assert found["difference"]["mean"] == pytest.approx(0.4, abs=0.01)
    _check_tree(task)
    _check_charges(task, found["charges"]["total"], told)
    _check_export(task)
    _check_replay(task, client, monkeypatch)


def _json(*words: str | Path) -> dict[str, Any]:
    return _run([str(OUTLAY), *map(str, words), "--json"], dict(os.environ))


def _run(command: list[str], environment: dict[str, str]) -> dict[str, Any]:
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def _check_tree(task: Path) -> None:
    """Two branches or more were tried, and one was pruned as soon as it was."""
    state = State.of(log_of(task))
    root = state.tree.root
    assert len([node for node in root.children if node.attempt]) >= 2
    assert [node.id for node in state.tree.nodes if node.pruned] == [2]
    assert state.tree.nodes[2].parent is root
    champion = state.tree.nodes[state.contest.champion]
    assert champion.parent is not None
    assert champion.parent.parent is root


def _check_charges(task: Path, total: dict[str, float], told: Usage) -> None:
    """Every token that the server told of is charged once, and no other."""
    assert total["tokens_in"] + total["tokens_cached"] == told.input > 0
    assert total["tokens_cached"] == told.cached > 0
    assert total["tokens_out"] == told.output > 0
    by_models = (events.AttemptSettled, events.ReflectionSettled)
    used = [e.event.agent for e in log_of(task) if isinstance(e.event, by_models)]
    assert all(use is not None and use.source == "proxy" and use.complete for use in used)
    for name in ("requests", "reasoning", "cache_write"):
        assert sum(getattr(use, name) for use in used) == getattr(told, name)


def _check_export(task: Path) -> None:
    patch = task.parent / "best.patch"
    exported = _json("export", "switches", "--store", task, "--patch", patch)
    assert exported["changed"] == ["level.txt"]
    assert (task / "level.txt").read_text() == "0.2"
    for words in (("init", "-q"), ("apply", str(patch))):
        subprocess.run(["git", *words], cwd=task, check=True)
    assert (task / "level.txt").read_text() == "0.6"


def _check_replay(task: Path, client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the server and the folder gone, no network and no client, it ends the same."""
    record, then = task.parent / "run.record", digest_of(task)
    kept = _json("record", "switches", "--store", task, "--out", record)
    text = lzma.decompress(record.read_bytes()).decode()
    assert KEY not in text
    assert OWN_SECRET.search(text) is None
    task.rename(task.parent / "gone")
    monkeypatch.delenv("SCRIPTED_KEY")
    monkeypatch.delenv("OUTLAY_CLIENTS")
    environment = {"PATH": _path_without(task.parent, client), "HOME": str(task.parent / "home")}
    for more in ([], ["--evaluate"]):
        command = [*_offline(), str(OUTLAY), "replay", str(record), *more, "--json"]
        again = _run(command, environment)
        assert (again["same"], again["digest"]) == (True, then)
        assert bool(again["evaluations"]) == bool(more)
    assert kept["digest"] == then


def _path_without(folder: Path, client: str) -> str:
    """Return a path with nothing on it but the sandbox's program."""
    programs = folder / "programs"
    programs.mkdir()
    if (place := shutil.which("bwrap")) is not None:
        (programs / "bwrap").symlink_to(place)
    assert shutil.which(client, path=str(programs)) is None
    return str(programs)


def _offline() -> list[str]:
    """Return what to put before a command so that it has no network, where that is allowed."""
    unshare = shutil.which("unshare") or ""
    for options in (["-n"], ["-r", "-n"]):
        if unshare and subprocess.run([unshare, *options, "true"], check=False).returncode == 0:
            return [unshare, *options]
    return []
