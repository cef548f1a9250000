"""What coding agents and models used, by whom, and how surely that is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from outlay.agents import access
from outlay.agents.prices import price_of

if TYPE_CHECKING:
    from outlay.events import AttemptSettled, ReflectionSettled
    from outlay.state import State

Role = Literal["executor", "reflector"]
"""Who carries plans out, and who drafts and revises them."""

ROLES: tuple[Role, Role] = ("executor", "reflector")


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """What one client used in one role.

    Attributes:
        role: `executor` or `reflector`.
        client: Its name; `version` its own version, empty if unknown.
        model: Model that it was told to use; empty if the choice was its own.
        tries: Tries of attempts or reflections, those that were interrupted included.
        requests: Responses of the model; 0 where nobody tells.
        input: Input tokens, those of a cache included.
        cached: Input tokens that were read from a cache.
        cache_write: Input tokens that were written to a cache.
        output: Output tokens, reasoning included.
        reasoning: Output tokens that were reasoning.
        usd: US dollars; 0 for a model without a price.
        priced: Whether the money is known: the model has a price, or the client told some.
        sources: Who counted: `proxy`, `stream`, `session`, `told` or `estimate`.
        complete: Whether nothing is missing.
    """

    role: Role
    client: str
    version: str = ""
    model: str = ""
    tries: int = 1
    requests: int = 0
    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    usd: float = 0.0
    priced: bool = True
    sources: tuple[str, ...] = ()
    complete: bool = True

    def plus(self, other: Used) -> Used:
        """Return the sum, under this one's names."""
        return msgspec.structs.replace(
            self,
            **{name: getattr(self, name) + getattr(other, name) for name in _SUMMED},
            priced=self.priced and other.priced,
            sources=tuple(sorted({*self.sources, *other.sources})),
            complete=self.complete and other.complete,
        )

    @property
    def who(self) -> str:
        """Client, version and model in one."""
        return ", ".join(filter(None, (f"{self.client} {self.version}".strip(), self.model)))

    @property
    def known(self) -> str:
        """Who counted, and whether something is missing; in words."""
        words = self.sources or ("unknown",)
        missing = not self.complete and words != ("estimate",)
        return ", ".join((*words, "incomplete") if missing else words)


_SUMMED = (
    *("tries", "requests", "input", "cached", "cache_write", "output", "reasoning"),
    "usd",
)


def used_by(event: AttemptSettled | ReflectionSettled, role: Role, state: State) -> Used | None:
    """Return what an agent used in a try; `None` if none worked.

    Args:
        event: How the try ended.
        role: What the agent was there for.
        state: Of the run. It tells who worked where the process of the try died, so that the
            event does not; what is charged then is the last that was counted.
    """
    charge, told = event.charge, event.agent
    if told is None and not (charge.tokens or charge.usd):
        return None
    client, version, model = (
        (told.client, told.version, told.model) if told else _named(role, state)
    )
    return Used(
        role=role,
        client=client,
        version=version,
        model=model,
        priced=charge.usd > 0 or not charge.tokens or price_of(state.task, model) is not None,
        requests=told.requests if told else 0,
        input=charge.tokens_in + charge.tokens_cached,
        cached=charge.tokens_cached,
        cache_write=told.cache_write if told else 0,
        output=charge.tokens_out,
        reasoning=told.reasoning if told else 0,
        usd=charge.usd,
        sources=(told.source,) if told and told.source else (),
        complete=told is not None and told.complete,
    )


def _named(role: Role, state: State) -> tuple[str, str, str]:
    """Return client, version and model of a role as the task has them and as others told."""
    client = state.clients[role]
    find = access.executor if role == "executor" else access.reflector
    who = find(state.task, state.started.agent) if state.started is not None else None
    told = [
        used.version
        for used in state.agents.values()
        if (used.role, used.client) == (role, client)
    ]
    return client, next(filter(None, reversed(told)), ""), who.model if who is not None else ""
