from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlay.agents.clients.contract import Usage
from outlay.execution.metering.counting import Counter, is_only_usage
from outlay.execution.metering.events import MOST_EVENT, Events
from tests.execution.metering.conftest import asking
from tests.model_protocols import WRITERS, Pieces, Turn, fit, read

if TYPE_CHECKING:
    from tests.model_protocols import Protocol

PROTOCOLS: tuple[Protocol, ...] = ("responses", "messages", "chat")


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    cached, write, plain = (draw(st.integers(0, 10**6)) for _ in range(3))
    output = draw(st.integers(0, 10**6))
    return Usage(
        input=cached + write + plain,
        cached=cached,
        cache_write=write,
        output=output,
        reasoning=draw(st.integers(0, output)),
        requests=1,
        source="proxy",
    )


def pieces(protocol: Protocol, turn: Turn) -> Pieces:
    options = {"stream_options": {"include_usage": True}}
    asked = read(protocol, "", 0, json.loads(asking(protocol, stream=True, **options)))
    return WRITERS[protocol](asked, fit(turn, asked), 1, 5)


def stream_of(protocol: Protocol, turn: Turn) -> bytes:
    return b"".join(event.encoded() for event in pieces(protocol, turn).events)


def counted(protocol: Protocol, stream: bytes, cuts: list[int] = []) -> Counter:  # noqa: B006
    counter = Counter(protocol, 400)
    ends = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    for begin, end in pairwise(ends):
        counter.feed(stream[begin:end])
    return counter


@pytest.mark.parametrize("protocol", PROTOCOLS)
@settings(deadline=None)
@given(
    usage=usages(),
    text=st.text(max_size=40),
    shell=st.booleans(),
    ends=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    cuts=st.lists(st.integers(0, 3000), max_size=60),
)
def test_exact_however_the_bytes_are_cut(
    protocol: Protocol, usage: Usage, text: str, shell: bool, ends: bytes, cuts: list[int]
) -> None:
    turn = Turn(text=text, shell="echo 1" if shell else "", usage=usage)
    stream = stream_of(protocol, turn).replace(b"\n", ends)
    if ends == b"\r":
        stream += b":"  # a last CR could be half a line end
    counter = counted(protocol, stream, cuts)
    assert counter.usage() == usage
    assert counter.done
    assert counter.over


@pytest.mark.parametrize("protocol", PROTOCOLS)
@settings(deadline=None)
@given(usage=usages(), text=st.text(max_size=40))
def test_exact_in_one_body(protocol: Protocol, usage: Usage, text: str) -> None:
    whole = json.dumps(pieces(protocol, Turn(text=text, usage=usage)).whole).encode()
    counter = Counter(protocol, 400)
    counter.whole(whole)
    assert counter.usage() == usage


@pytest.mark.parametrize("protocol", PROTOCOLS)
@settings(deadline=None)
@given(at=st.integers(0, 3000), usage=usages())
def test_a_cut_stream_is_exact_or_marked(protocol: Protocol, at: int, usage: Usage) -> None:
    stream = stream_of(protocol, Turn(text="The answer is forty-two.", usage=usage))
    found = counted(protocol, stream[:at]).usage()
    assert found.requests == 1
    assert found == usage if found.complete else found.input > 0
    assert found.complete or b"forty" not in stream[:at] or found.output > 0


def test_an_estimate_is_four_bytes_a_token() -> None:
    stream = stream_of("responses", Turn(text="x" * 100))
    found = counted("responses", stream[: stream.index(b"event: response.output_text.done")])
    assert found.usage() == Usage(input=100, output=25, requests=1, source="proxy", complete=False)


def test_what_was_told_before_a_cut_is_kept() -> None:
    used = Usage(input=1000, cached=600, cache_write=100, output=50)
    stream = stream_of("messages", Turn(text="x" * 40, usage=used))
    found = counted("messages", stream[: stream.index(b"event: content_block_stop")]).usage()
    assert (found.input, found.cached, found.cache_write) == (1000, 600, 100)
    assert (found.output, found.complete) == (10, False)


@settings(deadline=None)
@given(st.binary(max_size=400))
def test_nonsense_is_counted_as_bytes_and_never_exact(data: bytes) -> None:
    for protocol in PROTOCOLS:
        found = counted(protocol, data).usage()
        assert not found.complete
        assert found.input == 100


def test_an_error_in_place_of_an_answer_costs_nothing_known() -> None:
    error = b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error"}}\n\n'
    counter = counted("messages", error)
    assert counter.failed
    assert counter.usage() == Usage(requests=1, source="proxy", complete=False)


@pytest.mark.parametrize("odd", [-1, 1.5, "7", None, True, [], {}, 10**15])
def test_odd_numbers_count_as_none(odd: Any) -> None:
    body = {"usage": {"input_tokens": odd, "output_tokens": 3, "input_tokens_details": odd}}
    for protocol in ("responses", "messages"):
        counter = Counter(protocol, 0)  # type: ignore[arg-type]
        counter.whole(json.dumps(body).encode())
        assert counter.usage() == Usage(output=3, requests=1, source="proxy")


def test_reasoning_that_only_the_total_holds_is_output() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 150}
    usage["completion_tokens_details"] = {"reasoning_tokens": 40}  # type: ignore[assignment]
    counter = Counter("chat", 0)
    counter.whole(json.dumps({"usage": usage}).encode())
    assert counter.usage()[:5] == (100, 0, 0, 50, 40)


def test_running_totals_in_every_chunk_are_not_added_up() -> None:
    counter = Counter("chat", 0)
    for n in range(1, 6):
        usage = {"prompt_tokens": 100, "completion_tokens": n}
        choice = {"delta": {"content": "x"}, "finish_reason": "stop" if n == 5 else None}
        chunk = {"choices": [choice], "usage": usage}
        counter.feed(f"data: {json.dumps(chunk)}\n\n".encode())
    counter.feed(b"data: [DONE]\n\n")
    assert counter.usage()[:4] == (100, 0, 0, 5)
    assert counter.usage().complete


def test_usage_chunk_is_told_from_others() -> None:
    assert is_only_usage(b'{"choices": [], "usage": {"prompt_tokens": 1}}')
    assert not is_only_usage(b'{"choices": [], "usage": null}')
    assert not is_only_usage(b'{"choices": [{"delta": {}}], "usage": {"prompt_tokens": 1}}')
    assert not is_only_usage(b"[DONE]")


@settings(deadline=None)
@given(
    lines=st.lists(st.binary(max_size=20), max_size=20),
    cuts=st.lists(st.integers(0, 400), max_size=30),
)
def test_events_lose_no_byte(lines: list[bytes], cuts: list[int]) -> None:
    stream = b"\n".join(lines)
    events, out = Events(), b""
    ends = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    for begin, end in pairwise(ends):
        out += b"".join(event.raw for event in events.feed(stream[begin:end]))
    assert out + events.rest() == stream


def test_event_of_several_lines() -> None:
    (event,) = Events().feed(b": talk\nevent: x\ndata: one\ndata:two\ndata\nid: 7\n\n")
    assert event.data == b"one\ntwo\n"


def test_an_event_without_end_is_let_go() -> None:
    events = Events()
    piece = b"x" * (1 << 20)
    given_out = [event for _ in range(40) for event in events.feed(piece)]
    assert sum(len(event.raw) for event in given_out) + len(events.rest()) == 40 << 20
    assert len(events.rest()) <= MOST_EVENT
