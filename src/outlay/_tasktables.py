"""Every table and key of a task file, with the reader of its value.

A reader takes a TOML value and returns the value of the task's field; it raises `ValueError` with
what is allowed. Values are checked further in `outlay._taskcheck`, for files and Python alike.
"""

from __future__ import annotations

import difflib
import math
import shlex
from typing import TYPE_CHECKING, Any

from outlay import quantities
from outlay._taskcheck import shown
from outlay.errors import InputError, bad_value
from outlay.task import Lever, Option, Price

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Reader = Callable[[object], Any]

_OPERATORS = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1", "&>"})
_TEXTS = "a list of texts"
_COMMAND = "a text that is split without a shell, or a list of texts"


def text(value: object) -> str:
    """Return a text as it is."""
    if not isinstance(value, str):
        raise ValueError("a text")
    return value


def texts(value: object) -> tuple[str, ...]:
    """Return a list of texts as a tuple."""
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise ValueError(_TEXTS)
    return tuple(value)


def command(value: object) -> tuple[str, ...]:
    """Return a command as its arguments; a text is split as a POSIX shell would."""
    if not isinstance(value, str):
        try:
            return texts(value)
        except ValueError:
            raise ValueError(_COMMAND) from None
    try:
        parts = tuple(shlex.split(value))
    except ValueError as error:
        raise ValueError(f"{_COMMAND} ({str(error).lower()})") from None
    if found := _OPERATORS.intersection(parts):
        raise ValueError(f"no shell: put `{min(found)}` into a script, or give a list of texts")
    return parts


def integer(value: object) -> int:
    """Return a whole number; `true` is none."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("a whole number")
    return value


def number(value: object) -> float:
    """Return a number; `true` is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("a number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError("a finite number") from None


def switch(value: object) -> bool:
    """Return `true` or `false`."""
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def integers(value: object) -> tuple[int, ...]:
    """Return a list of whole numbers as a tuple."""
    if not isinstance(value, list):
        raise ValueError("a list of whole numbers")
    return tuple(integer(v) for v in value)


def bounds(value: object) -> tuple[float | None, float | None]:
    """Return (low, high) of a range; an infinite end is `None`."""
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError("[low, high], where -inf and inf leave an end open")
    low, high = (number(v) for v in value)
    return (None if low == -math.inf else low, None if high == math.inf else high)


def mapping(value: object) -> dict[str, str]:
    """Return a table of texts."""
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise ValueError("a table of texts")
    return dict(value)


TABLES: dict[str, dict[str, Reader]] = {
    "task": {
        "name": text,
        "question": text,
        "workspace": text,
        "editable": texts,
        "protected": texts,
        "hidden": texts,
        "data": texts,
        "hypotheses": text,
    },
    "evaluate": {
        "command": command,
        "function": text,
        "check": command,
        "noise": text,
        "container": text,
        "metric": text,
        "direction": text,
        "range": bounds,
        "read": text,
        "metric_line": text,
        "secondary": texts,
        "reward": text,
        "reward_scale": number,
    },
    "limits": {
        "seconds": quantities.duration,
        "memory": quantities.size,
        "output": quantities.size,
        "tokens": quantities.count,
        "usd": number,
    },
    "seeds": {"selection": integers, "confirmation": integer, "final": integers},
    "budget": {
        "attempts": quantities.count,
        "tokens": quantities.count,
        "usd": number,
        "time": quantities.duration,
    },
    "sandbox": {"read": texts, "network": switch, "gpu": switch},
    "coordination": {
        "confirmation": text,
        "error_rate": number,
        "dead_ends": switch,
        "ranking": switch,
        "teams": integer,
        "stagnation": integer,
    },
    "search": {"policy": text, "children": integer, "prune_below": number},
    "agent": {
        "client": text,
        "model": text,
        "url": text,
        "key": text,
        "partial": switch,
        "patience": quantities.duration,
    },
    "reflector": {"client": text, "model": text, "url": text, "key": text, "terse": switch},
}
"""Table to key to reader; `[levers.NAME]` and `[prices.MODEL]` have their own keys below."""

PRICE: dict[str, Reader] = dict.fromkeys(("input", "output", "cached", "cache_write"), number)
LEVER: tuple[str, ...] = ("options",)
OPTION: dict[str, Reader] = {"args": command, "env": mapping, "files": mapping, "patch": text}


def read_tables(document: dict[str, Any], where: str) -> dict[str, dict[str, Any]]:
    """Return the values of every table but the levers, read; absent tables are empty.

    Raises:
        InputError: For an unknown key, or a value of the wrong type.
    """
    known(document, (*TABLES, "levers", "prices"), where, "")
    return {
        name: _read(table(document.get(name, {}), where, name), readers, where, name)
        for name, readers in TABLES.items()
    }


def read_prices(document: dict[str, Any], where: str) -> dict[str, Price]:
    """Return the price of every model that the file names."""
    prices = table(document.get("prices", {}), where, "prices")
    return {name: _price(name, value, where) for name, value in prices.items()}


def _price(name: str, value: object, where: str) -> Price:
    key = f"prices.{shown(name)}"
    found = _read(table(value, where, key), PRICE, where, key)
    for part in ("input", "output"):
        if part not in found:
            raise InputError(
                f"{where}: {key}.{part}: found nothing, allowed: dollars for a million tokens"
            )
    return Price(**found)


def read_levers(document: dict[str, Any], where: str) -> tuple[Lever, ...]:
    """Return the levers in the order of the file, and their options likewise."""
    levers = table(document.get("levers", {}), where, "levers")
    return tuple(_lever(name, value, where) for name, value in levers.items())


def table(value: object, where: str, key: str) -> dict[str, Any]:
    """Return the value if it is a table."""
    if not isinstance(value, dict):
        raise bad_value(where, key, value, "a table")
    return value


def known(found: dict[str, Any], allowed: Iterable[str], where: str, prefix: str) -> None:
    """Raise `InputError` for the first key that is not allowed, with the nearest one that is."""
    names = list(allowed)
    for key in found:
        if key not in names:
            near = difflib.get_close_matches(key, names, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            listed = ", ".join(names)
            raise InputError(
                f"{where}: {prefix}{shown(key)}: found an unknown key{hint}, allowed: {listed}"
            )


def _read(
    found: dict[str, Any], readers: dict[str, Reader], where: str, name: str
) -> dict[str, Any]:
    known(found, readers, where, f"{name}.")
    return {k: _value(readers[k], v, where, f"{name}.{k}") for k, v in found.items()}


def _value(reader: Reader, value: object, where: str, key: str) -> Any:
    try:
        return reader(value)
    except ValueError as error:
        raise bad_value(where, key, value, str(error)) from None


def _lever(name: str, value: object, where: str) -> Lever:
    key = f"levers.{shown(name)}"
    lever = table(value, where, key)
    known(lever, LEVER, where, f"{key}.")
    if "options" not in lever:
        raise InputError(f"{where}: {key}.options: found nothing, allowed: at least two options")
    options = table(lever["options"], where, f"{key}.options")
    return Lever(
        name=name,
        options=tuple(_option(k, v, where, f"{key}.options") for k, v in options.items()),
    )


def _option(name: str, value: object, where: str, prefix: str) -> Option:
    key = f"{prefix}.{shown(name)}"
    if isinstance(value, str):
        return Option(name=name, args=_value(command, value, where, key))
    if not isinstance(value, dict):
        raise bad_value(
            where, key, value, "a text of arguments, or a table of args, env, files, patch"
        )
    return Option(name=name, **_read(value, OPTION, where, key))
