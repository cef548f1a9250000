"""Runs searched again from their records: what is made again, and what is found to differ."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from outlay.digest import digest
from outlay.errors import InputError
from outlay.events import MeasurementSettled
from outlay.execution import sandbox
from outlay.recording.again import replay
from outlay.recording.keep import keep
from tests.recording.samples import rewritten, sealed, searched

if TYPE_CHECKING:
    from pathlib import Path

    from outlay.events import Entry


pytestmark = pytest.mark.xdist_group("again")  # they share one search


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Entry], Path]:
    """A log, and the file of its record; the task's folder and the store are gone."""
    folder = tmp_path_factory.mktemp("again")
    entries, place = searched(folder)
    keep("switches", entries, place, folder / "run.record")
    (folder / "task").rename(folder / "gone")
    (folder / ".outlay").rename(folder / "gone too")
    return entries, folder / "run.record"


def test_a_replay_ends_with_the_digest_of_the_run(run: tuple[list[Entry], Path]) -> None:
    entries, record = run
    found = replay(record)
    assert (found.digest, found.difference) == (digest(entries), "")
    assert (found.events, found.evaluations) == (len(entries), 0)


def test_evaluations_come_out_the_same_elsewhere(run: tuple[list[Entry], Path]) -> None:
    entries, record = run
    found = replay(record, evaluate=True)
    assert (found.digest, found.difference) == (digest(entries), "")
    assert found.evaluations == sum(len(getattr(e.event, "evaluations", ())) for e in entries) > 10


def test_a_replay_starts_no_process_and_opens_no_socket(
    run: tuple[list[Entry], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("something was started or asked")

    for name in ("subprocess.Popen", "os.posix_spawn", "os.fork", "socket.socket"):
        monkeypatch.setattr(name, refuse)
    assert replay(run[1]).difference == ""


def test_a_replay_leaves_nothing_behind(
    run: tuple[list[Entry], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    replay(run[1], evaluate=True)
    assert list(tmp_path.iterdir()) == []


def _changed(old: bytes, new: bytes, record: Path) -> Path:
    def change(lines: list[bytes]) -> list[bytes]:
        assert any(old in line for line in lines)
        return sealed([line.replace(old, new) for line in lines])

    return rewritten(record, change)


def test_a_decision_that_does_not_follow_is_found(run: tuple[list[Entry], Path]) -> None:
    found = replay(_changed(b'"promoted":true', b'"promoted":false', run[1]))
    assert "Judged 1, promoted: recorded False, now True" in found.difference
    assert found.digest != found.recorded


def test_a_decision_that_comes_from_nowhere_is_found(run: tuple[list[Entry], Path]) -> None:
    old = b'"status":"exhausted"'
    found = replay(_changed(old, b'"status":"budget"', run[1]))
    assert "status: recorded budget, now exhausted" in found.difference


def test_a_score_that_the_program_does_not_have_is_found(run: tuple[list[Entry], Path]) -> None:
    entries, record = run
    last = [e.event for e in entries if isinstance(e.event, MeasurementSettled)][-1]
    value = json.dumps(last.evaluations[0].value).encode()
    changed = _changed(value, b"0.75", record)
    assert replay(changed).difference == ""
    found = replay(changed, evaluate=True)
    assert f"MeasurementSettled {last.work}, evaluations" in found.difference


def _planted(record: Path, **changes: object) -> Path:
    """Return the record as somebody could have made it whose task names other places."""

    def change(lines: list[bytes]) -> list[bytes]:
        found = [json.loads(line) for line in lines]
        (started,) = [
            e["entry"]["event"]
            for e in found
            if e["line"] == "event" and "task_hash" in e["entry"]["event"]
        ]
        task = json.loads(started["task"])
        for table, fields in changes.items():
            task[table] |= fields
        started["task"] = json.dumps(task)
        return sealed([json.dumps(line).encode() + b"\n" for line in found])

    return rewritten(record, change)


@pytest.mark.skipif(not sandbox.works("bwrap"), reason="bubblewrap does not start")
def test_a_record_opens_nothing_that_the_user_did_not_name(
    run: tuple[list[Entry], Path], tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("mine")
    command = ["sh", "-c", f"cat {tmp_path}/secret && echo score: 1"]
    opened = {"read": [str(tmp_path)], "network": True}
    record = _planted(run[1], sandbox=opened, evaluator={"command": command})
    found = replay(record, evaluate=True)
    assert "MeasurementSettled m1, outcome: recorded scored, now failed" in found.difference
    assert "No such file" in found.difference


@pytest.mark.parametrize("data", ["secret", "../secret", "{0}/secret"])
def test_data_of_a_record_lies_in_a_folder_that_the_user_names(
    run: tuple[list[Entry], Path], tmp_path: Path, data: str
) -> None:
    (tmp_path / "secret").write_text("mine")
    (tmp_path / "named").mkdir()
    workspace = {"data": [data.format(tmp_path)], "path": str(tmp_path)}
    record = _planted(run[1], workspace=workspace)
    with pytest.raises(InputError, match="--workspace and the task's folder"):
        replay(record, evaluate=True)
    with pytest.raises(InputError, match=r"data: found no .* in the folder"):
        replay(record, evaluate=True, workspace=tmp_path / "named")
    (tmp_path / "named" / "secret").write_text("shared")
    if data == "secret":
        assert replay(record, evaluate=True, workspace=tmp_path / "named").events > 0
