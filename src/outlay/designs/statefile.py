"""A research state as a TOML or JSON file."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, Literal

import msgspec

from outlay.designs._costfile import CostRule, LimitRule, check_arms, cost_to_json, limit_of
from outlay.designs.costs import Limit
from outlay.designs.outcomes import PAPER_NOISE, GaussianOutcomes, GridOutcomes, Outcomes
from outlay.designs.states import ResearchState
from outlay.errors import InputError

_LARGEST_FILE = 10_000_000


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
    cost: CostRule | None = None
    limits: list[LimitRule] = msgspec.field(default_factory=list)
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
            limits=(_first_limit(file), *(limit_of(file.arms, x, x.budget) for x in file.limits)),
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
    check_arms(file.arms, f"signature of {hypothesis.name}", list(signature))
    return tuple(signature.get(arm, 0.0) for arm in file.arms)


def _first_limit(file: _File) -> Limit:
    """Return the budget with its cost rule; without any, the paper's (Eq. 3)."""
    if file.cost is None:
        return Limit(budget=file.budget)
    return limit_of(file.arms, file.cost, file.budget)


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
        "cost": cost_to_json(state, first),
        "limits": [{"budget": x.budget, **cost_to_json(state, x)} for x in others],
    }
