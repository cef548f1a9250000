"""Files that are no records, damaged ones, and ones that were made to do harm."""

from __future__ import annotations

import json
import lzma
from typing import TYPE_CHECKING

import pytest

from outlay.cli.app import main
from outlay.errors import InputError
from outlay.recording import lines
from outlay.recording.again import replay
from tests.recording.samples import recorded, rewritten, sealed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Change = Callable[[list[bytes]], list[bytes]]


pytestmark = pytest.mark.xdist_group("lines")  # they share one search


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("recorded"))


def refused(file: Path) -> str:
    """Return why a file is refused; it must name the file, in one line."""
    with pytest.raises(InputError) as raised:
        replay(file)
    message = str(raised.value)
    assert str(file) in message
    assert "\n" not in message
    return message


def test_a_record_is_read_again(record: Path) -> None:
    found = replay(record)
    assert found.difference == ""
    assert found.digest == found.recorded
    assert (found.run, found.evaluations) == ("switches", 0)


@pytest.mark.parametrize("part", [0.0, 0.01, 0.5, 0.99])
def test_a_truncated_record_is_refused(record: Path, part: float) -> None:
    packed = record.read_bytes()
    short = record.with_name("short.record")
    short.write_bytes(packed[: int(len(packed) * part)])
    assert "ends too early" in refused(short)


def test_a_record_with_a_changed_byte_is_refused(record: Path) -> None:
    packed = bytearray(record.read_bytes())
    changed = record.with_name("changed.record")
    for at in range(0, len(packed), len(packed) // 20):
        changed.write_bytes(packed[:at] + bytes([packed[at] ^ 0x40]) + packed[at + 1 :])
        assert "no whole record" in refused(changed)


@pytest.mark.parametrize(
    "content",
    [b"", b"PK\x03\x04 a zip", lzma.compress(b"{}\n"), lzma.compress(b"\xff\xfe\n"),
     lzma.compress(b'{"line":"event"}\n'), lzma.compress(b"[" * 100_000 + b"\n"), b"\x00" * 4096],
    ids=["empty", "a zip", "no head", "no text", "an event", "deep", "zeros"],
)  # fmt: skip
def test_a_foreign_file_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "foreign"
    file.write_bytes(content)
    assert "no whole record" in refused(file)


def _line(change: Callable[[dict], object], kind: str) -> Change:
    """Return a change of the first line of a kind."""

    def changed(found: list[bytes]) -> list[bytes]:
        at = next(n for n, line in enumerate(found) if json.loads(line)["line"] == kind)
        fields = json.loads(found[at])
        change(fields)
        return [*found[:at], json.dumps(fields).encode() + b"\n", *found[at + 1 :]]

    return changed


def _manifest(path: str, blob: str = "") -> Change:
    """Return a change of the manifest: another path, and maybe another content for it."""

    def changed(found: list[bytes]) -> list[bytes]:
        at = next(n for n, line in enumerate(found) if b'\\"files\\":' in line)
        files = json.loads(json.loads(found[at])["text"])["files"]
        (entry,) = files.values()
        text = json.dumps({"format": 1, "files": {path: [blob or entry[0], entry[1]]}})
        new, old = (lines.Stored(text=t) for t in (text, json.loads(found[at])["text"]))
        names = [lines.objects.name_of(one.data).encode() for one in (old, new)]
        packed = json.dumps({"line": "file", "text": text}).encode() + b"\n"
        moved = [packed if n == at else line.replace(*names) for n, line in enumerate(found)]
        return sealed(moved)

    return changed


def _used(usage: object) -> Change:
    """Return a change that adds an exchange with that usage."""
    line = {"line": "exchange", "job": "a1.1", "exchange": {"usage": usage}}
    return lambda found: [*found[:-1], json.dumps(line).encode() + b"\n", found[-1]]


ATTACKS: dict[str, tuple[Change, str]] = {
    "another version": (_line(lambda head: head.update(format=2), "record"), "format 2"),
    "a run named as a path": (_line(lambda head: head.update(run="../../x"), "record"), "../../x"),
    "a run that a terminal obeys": (
        _line(lambda head: head.update(run="\x1b[2J"), "record"), "a run named"),
    "no end": (lambda found: found[:-1], "not those that were recorded"),
    "half a line": (lambda found: [*found[:-1], found[-1][:-1]], "has no end"),
    "two heads": (lambda found: [found[0], *found], "a second beginning"),
    "events in another order": (
        lambda found: [*found[:3], found[4], found[3], *found[5:]], "not in order"),
    "an event left out": (lambda found: [*found[:5], *found[6:]], "not in order"),
    "a score that was not earned": (
        lambda found: [line.replace(b'"value":0.6832', b'"value":0.9832') for line in found],
        "not those that were recorded"),
    "a file outside": (_manifest("../../planted"), "../../planted"),
    "a file at the root": (_manifest("/planted"), "/planted"),
    "a file without content": (_manifest("score.py", "0" * 64), "no content"),
    "content from elsewhere": (_manifest("score.py", "../../../../etc/passwd"), "no content"),
    "an answer of a job elsewhere": (
        lambda found: [*found[:-1], b'{"line":"answer","job":"../x","text":""}\n', found[-1]],
        "job"),
    "half a token": (_used({"input": 1.5}), "Expected `int`"),
    "usage of another kind": (_used({"luck": 1}), "length 0 to 9"),
    "no usage at all": (_used([1]), "unsupported operand"),
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_record_that_was_tampered_with_is_refused(record: Path, attack: str) -> None:
    change, words = ATTACKS[attack]
    assert words in refused(rewritten(record, change))


def test_reading_writes_nowhere_but_into_its_store(record: Path, tmp_path: Path) -> None:
    place = rewritten(record, _manifest("../../planted"))
    with pytest.raises(InputError):
        lines.read(place, tmp_path / "deep" / "er" / "objects")
    found = [p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file()]
    assert all(p.parts[:3] == ("deep", "er", "objects") for p in found)


def test_a_line_that_never_ends_is_refused_before_it_is_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MOST_LINE", 4 << 20)
    bomb = tmp_path / "bomb"
    bomb.write_bytes(lzma.compress(bytes(64 << 20), preset=0))
    assert bomb.stat().st_size < 64 << 10
    assert "a line of more than" in refused(bomb)


def test_a_record_that_unpacks_without_end_is_refused(
    record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MOST_BYTES", 4 << 20)
    one = b'{"line":"file","text":"' + b"a" * 1000 + b'"}\n'
    bomb = rewritten(record, lambda found: [found[0], one * 20_000])
    assert "more than 4194304 bytes" in refused(bomb)


def test_packing_that_asks_for_too_much_memory_is_refused(tmp_path: Path) -> None:
    greedy = tmp_path / "greedy"
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 30}]
    head = lzma.LZMACompressor(lzma.FORMAT_XZ, filters=filters)
    greedy.write_bytes(head.compress(b"x") + head.flush())
    assert "no whole record" in refused(greedy)


def test_a_log_that_does_not_hold_together_is_refused_in_one_line(record: Path) -> None:
    def made_up(found: list[bytes]) -> list[bytes]:
        log = [line for line in found if b'"line":"event"' in line]
        settled = json.loads(next(line for line in log if b"AttemptSettled" in line))
        settled["entry"]["sequence"] = 2
        files = [line for line in found[:-1] if b'"line":"event"' not in line]
        return sealed([*files, log[0], json.dumps(settled).encode() + b"\n", found[-1]])

    with pytest.raises(InputError, match="event 2 does not fit"):
        replay(rewritten(record, made_up))


def test_a_file_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "nothing.record", "--store", "/nonexistent/store.db"]) != 0
    assert "nothing.record: there is no such file" in capsys.readouterr().err


def test_the_command_says_it_in_one_line(
    record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = tmp_path / "short"
    short.write_bytes(record.read_bytes()[:200])
    assert main(["replay", str(short)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert "no whole record" in told.err
