"""The proposer that asks a language model, against a real server on this machine."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import contextmanager

import pytest

from outlay.bench.coordination.loop import Plan, search
from outlay.bench.coordination.model import LanguageModel, parse, prompt
from outlay.bench.coordination.objective import Published
from outlay.bench.coordination.proposers import Board, Champion, RuleBased
from outlay.bench.coordination.published import FULL, run_published
from outlay.bench.coordination.referees import FreshSeeds, Meter
from outlay.errors import InputError
from outlay.task import Coordination
from tests.bench.scripted_server import Script, completion, serving

AXES = ("x0", "x1", "x2", "x3")


def board():
    return Board(Champion(point=(1.5, 1.5, 1.5, 1.5), metric=-9.0, experiment=-1))


def answer_of(axis="x2", step=-0.5, rationale="towards 0"):
    return json.dumps({"axis": axis, "step": step, "rationale": rationale})


def asked(text, avoid=frozenset(), seconds=5.0, before=lambda number: None):
    """Return what the proposer makes of a server that always answers with `text`."""
    script = Script(lambda request: text, before)
    with serving(script) as url:
        proposer = LanguageModel(url, "tiny", key="secret", seconds=seconds)
        return proposer.propose(board(), AXES, 0, avoid), script


@contextmanager
def raw_server(talk):
    """Yield the address of a server that hands each connection to `talk`."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                try:
                    connection.recv(65536)
                    talk(connection)
                except OSError:
                    pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        listener.close()


def test_a_good_reply_is_the_proposal():
    proposal, script = asked(answer_of())
    assert (proposal.axis, proposal.direction) == ("x2", "-")
    assert proposal.rationale == "towards 0"
    assert proposal.fallback == ""
    path, authorization, body = script.requests[0]
    assert path.endswith("/chat/completions")
    assert authorization == "Bearer secret"
    assert json.loads(body)["model"] == "tiny"


def test_prose_and_fences_around_the_object_do_not_matter():
    proposal, _ = asked(f"Let me think.\n```json\n{answer_of('x1', 0.5)}\n```")
    assert (proposal.axis, proposal.direction, proposal.fallback) == ("x1", "+", "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no object here", "no JSON object"),
        ("{broken", "no JSON object"),
        ("{'axis': 'x0'}", "reply refused"),
        (answer_of("x9"), "axis 'x9' was not offered"),
        (answer_of(["x0"]), "was not offered"),
        (answer_of(None), "was not offered"),
        (answer_of("__class__"), "was not offered"),
        (answer_of(step="0.5"), "step is not a number"),
        (answer_of(step=True), "step is not a number"),
        (answer_of(step=0), "other than 0"),
        (answer_of(step=float("nan")), "other than 0"),
        (answer_of(step=float("inf")), "other than 0"),
        ("[" * 100_000, "no JSON object"),
        ('{"a":' * 100_000 + "}" * 100_000, "reply refused"),
        (b"\xff\xfe not text", "reply refused"),
        (b"{}", "not a chat completion"),
        (b"[]", "not an object"),
        (b'{"choices": [{"message": {"content": 5}}]}', "not a chat completion"),
        (b"x" * 2_000_000, "more than 1000000 bytes"),
    ],
)
def test_a_bad_reply_falls_back_with_its_reason(text, reason):
    proposal, _ = asked(text)
    rule = RuleBased().propose(board(), AXES, 0)
    assert (proposal.axis, proposal.direction) == (rule.axis, rule.direction)
    assert reason in proposal.fallback


def test_a_retired_direction_is_refused():
    proposal, _ = asked(answer_of("x2", -0.5), avoid=frozenset({("x2", "-")}))
    assert "given up" in proposal.fallback


@pytest.mark.parametrize("status", [302, 401, 404, 429, 500])
def test_a_refusal_falls_back(status):
    proposal, script = asked(answer_of(), before=lambda number: status)
    assert f"status {status}" in proposal.fallback
    assert len(script.requests) == 1


def test_nobody_listening_falls_back():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    proposal = LanguageModel(f"http://127.0.0.1:{port}/v1", "tiny").propose(board(), AXES, 0)
    assert "no reply" in proposal.fallback


def drip(connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    for _ in range(100):
        connection.sendall(b" ")
        time.sleep(0.02)


def drip_headers(connection):
    for letter in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"y" * 100:
        connection.sendall(bytes([letter]))
        time.sleep(0.02)


def silence(connection):
    connection.recv(1)


def hang_up(connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")


def garbage(connection):
    connection.sendall(b"\x00\x01\x02 this is not http\r\n\r\n")


@pytest.mark.parametrize("talk", [drip, drip_headers, silence, hang_up, garbage])
def test_a_slow_or_broken_server_cannot_hold_the_search(talk):
    with raw_server(talk) as url:
        began = time.monotonic()
        proposal = LanguageModel(url, "tiny", seconds=0.3).propose(board(), AXES, 0)
        assert time.monotonic() - began < 1.5
    assert proposal.fallback


def test_an_address_that_is_not_http_is_refused():
    with pytest.raises(InputError, match="allowed: http"):
        LanguageModel("file:///etc/passwd", "tiny")


def test_the_prompt_names_champion_log_and_what_is_given_up():
    trace, _ = run_published(FULL)
    text = prompt(trace.board, AXES[:2], frozenset({("x1", "+")}))
    assert "x0 = 0, x1 = 0" in text
    assert "x1 +0.5" in text
    assert text.count("dropped") + text.count("kept") == 8


def test_parse_keeps_long_rationales_short():
    reply = json.dumps(completion(answer_of(rationale="because " * 1000))).encode()
    assert len(parse(reply, AXES).rationale) == 500


def test_a_model_that_helps_reaches_the_optimum_through_the_same_loop():
    """The server reads the prompt and steps the first axis that is not yet at 0."""

    def answer(request):
        text = request["messages"][0]["content"]
        line = text.split("The champion is\n")[1].split(" with metric")[0]
        places = dict(part.split(" = ") for part in line.split(", "))
        away = [axis for axis, place in places.items() if float(place) != 0]
        return answer_of(away[0] if away else next(iter(places)), -0.5)

    settings = Coordination(teams=2, stagnation=10)
    objective = Published()
    referee = FreshSeeds(Meter(objective, keeps=True), settings, 1)
    with serving(Script(answer)) as url:
        proposer = LanguageModel(url, "tiny")
        trace = search(objective, proposer, referee, settings, Plan(experiments=30))
    assert objective.clean(trace.board.champion.point) == 0.0
    assert trace.first_at(0.0) == 12
    fallbacks = {o.proposal.fallback for o in trace.board.outcomes if o.proposal.fallback}
    assert all("given up" in reason for reason in fallbacks)
