"""One client's connection: its requests are let through or refused, counted and recorded."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from outlay.agents.clients.contract import Usage
from outlay.execution.metering.answer import Answer, ask, head, ours, unpacked, whole
from outlay.execution.metering.counting import Counter, is_only_usage
from outlay.execution.metering.patience import asked_for, pause
from outlay.execution.metering.record import Draft
from outlay.execution.metering.request import MOST_BODY, Refused, Request, request, route
from outlay.execution.metering.wire import (
    Cut,
    Frame,
    Gone,
    Head,
    Malformed,
    Silent,
    Wire,
    chunk,
    frame,
)

if TYPE_CHECKING:
    from outlay.execution.metering.account import Account
    from outlay.execution.metering.patience import Pace, Spell
    from outlay.execution.metering.provider import Provider, Reply
    from outlay.execution.metering.record import Recorder

_IDLE, _HEAD, _BODY = 600.0, 20.0, 120.0
"""Seconds that a client has until its next request, for its head, and for its body."""
_PARTING = 1.0


class Service(NamedTuple):
    """What all connections of an attempt share; `forms` are those of the provider's key."""

    provider: Provider
    account: Account
    recorder: Recorder
    spell: Spell
    pace: Pace
    secret: str
    forms: tuple[str, ...]


def serve(client: Wire, service: Service) -> None:
    """Serve a connection to its end, whatever comes over it."""
    try:
        while (found := client.head(_IDLE, _HEAD)) is not None:
            if not _Serving(client, service, found).run():
                break
    except Malformed as fault:
        _refuse(client, fault)
    except (Cut, Silent, Gone, OSError):
        pass  # there is nobody left to answer
    finally:
        client.close()


def _refuse(client: Wire, fault: Malformed) -> None:
    answer = ours(fault.status, "invalid_request_error", str(fault))
    with suppress(OSError, Silent):
        client.send(whole(answer, (), keep=False) + answer.body)
        client.let_finish(_PARTING)


class _Serving:
    """One request and its answer."""

    def __init__(self, client: Wire, service: Service, found: Head) -> None:
        self._client = client
        self._service = service
        self._head = found
        self._draft = Draft(found.first, found.headers)
        self._counter: Counter | None = None

    def run(self) -> bool:
        """Answer, and return whether the connection may serve another request."""
        try:
            return self._pass_on(self._read())
        except Refused as refusal:
            self._draft.asked = b""  # an agent that asks for ever must not fill the disk
            self._answer(ours(refusal.status, refusal.kind, refusal.text), keep=False)
            return False
        except Gone:
            self._draft.ending = "gone"
            return False
        finally:
            self._service.recorder.add(self._draft.exchange())

    def _read(self) -> Request:
        how, expects = frame(self._head, default=0), bool(self._head.get("expect"))
        try:
            where = route(self._head, self._service.secret)
        except Refused:
            if not expects:  # who still sends does not listen
                self._body(how)
            raise
        if expects:
            self._client.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        found = request(where, self._head, self._body(how))
        self._draft.asked = found.body
        return found

    def _body(self, how: Frame) -> bytes:
        if isinstance(how, int) and how > MOST_BODY:
            raise Malformed(413, f"more than {MOST_BODY} bytes")
        body = bytearray()
        for piece in self._client.body(how, _BODY, total=_BODY):
            body += piece
            if len(body) > MOST_BODY:
                raise Malformed(413, f"more than {MOST_BODY} bytes")
        return bytes(body)

    def _pass_on(self, asked: Request) -> bool:
        if asked.route.protocol:
            self._counter = Counter(asked.route.protocol, len(asked.body))
        with self._service.account.working():
            answer = self._insist(asked)
            self._service.account.ended(answer.fault, begun=answer.stream is not None)
            if answer.stream is not None:
                return self._stream(answer, answer.stream, asked)
            self._count_whole(answer)
            self._draft.ending = "cut" if answer.lost else "whole"
            self._answer(answer, keep=asked.route.keep)
            return asked.route.keep

    def _insist(self, asked: Request) -> Answer:
        """Send the request until its answer is worth passing on, or patience ends."""
        service, until, number = self._service, 0.0, 0
        while True:
            if asked.route.protocol and service.account.is_spent():
                raise Refused(400, "budget_exhausted", "the budget of this attempt is spent")
            answer = self._try(asked)
            self._draft.tries.append(answer.tried)
            if not answer.temporary:
                if not answer.lost:
                    service.spell.answered()
                return answer
            now = time.monotonic()
            until = until or service.spell.failed(now)
            seconds = pause(service.pace, number, asked_for(dict(answer.headers), time.time()))
            if now + seconds > until:
                return answer
            number += 1
            with service.account.backing_off():
                if self._client.hangs_up(seconds):
                    raise Gone

    def _try(self, asked: Request) -> Answer:
        try:
            return ask(self._service.provider, asked, self._client, self._service.pace.idle)
        except Gone:
            self._count_so_far()  # the provider may have read it all
            raise

    def _count_whole(self, answer: Answer) -> None:
        """Count an answer that is no stream; of one that broke off, what the estimate says."""
        if self._counter is None:
            return
        if answer.status < 300:
            self._counter.whole(answer.body)
            self._count_so_far()
        elif answer.lost and answer.tried:
            self._count_so_far()
        elif answer.lost:
            self._count(Usage(source="proxy", complete=False))

    def _stream(self, answer: Answer, reply: Reply, asked: Request) -> bool:
        """Pass a stream on as it comes."""
        chunks, keep = asked.route.chunks, asked.route.keep and asked.route.chunks
        try:
            self._draft.answered(answer.status, answer.headers)
            self._client.send(head(answer, self._service.forms, chunks=chunks, keep=keep))
            self._relay(reply, asked)
            self._draft.ending = "whole"
        except (Cut, Silent, Malformed):
            self._draft.ending = "cut"
        except (Gone, OSError):
            self._draft.ending = "gone"
        finally:
            self._leave(reply)
        if self._draft.ending != "whole":
            return False
        if chunks:
            self._client.send(b"0\r\n\r\n")
        return keep

    def _relay(self, reply: Reply, asked: Request) -> None:
        """Pass on pieces; the usage counts before the client sees the last event."""
        counter = self._counter
        for piece in unpacked(reply, reply.pieces(self._service.pace.idle)):
            out = piece
            if counter is not None:
                events = counter.feed(piece)
                if counter.over:
                    self._count_so_far()
                if asked.asks_usage:
                    out = b"".join(e.raw for e in events if not is_only_usage(e.data))
            self._say(out, chunks=asked.route.chunks)
        if counter is not None and asked.asks_usage:
            self._say(counter.rest(), chunks=asked.route.chunks)

    def _leave(self, reply: Reply) -> None:
        """Count what was not counted yet, and leave the provider's connection."""
        self._count_so_far()
        counter = self._counter
        broken = counter is not None and (counter.failed or not (counter.over or counter.done))
        if broken or self._draft.ending == "cut":
            self._service.account.ended("cut")
        elif self._draft.ending == "whole":
            self._service.account.ended("")
        if self._draft.ending == "whole":
            self._service.provider.give_back(reply)
        else:
            reply.wire.close()

    def _say(self, data: bytes, *, chunks: bool) -> None:
        if data:
            self._client.send(chunk(data) if chunks else data)
            self._draft.said(data)

    def _answer(self, answer: Answer, *, keep: bool) -> None:
        """Send an answer that is whole, without the key even if the provider shows it."""
        body = answer.body
        for form in self._service.forms:
            body = body.replace(form.encode(), b"[redacted]")
        answer = answer._replace(body=body)
        self._draft.answered(answer.status, answer.headers)
        self._draft.said(body)
        bare = self._head.first.startswith("HEAD ")
        try:
            self._client.send(whole(answer, self._service.forms, keep=keep) + body * (not bare))
        except OSError:
            raise Gone from None

    def _count_so_far(self) -> None:
        if self._counter is not None and self._draft.usage is None:
            self._count(self._counter.usage())

    def _count(self, usage: Usage) -> None:
        self._draft.usage = usage
        self._service.account.add(usage)
