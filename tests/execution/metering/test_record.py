from __future__ import annotations

import gzip
import json
import stat
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from outlay.execution.metering.record import (
    MOST_KEPT,
    REDACTED,
    Draft,
    Exchange,
    Recorder,
    exchanges,
    forms,
    redacted,
)

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

KEY = 'sk-a"b/c+d'


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "exchanges.jsonl.gz"
    kept = [
        Exchange(at=n, method="POST", request="ä\ud800"[:1], tries=(429, 200), usage={"input": n})
        for n in range(5)
    ]
    recorder = Recorder(path, (KEY,))
    for exchange in kept:
        recorder.add(exchange)
    assert list(exchanges(path)) == kept
    assert len(gzip.decompress(path.read_bytes()).splitlines()) == 5
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@settings(deadline=None)
@given(cut=st.integers(1, 200))
def test_a_kill_loses_the_last_one_only(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("record") / "exchanges.jsonl.gz"
    recorder = Recorder(path, ())
    for n in range(3):
        recorder.add(Exchange(at=n, request="x" * 50))
        if n == 1:
            size = path.stat().st_size
    data = path.read_bytes()
    path.write_bytes(data[: max(len(data) - cut, size)])
    assert [found.at for found in exchanges(path)] == [0, 1]


def test_no_form_of_a_secret_is_written(tmp_path: Path) -> None:
    path = tmp_path / "exchanges.jsonl.gz"
    draft = Draft(f"GET /v1/x?key=sk-a%22b%2Fc%2Bd&y={KEY} HTTP/1.1", (("user-agent", KEY),))
    draft.asked = json.dumps({"say": KEY}).encode()
    draft.answered(200, (("content-type", f"text/{KEY}"),))
    draft.said(f"the key is {KEY}.".encode())
    Recorder(path, (KEY, "secret")).add(draft.exchange())
    text = gzip.decompress(path.read_bytes()).decode()
    (found,) = exchanges(path)
    assert found.request == f'{{"say": "{REDACTED}"}}'
    assert found.response == f"the key is {REDACTED}."
    assert found.target == f"/v1/x?key={REDACTED}&y={REDACTED}"
    assert "b/c" not in text
    assert "%22b" not in text


def test_a_secret_inside_another_is_no_leak() -> None:
    assert redacted("abcdef abc", forms(("abc", "abcdef"))) == f"{REDACTED} {REDACTED}"
    assert forms(("",)) == ()


def test_bodies_are_bounded(tmp_path: Path) -> None:
    draft = Draft("POST / HTTP/1.1", ())
    draft.asked = b"x" * (MOST_KEPT + 5)
    for _ in range(6):
        draft.said(b"y" * (1 << 20))
    exchange = draft.exchange()
    assert len(exchange.request) == len(exchange.response) == MOST_KEPT


def test_a_disk_that_takes_nothing_is_told_of(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "absent" / "x", ())
    recorder.add(Exchange(at=0.0))
    assert recorder.lost == 1
