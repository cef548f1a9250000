"""What is asked of a model: every interface in every state, a number of times."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from outlay.bench.designs.archive import answer_text
from outlay.bench.designs.gathering import Chain
from outlay.designs.interfaces import INTERFACES, Interface, prompt, revision_prompt
from outlay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlay.bench.designs.archive import Exchange
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


def items(interfaces: Sequence[Interface], states: int, repetitions: int) -> tuple[Item, ...]:
    """Return the items of a plan, repetition by repetition."""
    wrong = [name for name in interfaces if name not in INTERFACES or interfaces.count(name) > 1]
    if wrong or not interfaces:
        raise InputError(f"interfaces: found {wrong}, allowed: {', '.join(INTERFACES)}, each once")
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


def chain(setting: Setting, item: Item, states: Sequence[ResearchState]) -> Chain:
    """Return the requests of an item: one, or a draft and the revision that depends on it."""
    state = states[item.state]
    names = tuple(identity(setting, item, turn) for turn in range(turns(item.interface)))

    def body(turn: int, known: dict[str, Exchange]) -> dict[str, Any]:
        if turn == 0:
            return request_body(setting, prompt(item.interface, state))
        return request_body(setting, revision_prompt(state, answer_text(known[names[0]].reply)))

    return Chain(names, body)


def request_body(setting: Setting, text: str) -> dict[str, Any]:
    """Return the JSON body that asks a setting's model one question."""
    return {
        "model": setting.model,
        "messages": [{"role": "user", "content": text}],
        "max_tokens": MOST_TOKENS,
        **setting.parameters,
    }
