"""What measurements cost, by a function of the user's."""

from __future__ import annotations

from math import inf, nan
from typing import TYPE_CHECKING, SupportsFloat

from outlay.errors import InputError, bad_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from outlay.surfaces.factors import Config, Factors

ROUNDING = 1e-12
"""By how much a sum of prices may pass what is left, US dollars."""


class Prices:
    """US dollars of one measurement, by cell; the function is asked once for each.

    Args:
        factors: What a configuration is made of.
        cost: US dollars of one measurement of a configuration; `None` if nothing costs anything.

    Raises:
        InputError: It is no function.
    """

    def __init__(self, factors: Factors, cost: Callable[[Config], float] | None) -> None:
        if cost is not None and not callable(cost):
            raise bad_value("ablate", "cost", cost, "a function from a configuration to dollars")
        self._factors, self._cost = factors, cost
        self._known: dict[int, float] = {}

    @property
    def given(self) -> bool:
        """Whether anything costs something."""
        return self._cost is not None

    def __call__(self, cell: int) -> float:
        """Return the price; raises `InputError` where the function gives none."""
        if self._cost is None:
            return 0.0
        if cell not in self._known:
            self._known[cell] = _checked(self._cost, self._factors.config(cell))
        return self._known[cell]

    def within(self, cells: Iterable[int], purse: float) -> list[int]:
        """Return the cells, in order, that the money pays for together; others are left out."""
        chosen = []
        for cell in cells:
            if self(cell) <= purse + ROUNDING:
                chosen.append(cell)
                purse -= self(cell)
        return chosen


def _checked(cost: Callable[[Config], float], config: Config) -> float:
    try:
        price: object = cost(dict(config))
    except Exception as error:  # whatever the user's function raises, it gave no price
        raised = f"{type(error).__name__}: {error}"
        raise InputError(
            f"ablate: cost: raised {raised} for {config}, allowed: US dollars, at least 0"
        ) from error
    try:
        found = float(price) if isinstance(price, SupportsFloat) else nan
    except OverflowError:
        found = inf
    if not 0 <= found < inf:
        raise bad_value("ablate", f"cost of {config}", price, "US dollars, at least 0")
    return found
