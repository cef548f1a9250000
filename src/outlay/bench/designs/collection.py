"""Collects replies: concurrent, resumable, every request answered once."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from outlay.bench.designs.archive import (
    ArchiveWriter,
    Exchange,
    Prices,
    answer_text,
    canonical,
    exchange,
)
from outlay.bench.designs.endpoint import Answer, Endpoint, UnansweredError, ask
from outlay.designs.interfaces import INTERFACES, Interface, prompt, revision_prompt
from outlay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from outlay.designs.states import ResearchState

MOST_TOKENS = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A model with its parameters.

    Attributes:
        name: Short name, the archive's file name.
        family: Settings of one model family are averaged before they are tested.
        model: As the endpoint calls it.
        parameters: Added to each request, such as `{"reasoning_effort": "low"}`.
    """

    name: str
    family: str
    model: str
    parameters: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key, text in (("name", self.name), ("family", self.family)):
            if not text or not all(c.isalnum() or c in "-_." for c in text):
                raise InputError(f"{key}: found {text!r}, allowed: letters, digits, - _ .")


class Item(NamedTuple):
    """One reply that is wanted.

    Attributes:
        interface: What is asked for.
        state: Number of the state.
        repetition: Number of the repetition.
    """

    interface: Interface
    state: int
    repetition: int


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


def items(interfaces: Sequence[Interface], states: int, repetitions: int) -> tuple[Item, ...]:
    """Return the items of a plan, repetition by repetition."""
    unknown = [name for name in interfaces if name not in INTERFACES]
    if unknown or not interfaces:
        raise InputError(f"interfaces: found {unknown}, allowed: {', '.join(INTERFACES)}")
    return tuple(
        Item(interface, state, repetition)
        for repetition in range(repetitions)
        for interface in interfaces
        for state in range(states)
    )


def turns(interface: Interface) -> int:
    """Return how many requests an item takes: a draft and a revision for `self_refine`."""
    return 2 if interface == "self_refine" else 1


def identity(setting: Setting, item: Item, turn: int) -> str:
    """Return the id of a request in the archive."""
    where = f"s{item.state:02d}/r{item.repetition}/t{turn}"
    return f"{setting.name}/{item.interface}/{where}"


def next_request(
    setting: Setting,
    item: Item,
    states: Sequence[ResearchState],
    known: dict[str, Exchange],
) -> tuple[str, dict[str, Any]] | None:
    """Return the id and body of an item's next request, `None` if it is complete."""
    state = states[item.state]
    first = identity(setting, item, 0)
    if first not in known:
        return first, _body(setting, prompt(item.interface, state))
    second = identity(setting, item, 1)
    if turns(item.interface) == 2 and second not in known:
        draft = answer_text(known[first].reply)
        return second, _body(setting, revision_prompt(state, draft))
    return None


def _body(setting: Setting, text: str) -> dict[str, Any]:
    return {
        "model": setting.model,
        "messages": [{"role": "user", "content": text}],
        "max_tokens": MOST_TOKENS,
        **setting.parameters,
    }


def collect(
    path: Path,
    setting: Setting,
    plan: Sequence[Item],
    states: Sequence[ResearchState],
    endpoint: Endpoint,
    *,
    workers: int = 8,
    prices: Prices | None = None,
    send: Callable[[Endpoint, dict[str, Any]], Answer] = ask,
) -> Progress:
    """Ask for what an archive lacks, and append each reply as it comes.

    Worker threads only talk to the endpoint; this thread alone writes. After a crash at any point
    the archive holds whole exchanges, and the same call asks for the rest. The requests in flight
    at a crash were sent and may be sent again; none is recorded twice.

    Args:
        path: The archive.
        setting: The model.
        plan: Items wanted.
        states: States, by their number.
        endpoint: Where to ask.
        workers: Requests at once, at least 1.
        prices: For the money in the charges.
        send: How one request is sent.

    Raises:
        InputError: The endpoint refuses a request; the archive is damaged, or holds another
            request under an id of this plan.
        StoreError: Another process is collecting into this archive.
    """
    unanswered: list[str] = []
    with ArchiveWriter(path) as archive, ThreadPoolExecutor(max_workers=workers) as pool:
        check_known(setting, plan, states, archive.known)
        waiting = [item for item in plan if next_request(setting, item, states, archive.known)]
        waiting.reverse()
        flying: dict[Future[Answer], tuple[Item, str, dict[str, Any]]] = {}
        try:
            while waiting or flying:
                while waiting and len(flying) < workers:
                    item = waiting.pop()
                    wanted = next_request(setting, item, states, archive.known)
                    if wanted is not None:
                        flying[pool.submit(send, endpoint, wanted[1])] = (item, *wanted)
                done, _ = wait(flying, return_when=FIRST_COMPLETED)
                for future in done:
                    item, name, request = flying.pop(future)
                    try:
                        answer = future.result()
                    except UnansweredError as error:
                        unanswered.append(f"{name}: {error}")
                        continue
                    archive.add(_record(name, request, answer, prices))
                    waiting.append(item)
        finally:
            for future in flying:
                future.cancel()
        complete = sum(
            identity(setting, item, turn) in archive.known
            for item in plan
            for turn in range(turns(item.interface))
        )
    return Progress(sum(turns(item.interface) for item in plan), complete, tuple(unanswered))


def _record(name: str, request: dict[str, Any], answer: Answer, prices: Prices | None) -> Exchange:
    return exchange(
        name,
        request,
        answer.body,
        retries=answer.retries,
        seconds=answer.seconds,
        prices=prices,
    )


def check_known(
    setting: Setting,
    plan: Sequence[Item],
    states: Sequence[ResearchState],
    known: dict[str, Exchange],
) -> None:
    """Raise `InputError` if an archived request is not the one that the plan would send."""
    for item in plan:
        before: dict[str, Exchange] = {}
        for turn in range(turns(item.interface)):
            wanted = next_request(setting, item, states, before)
            name = identity(setting, item, turn)
            if wanted is None or name not in known:
                break
            if canonical(known[name].request) != canonical(wanted[1]):
                raise InputError(
                    f"{name}: the archive holds another request under this id; collect into "
                    "another folder, or use the model, parameters and version of before"
                )
            before[name] = known[name]
