"""A research state as a TOML or JSON file."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, Literal

import msgspec

from outlay.designs.costs import Cost, Design, Limit, LinearCost, TableCost
from outlay.designs.outcomes import PAPER_NOISE, GaussianOutcomes, GridOutcomes, Outcomes
from outlay.designs.states import ResearchState
from outlay.errors import InputError, bad_value

_LARGEST_FILE = 10_000_000


class _Price(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    arms: list[str]
    seeds: int
    cost: float


class _Cost(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
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


class _Limit(_Cost, forbid_unknown_fields=True, kw_only=True):
    budget: float


class _Hypothesis(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    name: str
    prior: float | None = None
    signature: list[float] | dict[str, float]


class _Outcomes(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    kind: Literal["grid", "gaussian"] = "grid"
    noise: float = PAPER_NOISE
    values: list[float] | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    hypotheses: list[_Hypothesis]
    arms: list[str]
    budget: float
    cost: _Cost | None = None
    limits: list[_Limit] = msgspec.field(default_factory=list)
    seeds: tuple[int, int] = (2, 12)
    outcomes: _Outcomes = msgspec.field(default_factory=_Outcomes)
    question: str = ""
    observations: list[str] = msgspec.field(default_factory=list)


def as_state(state: ResearchState | str | Path) -> ResearchState:
    """Return the state, read from its file if a path is given.

    Raises:
        InputError: It is neither, or the file is wrong.
    """
    if isinstance(state, (str, Path)):
        return read_state(state)
    if not isinstance(state, ResearchState):
        raise InputError(
            f"state: found {type(state).__name__}, allowed: a ResearchState, or the path of its "
            "TOML or JSON file (outlay.designs.statefile.parse_state makes one of a dict)"
        )
    return state


def read_state(path: str | Path) -> ResearchState:
    """Return the state in a file that ends in `.toml` or `.json`.

    Raises:
        InputError: The file is missing or wrong; the message names the file and the key.
    """
    path = Path(path)
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise InputError(f"{path}: larger than {_LARGEST_FILE} bytes")
        text = path.read_text(encoding="utf-8")
        data = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    return parse_state(data, where=str(path))


def check_target(path: str | Path) -> None:
    """Raise `InputError` unless `write_state` would write to this name."""
    if Path(path).suffix != ".json":
        raise InputError(
            f"{path}: found a name to write the state to, allowed: one that ends in .json, such "
            f"as {Path(path).with_suffix('.json').name} (a TOML file would lose its comments)"
        )


def write_state(path: str | Path, state: ResearchState) -> None:
    """Write a state as JSON, whole or not at all.

    Raises:
        InputError: The name does not end in `.json`, or cannot be written.
    """
    check_target(path)
    path = Path(path)
    beside = path.with_name(path.name + ".part")
    try:
        beside.write_text(json.dumps(state_to_json(state), indent=2) + "\n", encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error


def parse_state(data: Any, where: str = "state") -> ResearchState:
    """Return the state in decoded TOML or JSON; errors as in `read_state`, naming `where`."""
    try:
        file = msgspec.convert(data, _File)
        return ResearchState(
            hypotheses=tuple(h.name for h in file.hypotheses),
            prior=_prior(file),
            arms=tuple(file.arms),
            signatures=tuple(_signature(file, h) for h in file.hypotheses),
            limits=(_first_limit(file), *(_limit(file, x, x.budget) for x in file.limits)),
            seeds=file.seeds,
            outcomes=_outcomes(file.outcomes),
            question=file.question,
            observations=tuple(file.observations),
        )
    except (msgspec.ValidationError, InputError) as error:
        raise InputError(f"{where}: {error}") from error


def _prior(file: _File) -> tuple[float, ...]:
    given = [h.prior for h in file.hypotheses if h.prior is not None]
    if not given and file.hypotheses:
        return (1 / len(file.hypotheses),) * len(file.hypotheses)
    if len(given) != len(file.hypotheses):
        raise InputError(
            f"prior: found for {len(given)} of {len(file.hypotheses)} hypotheses, allowed: for "
            "all, or for none (then all are equally likely)"
        )
    return tuple(given)


def _signature(file: _File, hypothesis: _Hypothesis) -> tuple[float, ...]:
    signature = hypothesis.signature
    if isinstance(signature, list):
        return tuple(signature)
    _check_arms(file, f"signature of {hypothesis.name}", list(signature))
    return tuple(signature.get(arm, 0.0) for arm in file.arms)


def _first_limit(file: _File) -> Limit:
    """Return the budget with its cost rule; without any, the paper's (Eq. 3)."""
    if file.cost is None:
        return Limit(budget=file.budget)
    return _limit(file, file.cost, file.budget)


def _limit(file: _File, cost: _Cost, budget: float) -> Limit:
    key = "limits" if isinstance(cost, _Limit) else "cost"
    return Limit(unit=cost.unit, budget=budget, cost=_cost(file, cost, key))


def _cost(file: _File, cost: _Cost, key: str) -> Cost:
    """Return the rule; what a table leaves out costs nothing, but it must name something."""
    named = cost.named()
    if cost.designs is not None:
        if named:
            raise InputError(f"{key}: found {named[0]} beside designs, allowed: one of the two")
        return TableCost(prices=_prices(file, cost.designs, key))
    if not named:
        raise InputError(
            f"{key}: found no price of {cost.unit}, allowed: one or more of setup, per_arm, "
            "per_seed and per_run (those left out are 0), or designs"
        )
    return LinearCost(
        setup=cost.setup or 0.0,
        per_arm=_per_arm(file, cost.per_arm, key),
        per_seed=cost.per_seed or 0.0,
        per_run=cost.per_run or 0.0,
    )


def _per_arm(
    file: _File, given: float | dict[str, float] | None, key: str
) -> float | tuple[float, ...]:
    if not isinstance(given, dict):
        return given or 0.0
    _check_arms(file, f"{key}.per_arm", list(given))
    missing = [arm for arm in file.arms if arm not in given]
    if missing:
        raise InputError(f"{key}.per_arm: {missing[0]!r} is missing; write 0 if it costs nothing")
    return tuple(given[arm] for arm in file.arms)


def _prices(file: _File, rows: list[_Price], key: str) -> dict[Design, float]:
    if not rows:
        raise InputError(f"{key}.designs: found no row, allowed: one or more designs")
    prices: dict[Design, float] = {}
    for row in rows:
        _check_arms(file, f"{key}.designs", row.arms)
        design = Design(tuple(sorted(file.arms.index(arm) for arm in row.arms)), row.seeds)
        if design in prices:
            shown = f"{', '.join(row.arms)} with {row.seeds} seeds"
            raise InputError(f"{key}.designs: {shown} is listed twice; give each design one row")
        prices[design] = row.cost
    return prices


def _check_arms(file: _File, key: str, names: list[str]) -> None:
    for name in names:
        if name not in file.arms:
            raise bad_value(key, "arm", name, ", ".join(file.arms))


def _outcomes(outcomes: _Outcomes) -> Outcomes:
    if outcomes.kind == "gaussian":
        if outcomes.values is not None:
            raise InputError("outcomes: values: allowed with kind = 'grid' only")
        return GaussianOutcomes(noise=outcomes.noise)
    values = GridOutcomes().values if outcomes.values is None else tuple(outcomes.values)
    return GridOutcomes(noise=outcomes.noise, values=values)


def state_to_json(state: ResearchState) -> dict[str, Any]:
    """Return the state as JSON data that `parse_state` reads back to an equal state."""
    first, *others = state.limits
    outcomes: dict[str, Any] = {"kind": "gaussian", "noise": state.outcomes.noise}
    if isinstance(state.outcomes, GridOutcomes):
        outcomes |= {"kind": "grid", "values": list(state.outcomes.values)}
    rows = zip(state.hypotheses, state.prior, state.signatures, strict=True)
    return {
        "question": state.question,
        "observations": list(state.observations),
        "hypotheses": [
            {"name": name, "prior": prior, "signature": list(signature)}
            for name, prior, signature in rows
        ],
        "arms": list(state.arms),
        "seeds": list(state.seeds),
        "outcomes": outcomes,
        "budget": first.budget,
        "cost": _cost_to_json(state, first),
        "limits": [{"budget": x.budget, **_cost_to_json(state, x)} for x in others],
    }


def _cost_to_json(state: ResearchState, limit: Limit) -> dict[str, Any]:
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
