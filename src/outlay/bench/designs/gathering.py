"""Asks an endpoint for what an archive lacks: concurrent, resumable, each request once."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from outlay.bench.designs.archive import ArchiveWriter, Exchange, Prices, canonical, exchange
from outlay.bench.designs.endpoint import Answer, Endpoint, UnansweredError, ask
from outlay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Known = dict[str, Exchange]
    Body = dict[str, Any]


class Chain(NamedTuple):
    """Requests that follow each other: each may depend on the replies before it.

    Attributes:
        names: Ids of the requests in the archive, in order.
        body: Returns the JSON body of a request by its place, given what is known.
    """

    names: tuple[str, ...]
    body: Callable[[int, Known], Body]

    def next(self, known: Known) -> tuple[str, Body] | None:
        """Return the first request that is not known, `None` if the chain is complete."""
        for place, name in enumerate(self.names):
            if name not in known:
                return name, self.body(place, known)
        return None


class Progress(NamedTuple):
    """What a collection did.

    Attributes:
        wanted: Requests of the whole plan, drafts included.
        answered: Those in the archive now.
        unanswered: Why others are missing; running the command again asks them again.
    """

    wanted: int
    answered: int
    unanswered: tuple[str, ...]


def gather(
    path: Path,
    chains: Sequence[Chain],
    endpoint: Endpoint,
    *,
    workers: int = 8,
    prices: Prices | None = None,
    send: Callable[[Endpoint, Body], Answer] = ask,
) -> Progress:
    """Ask for what an archive lacks, and append each reply as it comes.

    Worker threads only talk to the endpoint; this thread alone writes. After a crash at any point
    the archive holds whole exchanges, and the same call asks for the rest. The requests in flight
    at a crash were sent and may be sent again; none is recorded twice.

    Args:
        path: The archive.
        chains: What is wanted; no name stands in two of them.
        endpoint: Where to ask.
        workers: Requests at once, at least 1.
        prices: For the money in the charges.
        send: How one request is sent.

    Raises:
        InputError: The endpoint refuses a request; the archive is damaged, or holds another
            request under an id that is wanted.
        StoreError: Another process is collecting into this archive.
    """
    with ArchiveWriter(path) as archive, ThreadPoolExecutor(max_workers=workers) as pool:
        for chain in chains:
            _check(chain, archive.known)
        collection = _Collection(archive, list(reversed(chains)), prices)
        while collection.waiting or collection.flying:
            collection.launch(workers, lambda body: pool.submit(send, endpoint, body))
            collection.settle()
        if collection.stopped is not None:
            raise collection.stopped
        names = [name for chain in chains for name in chain.names]
        answered = sum(name in archive.known for name in names)
    return Progress(len(names), answered, tuple(collection.unanswered))


@dataclass(slots=True)
class _Collection:
    """What waits, what is in flight, and what went wrong.

    After a refusal or a first Ctrl-C nothing new is sent, and the replies in flight, which may
    have been paid for, are still archived; a second Ctrl-C ends at once.
    """

    archive: ArchiveWriter
    waiting: list[Chain]
    prices: Prices | None
    flying: dict[Future[Answer], tuple[Chain, str, Body]] = field(default_factory=dict)
    unanswered: list[str] = field(default_factory=list)
    stopped: BaseException | None = None

    def launch(self, workers: int, submit: Callable[[Body], Future[Answer]]) -> None:
        """Send what waits, until as many requests are in flight as there are workers."""
        while self.waiting and len(self.flying) < workers:
            chain = self.waiting.pop()
            wanted = chain.next(self.archive.known)
            if wanted is not None:
                self.flying[submit(wanted[1])] = (chain, *wanted)

    def settle(self) -> None:
        """Wait for an answer and archive it; its chain goes on."""
        try:
            done, _ = wait(self.flying, return_when=FIRST_COMPLETED)
        except KeyboardInterrupt as error:
            if self.stopped is not None:
                raise
            self._stop(error)
            return
        for future in done:
            chain, name, body = self.flying.pop(future)
            try:
                self.archive.add(_record(name, body, future.result(), self.prices))
            except UnansweredError as error:
                self.unanswered.append(f"{name}: {error}")
            except InputError as error:
                self._stop(error)
            else:
                if self.stopped is None:
                    self.waiting.append(chain)

    def _stop(self, reason: BaseException) -> None:
        self.stopped = reason
        self.waiting.clear()


def _record(name: str, body: Body, answer: Answer, prices: Prices | None) -> Exchange:
    return exchange(
        name,
        body,
        answer.body,
        retries=answer.retries,
        seconds=answer.seconds,
        prices=prices,
    )


def _check(chain: Chain, known: Known) -> None:
    """Raise `InputError` if an archived request is not the one that would be sent now."""
    for place, name in enumerate(chain.names):
        if name not in known:
            return
        if canonical(known[name].request) != canonical(chain.body(place, known)):
            raise InputError(
                f"{name}: the archive holds another request under this id; collect into another "
                "folder, or use the model, parameters and version of before"
            )
