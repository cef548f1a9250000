"""Costs of designs as tables of a state file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from outlay.designs.costs import Cost, Design, Limit, LinearCost, TableCost
from outlay.errors import InputError, bad_value

if TYPE_CHECKING:
    from outlay.designs.states import ResearchState


class _Price(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    arms: list[str]
    seeds: int
    cost: float


class CostRule(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """`[cost]`: a linear rule, or the prices of designs."""

    unit: str = "units"
    setup: float | None = None
    per_arm: float | dict[str, float] | None = None
    per_seed: float | None = None
    per_run: float | None = None
    designs: list[_Price] | None = None

    def named(self) -> list[str]:
        """Return the parts of the linear rule that the file names."""
        parts = ("setup", "per_arm", "per_seed", "per_run")
        return [part for part in parts if getattr(self, part) is not None]


class LimitRule(CostRule, forbid_unknown_fields=True, kw_only=True):
    """One of `[[limits]]`: a rule with its budget."""

    budget: float


def limit_of(arms: list[str], cost: CostRule, budget: float) -> Limit:
    """Return the resource that a table of a file describes.

    Raises:
        InputError: It names no price, or contradicts itself; the message names the key.
    """
    key = "limits" if isinstance(cost, LimitRule) else "cost"
    return Limit(unit=cost.unit, budget=budget, cost=_cost(arms, cost, key))


def _cost(arms: list[str], cost: CostRule, key: str) -> Cost:
    """Return the rule; what a table leaves out costs nothing, but it must name something."""
    named = cost.named()
    if cost.designs is not None:
        if named:
            raise InputError(f"{key}: found {named[0]} beside designs, allowed: one of the two")
        return TableCost(prices=_prices(arms, cost.designs, key))
    if not named:
        raise InputError(
            f"{key}: found no price of {cost.unit}, allowed: one or more of setup, per_arm, "
            "per_seed and per_run (those left out are 0), or designs"
        )
    return LinearCost(
        setup=cost.setup or 0.0,
        per_arm=_per_arm(arms, cost.per_arm, key),
        per_seed=cost.per_seed or 0.0,
        per_run=cost.per_run or 0.0,
    )


def _per_arm(
    arms: list[str], given: float | dict[str, float] | None, key: str
) -> float | tuple[float, ...]:
    if not isinstance(given, dict):
        return given or 0.0
    check_arms(arms, f"{key}.per_arm", list(given))
    missing = [arm for arm in arms if arm not in given]
    if missing:
        raise InputError(f"{key}.per_arm: {missing[0]!r} is missing; write 0 if it costs nothing")
    return tuple(given[arm] for arm in arms)


def _prices(arms: list[str], rows: list[_Price], key: str) -> dict[Design, float]:
    if not rows:
        raise InputError(f"{key}.designs: found no row, allowed: one or more designs")
    prices: dict[Design, float] = {}
    for row in rows:
        check_arms(arms, f"{key}.designs", row.arms)
        design = Design(tuple(sorted(arms.index(arm) for arm in row.arms)), row.seeds)
        if design in prices:
            shown = f"{', '.join(row.arms)} with {row.seeds} seeds"
            raise InputError(f"{key}.designs: {shown} is listed twice; give each design one row")
        prices[design] = row.cost
    return prices


def check_arms(arms: list[str], key: str, names: list[str]) -> None:
    """Raise `InputError` unless every name is an arm."""
    for name in names:
        if name not in arms:
            raise bad_value(key, "arm", name, ", ".join(arms))


def cost_to_json(state: ResearchState, limit: Limit) -> dict[str, Any]:
    """Return the unit and the rule of a limit as JSON data that `limit_of` reads back."""
    cost = limit.cost
    if isinstance(cost, TableCost):
        designs = [
            {"arms": [state.arms[arm] for arm in arms], "seeds": seeds, "cost": price}
            for (arms, seeds), price in cost.prices.items()
        ]
        return {"unit": limit.unit, "designs": designs}
    per_arm: Any = cost.per_arm
    if isinstance(per_arm, tuple):
        per_arm = dict(zip(state.arms, per_arm, strict=True))
    return {
        "unit": limit.unit,
        "setup": cost.setup,
        "per_arm": per_arm,
        "per_seed": cost.per_seed,
        "per_run": cost.per_run,
    }
