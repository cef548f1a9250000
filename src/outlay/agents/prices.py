"""What models cost. A task's own `[prices.MODEL]` table comes before this one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlay.task import Price
from outlay.tokens import Prices

if TYPE_CHECKING:
    from outlay.task import Task

LISTED = {
    "gpt-6.2-sol": Price(input=2.0, cached=0.1, cache_write=2.5, output=10.0),
    "gpt-6.1-sol": Price(input=2.0, cached=0.1, cache_write=2.5, output=10.0),
    "gpt-6-sol": Price(input=2.0, cached=0.2, cache_write=2.5, output=10.0),
    "gpt-5-mini": Price(input=0.25, cached=0.025, output=2.0),
    "gpt-5-nano": Price(input=0.05, cached=0.005, output=0.4),
    "claude-opus-5-5": Price(input=4.0, cached=0.2, cache_write=5.0, output=20.0),
    "claude-opus-5": Price(input=5.0, cached=0.5, cache_write=6.25, output=25.0),
    "claude-opus-4-5": Price(input=5.0, cached=0.5, cache_write=6.25, output=25.0),
    "claude-sonnet-5-5": Price(input=2.0, cached=0.1, cache_write=2.5, output=10.0),
    "claude-sonnet-5": Price(input=2.0, cached=0.2, cache_write=2.5, output=10.0),
    "claude-sonnet-4-5": Price(input=3.0, cached=0.3, cache_write=3.75, output=15.0),
    "claude-haiku-4-5": Price(input=1.0, cached=0.1, cache_write=1.25, output=5.0),
}
"""US dollars for a million tokens at the provider's standard rate; sources in docs/agents.md."""


def price_of(task: Task, model: str) -> Prices | None:
    """Return what the model costs; `None` for one without a price."""
    price = task.prices.get(model) or LISTED.get(model)
    if price is None:
        return None
    return Prices(
        input=price.input,
        cached=price.input if price.cached is None else price.cached,
        cache_write=price.input if price.cache_write is None else price.cache_write,
        output=price.output,
    )
