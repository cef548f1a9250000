"""The metric of one evaluation: text in, a number or a sentence about the fault out."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Rule(NamedTuple):
    """How a metric is read; the fields are those of `outlay.task.Metric`."""

    name: str
    line: str = "only"
    low: float | None = None
    high: float | None = None
    secondary: tuple[str, ...] = ()


class Reading(NamedTuple):
    """The value with the secondary metrics that were found, or the fault."""

    value: float | None
    metrics: dict[str, float]
    fault: str


class _FaultError(Exception):
    """Carries a sentence about what is wrong with the metric."""


class _Pairs(NamedTuple):
    """A JSON object with the keys that it gave twice, with different values."""

    values: dict[str, Any]
    unclear: set[str]


def from_json(rule: Rule, text: str, where: str) -> Reading:
    """Return the metric in a JSON object, or a plain JSON number; `where` names the file."""
    return _reading(rule, lambda: _from_document(rule, text, where))


def from_stdout(rule: Rule, text: str) -> Reading:
    """Return the metric printed as a JSON object on the last line, or on a `name: value` line.

    With `line="only"`, lines that give different values are a fault, and so is a JSON object with
    the metric before the last line. With `line="last"` the last line that gives it counts.
    """
    return _reading(rule, lambda: _from_lines(rule, text))


def _reading(rule: Rule, read: Callable[[], tuple[float, dict[str, float]]]) -> Reading:
    try:
        value, found = read()
        _check_range(rule, value)
    except _FaultError as fault:
        return Reading(None, {}, str(fault))
    return Reading(value, found, "")


def _from_document(rule: Rule, text: str, where: str) -> tuple[float, dict[str, float]]:
    try:
        document = json.loads(text, object_pairs_hook=_pairs)
    except (ValueError, RecursionError):
        raise _FaultError(f"{where} holds no JSON: {_shown(text)}") from None
    if isinstance(document, _Pairs):
        return _from_pairs(rule, document, where)
    return _number(rule.name, document, where), {}


def _from_pairs(rule: Rule, pairs: _Pairs, where: str) -> tuple[float, dict[str, float]]:
    if rule.name not in pairs.values:
        raise _FaultError(
            f"metric {rule.name!r} is not in {where}: found {sorted(pairs.values)[:10]}"
        )
    if rule.name in pairs.unclear:
        raise _FaultError(f"metric {rule.name!r} is twice in {where}, with different values")
    return _number(rule.name, pairs.values[rule.name], where), _secondary(rule, pairs.values)


def _from_lines(rule: Rule, text: str) -> tuple[float, dict[str, float]]:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    objects = {i: pairs for i, line in enumerate(lines) if (pairs := _object(line))}
    given = {i: pairs for i, pairs in objects.items() if rule.name in pairs.values}
    named = {i: match for i, line in enumerate(lines) if (match := _named(rule.name, line))}
    if not given and not named:
        last = _shown(lines[-1]) if lines else "nothing"
        raise _FaultError(f"metric {rule.name!r} was never printed; the last line is {last}")
    counted = sorted({**given, **named})[-1 if rule.line == "last" else 0 :]
    values = {
        i: _from_pairs(rule, given[i], "stdout")[0] if i in given else _parsed(rule.name, named[i])
        for i in counted
    }
    if rule.line == "only":
        _refuse_several(rule, values)
        if not named and max(given) != len(lines) - 1:
            raise _FaultError(
                f"metric {rule.name!r} was printed before the last line, which is"
                f' {_shown(lines[-1])}; print it last or set metric_line = "last"'
            )
    found = {key: value for pairs in objects.values() for key, value in pairs.values.items()}
    found |= {
        name: _word(shown)
        for line in lines
        for name in rule.secondary
        if (shown := _named(name, line))
    }
    return values[counted[-1]], _secondary(rule, found)


def _refuse_several(rule: Rule, values: dict[int, float]) -> None:
    different = sorted(set(values.values()))
    if len(different) > 1:
        shown = ", ".join(f"{value:g}" for value in different[:5])
        raise _FaultError(
            f"metric {rule.name!r} was printed {len(values)} times with different values"
            f' ({shown}); print it once or set metric_line = "last"'
        )


def _named(name: str, line: str) -> str | None:
    """Return what stands after `name:` if it could be meant as a value (one word)."""
    match = re.fullmatch(re.escape(name) + r"\s*:\s*(\S+)", line)
    return match[1] if match else None


def _object(line: str) -> _Pairs | None:
    if not line.startswith("{"):
        return None
    try:
        found = json.loads(line, object_pairs_hook=_pairs)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, _Pairs) else None


def _pairs(pairs: list[tuple[str, Any]]) -> _Pairs:
    found = _Pairs({}, set())
    for key, value in pairs:
        if key in found.values and found.values[key] != value:
            found.unclear.add(key)
        found.values[key] = value
    return found


def _word(shown: str) -> float | str:
    try:
        return float(shown)
    except ValueError:
        return shown


def _parsed(name: str, shown: str) -> float:
    return _number(name, _word(shown), "stdout")


def _number(name: str, found: Any, where: str) -> float:
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise _FaultError(f"metric {name!r} in {where} is no number: {_shown(_plain(found))}")
    try:
        value = float(found)
    except OverflowError:
        value = math.inf
    if math.isnan(value):
        raise _FaultError(f"metric {name!r} in {where} is NaN")
    if math.isinf(value):
        raise _FaultError(f"metric {name!r} in {where} is infinite")
    return value


def _secondary(rule: Rule, found: dict[str, Any]) -> dict[str, float]:
    out = {}
    for name in rule.secondary:
        try:
            out[name] = _number(name, found.get(name), "stdout")
        except _FaultError:
            continue  # A secondary metric steers nothing, so its absence is no fault.
    return out


def _check_range(rule: Rule, value: float) -> None:
    low = -math.inf if rule.low is None else rule.low
    high = math.inf if rule.high is None else rule.high
    if not low <= value <= high:
        raise _FaultError(
            f"metric {rule.name!r} is {value!r}, outside its range {low:g} to {high:g}"
        )


def _plain(found: Any) -> str:
    if isinstance(found, _Pairs):
        return "an object"
    return "a list" if isinstance(found, list) else json.dumps(found)


def _shown(text: str) -> str:
    text = text.strip()
    return repr(text if len(text) <= 100 else text[:97] + "...")
