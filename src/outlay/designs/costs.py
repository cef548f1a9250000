"""What a design costs, in exact decimal arithmetic, so that a budget is never missed by 1e-15."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, lcm
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from outlay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


class Design(NamedTuple):
    """An executable experiment: which arms are run, and with how many seeds each.

    Attributes:
        arms: Indices of the arms, ascending. The baseline is always run and is not listed.
        seeds: Seeds for each condition.
    """

    arms: tuple[int, ...]
    seeds: int

    @property
    def mask(self) -> int:
        """The arms as a bitmask."""
        return sum(1 << arm for arm in self.arms)


def arms_of(mask: int) -> tuple[int, ...]:
    """Return the indices of the arms in a bitmask, ascending."""
    return tuple(j for j in range(mask.bit_length()) if mask >> j & 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearCost:
    """setup + the arms' costs + per_seed * seeds + per_run * (arms + 1) * seeds.

    Each number means the decimal that is written: 0.35 is 7/20. The paper's rule (Eq. 3) is the
    default.

    Attributes:
        setup: Paid once; covers the baseline.
        per_arm: Paid for each arm, or one number for each arm.
        per_seed: Paid for each seed, whatever the arms.
        per_run: Paid for each condition (baseline included) and seed.
    """

    setup: float = 1.0
    per_arm: float | tuple[float, ...] = 0.6
    per_seed: float = 0.35
    per_run: float = 0.0

    def __post_init__(self) -> None:
        arms = self.per_arm if isinstance(self.per_arm, tuple) else (self.per_arm,)
        for name, value in (
            ("setup", self.setup),
            ("per_seed", self.per_seed),
            ("per_run", self.per_run),
            *(("per_arm", value) for value in arms),
        ):
            if not 0 <= value < inf:
                raise InputError(f"cost: {name}: found {value}, allowed: a number, 0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCost:
    """Prices of single designs; a design without a price cannot be bought.

    Attributes:
        prices: Design to price.
    """

    prices: Mapping[Design, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for design, price in self.prices.items():
            if not 0 <= price < inf:
                raise InputError(f"cost: {design}: found {price}, allowed: a number, 0 or more")


Cost = LinearCost | TableCost


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One resource: how a design uses it, and how much there is.

    Attributes:
        unit: Name of the resource, such as `units`, `seconds`, `tokens` or `usd`.
        cost: How much a design uses.
        budget: How much may be used.
    """

    unit: str = "units"
    cost: Cost = field(default_factory=LinearCost)
    budget: float

    def __post_init__(self) -> None:
        if not 0 <= self.budget < inf:
            raise InputError(
                f"budget of {self.unit}: found {self.budget}, allowed: a number, 0 or more"
            )


def decimal(value: float) -> Fraction:
    """Return the decimal number that a float is written as: 0.35 gives 7/20."""
    return Fraction(repr(float(value)))


def cost_of(limit: Limit, design: Design) -> Fraction | None:
    """Return the exact cost of a design, `None` where it has no price."""
    cost = limit.cost
    if isinstance(cost, TableCost):
        price = cost.prices.get(design)
        return None if price is None else decimal(price)
    arms = design.arms
    if isinstance(cost.per_arm, tuple):
        arms_cost = sum((decimal(cost.per_arm[arm]) for arm in arms), Fraction(0))
    else:
        arms_cost = decimal(cost.per_arm) * len(arms)
    seeds = decimal(cost.per_seed) + decimal(cost.per_run) * (len(arms) + 1)
    return decimal(cost.setup) + arms_cost + seeds * design.seeds


def is_affordable(limit: Limit, design: Design) -> bool:
    """Return whether a design fits the budget, in exact arithmetic."""
    cost = cost_of(limit, design)
    return cost is not None and cost <= decimal(limit.budget)


class CostTable(NamedTuple):
    """Costs of all arm sets and seeds.

    Attributes:
        cost: In the limit's unit, shape (2^K, N); infinite where there is no price.
        affordable: Whether the exact cost fits the budget, shape (2^K, N).
    """

    cost: NDArray[np.float64]
    affordable: NDArray[np.bool_]


def cost_table(limit: Limit, arms: int, seeds: range) -> CostTable:
    """Return the costs of all designs, compared with the budget in exact integers."""
    if isinstance(limit.cost, TableCost):
        return _priced(limit, arms, seeds)
    cost = limit.cost
    per_arm = cost.per_arm if isinstance(cost.per_arm, tuple) else (cost.per_arm,) * arms
    numbers = [cost.setup, cost.per_seed, cost.per_run, *per_arm, limit.budget]
    exact = [decimal(x) for x in numbers]
    scale = lcm(*(x.denominator for x in exact))
    whole = [int(x * scale) for x in exact]
    kind = np.int64 if max(whole) < 2**40 else object
    setup, per_seed, per_run, *arm_costs, budget = np.array(whole, dtype=kind)
    bits = (np.arange(2**arms)[:, None] >> np.arange(arms) & 1).astype(kind)
    count = np.arange(seeds.start, seeds.stop).astype(kind)
    runs = (bits.sum(axis=1)[:, None] + 1) * count
    ticks = (
        setup
        + (bits @ np.array(arm_costs, dtype=kind))[:, None]
        + per_seed * count
        + per_run * runs
    )
    affordable = np.asarray(ticks <= budget, dtype=bool)
    affordable[0] = False
    return CostTable((ticks / scale).astype(np.float64), affordable)


def _priced(limit: Limit, arms: int, seeds: range) -> CostTable:
    table = np.full((2**arms, len(seeds)), inf)
    affordable = np.zeros(table.shape, dtype=bool)
    if isinstance(limit.cost, TableCost):
        for design, price in limit.cost.prices.items():
            if design.seeds in seeds and design.arms and max(design.arms) < arms:
                where = design.mask, design.seeds - seeds.start
                table[where] = price
                affordable[where] = is_affordable(limit, design)
    return CostTable(table, affordable)
