"""What tokens count towards a limit, and what they cost. Standard library only."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from outlay.agents.clients.contract import Usage

CACHED_TOKEN_RATE = 0.1
"""What a cached input token counts towards the token limit, in tokens."""


class Prices(NamedTuple):
    """US dollars for a million tokens: input that no cache knew, read from it, written to it."""

    input: float
    cached: float
    cache_write: float
    output: float


def weighed(uncached: float, cached: float, output: float) -> float:
    """Return tokens as a limit counts them, cached ones at `CACHED_TOKEN_RATE`."""
    return uncached + output + CACHED_TOKEN_RATE * cached


def is_spent(usage: Usage, tokens: float | None, usd: float | None) -> bool:
    """Return whether usage has reached a limit in tokens or dollars, each `None` for none."""
    counted = weighed(usage.input - usage.cached, usage.cached, usage.output)
    out_of_tokens = tokens is not None and counted >= tokens
    return out_of_tokens or (usd is not None and (usage.usd or 0.0) >= usd)


def cost(usage: Usage, prices: Prices) -> float:
    """Return US dollars."""
    plain = usage.input - usage.cached - usage.cache_write
    return (
        plain * prices.input
        + usage.cached * prices.cached
        + usage.cache_write * prices.cache_write
        + usage.output * prices.output
    ) / 1e6
