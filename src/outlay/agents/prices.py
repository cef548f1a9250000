"""What models cost. A task's own `[prices.MODEL]` table comes before this one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlay.task import Price

if TYPE_CHECKING:
    from outlay.task import Task

LISTED = {
    "gpt-5": Price(input=1.25, cached=0.125, output=10.0),
    "gpt-5-mini": Price(input=0.25, cached=0.025, output=2.0),
    "gpt-5-nano": Price(input=0.05, cached=0.005, output=0.4),
    "claude-opus-4-5": Price(input=5.0, cached=0.5, output=25.0),
    "claude-sonnet-4-5": Price(input=3.0, cached=0.3, output=15.0),
    "claude-haiku-4-5": Price(input=1.0, cached=0.1, output=5.0),
}
"""List prices of the providers at the end of 2025, in US dollars for a million tokens."""


def price_of(task: Task, model: str) -> tuple[float, float, float] | None:
    """Return the price of input, cached input and output; `None` for a model without one."""
    price = task.prices.get(model) or LISTED.get(model)
    if price is None:
        return None
    return price.input, price.input if price.cached is None else price.cached, price.output
