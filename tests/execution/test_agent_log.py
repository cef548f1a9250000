"""What a client prints, read line by line until its log is full and in bulk after that."""

from __future__ import annotations

import io
import json

import pytest

from outlay.agents.clients.command import CommandReader
from outlay.execution.agent_log import Lines

PIECE = 1 << 16
FULL = 5 << 20


class Client:
    """The reader of a command line, which counts what it is given."""

    def __init__(self) -> None:
        self.reader = CommandReader()
        self.reads = 0
        self.log = io.BytesIO()
        self.lines = Lines(self.read, self.log, lambda text: text.replace("secret", "***"))

    def read(self, text: str) -> list:
        self.reads += 1
        return self.reader.line(text)

    def feed(self, data: bytes, piece: int = PIECE) -> None:
        for start in range(0, len(data), piece):
            self.lines.feed(data[start : start + piece])

    def fill(self) -> None:
        self.feed(b"y\n" * 100_000)
        assert self.log.tell() > FULL - 100


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.mark.parametrize("piece", [1, 3, PIECE])
def test_every_line_is_logged_without_secrets(client: Client, piece: int) -> None:
    client.feed(b'one\n\n{"type": "usage", "output": 7}\nthe secret', piece)
    client.lines.end()
    told = [json.loads(line) for line in client.log.getvalue().splitlines()]
    assert [(entry["kind"], entry["text"]) for entry in told] == [
        ("message", "one"),
        ("usage", "0 in, 7 out"),
        ("message", "the ***"),
    ]


def test_short_lines_after_a_full_log_are_read_in_bulk(client: Client) -> None:
    client.fill()
    before, kept = client.reads, client.lines.kept
    client.feed(b"y\n" * 1_000_000)
    assert client.reads - before <= 2 * (2_000_000 // PIECE + 1)
    assert client.lines.kept == kept <= 200_000
    assert client.log.tell() <= FULL


@pytest.mark.parametrize("piece", [7, 1000, PIECE])
def test_usage_after_a_full_log_is_counted(client: Client, piece: int) -> None:
    client.fill()
    usage = b'  {"type": "usage", "input": 5, "output": 7}\n'
    client.feed(b"{\n" + usage + usage + b'x {"type": "usage", "output": 1}\n' * 20 + usage, piece)
    client.lines.end()
    used = client.reader.ending(0, "").usage
    assert (used.input, used.output) == (15, 21)


def test_the_answer_is_the_end_of_a_long_text(client: Client) -> None:
    client.fill()
    client.feed(b"a\nb\n" + b'{"type": "tool", "text": "ls"}\n' + b"c\nd\n")
    client.lines.end()
    assert client.reader.ending(0, "").answer.endswith("y\na\nb\nc\nd")


def test_what_counts_as_printed_ends_with_the_log(client: Client) -> None:
    client.feed((b"x" * 999_999 + b"\n") * 40)
    assert client.lines.kept == FULL
