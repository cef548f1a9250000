"""Asks an endpoint for what an archive lacks: concurrent, resumable, each request once."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
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
        chains: What is wanted.
        endpoint: Where to ask.
        workers: Requests at once, at least 1.
        prices: For the money in the charges.
        send: How one request is sent.

    Raises:
        InputError: The endpoint refuses a request; the archive is damaged, or holds another
            request under an id that is wanted.
        StoreError: Another process is collecting into this archive.
    """
    unanswered: list[str] = []
    with ArchiveWriter(path) as archive, ThreadPoolExecutor(max_workers=workers) as pool:
        for chain in chains:
            _check(chain, archive.known)
        waiting = list(reversed(chains))
        flying: dict[Future[Answer], tuple[Chain, str, Body]] = {}
        try:
            while waiting or flying:
                while waiting and len(flying) < workers:
                    chain = waiting.pop()
                    wanted = chain.next(archive.known)
                    if wanted is not None:
                        flying[pool.submit(send, endpoint, wanted[1])] = (chain, *wanted)
                done, _ = wait(flying, return_when=FIRST_COMPLETED)
                for future in done:
                    chain, name, body = flying.pop(future)
                    try:
                        answer = future.result()
                    except UnansweredError as error:
                        unanswered.append(f"{name}: {error}")
                        continue
                    archive.add(_record(name, body, answer, prices))
                    waiting.append(chain)
        finally:
            for future in flying:
                future.cancel()
        names = [name for chain in chains for name in chain.names]
        answered = sum(name in archive.known for name in names)
    return Progress(len(names), answered, tuple(unanswered))


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
