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
    setup: float = 1.0
    per_arm: float | dict[str, float] = 0.6
    per_seed: float = 0.35
    per_run: float = 0.0
    designs: list[_Price] | None = None


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
    cost: _Cost = msgspec.field(default_factory=_Cost)
    limits: list[_Limit] = msgspec.field(default_factory=list)
    seeds: tuple[int, int] = (2, 12)
    outcomes: _Outcomes = msgspec.field(default_factory=_Outcomes)
    question: str = ""
    observations: list[str] = msgspec.field(default_factory=list)


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


def parse_state(data: Any, where: str = "state") -> ResearchState:
    """Return the state in decoded TOML or JSON; errors as in `read_state`, naming `where`."""
    try:
        file = msgspec.convert(data, _File)
        return ResearchState(
            hypotheses=tuple(h.name for h in file.hypotheses),
            prior=_prior(file),
            arms=tuple(file.arms),
            signatures=tuple(_signature(file, h) for h in file.hypotheses),
            limits=(
                Limit(unit=file.cost.unit, budget=file.budget, cost=_cost(file, file.cost)),
                *(Limit(unit=x.unit, budget=x.budget, cost=_cost(file, x)) for x in file.limits),
            ),
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


def _cost(file: _File, cost: _Cost) -> Cost:
    if cost.designs is not None:
        prices = {}
        for price in cost.designs:
            _check_arms(file, "cost.designs", price.arms)
            arms = tuple(sorted(file.arms.index(arm) for arm in price.arms))
            prices[Design(arms, price.seeds)] = price.cost
        return TableCost(prices=prices)
    per_arm: float | tuple[float, ...]
    if isinstance(cost.per_arm, dict):
        _check_arms(file, "cost.per_arm", list(cost.per_arm))
        missing = [arm for arm in file.arms if arm not in cost.per_arm]
        if missing:
            raise InputError(f"cost.per_arm: {missing[0]!r} is missing")
        per_arm = tuple(cost.per_arm[arm] for arm in file.arms)
    else:
        per_arm = cost.per_arm
    return LinearCost(
        setup=cost.setup, per_arm=per_arm, per_seed=cost.per_seed, per_run=cost.per_run
    )


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
