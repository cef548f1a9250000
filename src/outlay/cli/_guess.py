"""What a folder's evaluator shows: its command, its metric, and arguments that may be levers."""

from __future__ import annotations

import ast
import re
import shlex
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PATTERNS = ("score.py", "evaluate.py", "bench*.py", "train.py")
_SMALLER = re.compile(
    r"loss|err|bpb|perplexity|ppl|rmse|mse|mae|time|seconds|latency|(^|_)ms$|cost|size|bytes|memory",
    re.IGNORECASE,
)

_PLACE = re.compile(r"(^|[-_ ])(out|output|path|dir|folder|file|log)([-_ ]|$)|[/.]", re.IGNORECASE)
"""Names and values of arguments that say where something lies."""


class Switch(NamedTuple):
    """An argument of the evaluator that may become a lever: option names and their arguments."""

    name: str
    options: tuple[tuple[str, str], ...]


class Found(NamedTuple):
    """What was found; `None` where nothing was."""

    command: str | None
    metric: str | None
    protected: tuple[str, ...]
    switches: tuple[Switch, ...]


def look(folder: Path) -> Found:
    """Return what the first plausible evaluator of the folder shows; it is read, never run."""
    file = next((f for pattern in _PATTERNS for f in sorted(folder.glob(pattern))), None)
    if file is None:
        return Found(None, None, (), ())
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError):
        tree = ast.Module(body=[], type_ignores=[])
    arguments = list(_arguments(tree))
    seeded = any(flag == "--seed" for flag, _ in arguments)
    command = f"python3 {shlex.quote(file.name)}" + (" --seed {seed}" if seeded else "")
    switches = tuple(s for s in (_switch(*argument) for argument in arguments) if s is not None)
    # A program that is trained is itself the thing to change.
    protected = () if file.name == "train.py" else (file.name,)
    return Found(command, _metric(tree), protected, switches)


def direction(metric: str) -> str:
    """Return the direction that the metric's name suggests."""
    return "minimize" if _SMALLER.search(metric) else "maximize"


def task_name(folder: Path) -> str:
    """Return a task name made of the folder's name."""
    name = re.sub(r"[^A-Za-z0-9 ._-]+", "-", folder.resolve().name).lstrip(" ._-")[:64]
    return name or "task"


def _arguments(tree: ast.AST) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the long flags of `add_argument` calls, with their constant keywords."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
            flags = [a.value for a in node.args if isinstance(a, ast.Constant)]
            names = [f for f in flags if isinstance(f, str) and f.startswith("--")]
            if names:
                yield names[0], {k.arg or "": _constant(k.value) for k in node.keywords}


def _constant(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def _switch(flag: str, keywords: dict[str, object]) -> Switch | None:
    name = flag.lstrip("-")
    if name == "seed" or not re.fullmatch(r"[\w-]+", name, re.ASCII):
        return None
    if keywords.get("action") == "store_true":
        return Switch(name, (("off", ""), ("on", flag)))
    default, choices = keywords.get("default"), keywords.get("choices")
    if isinstance(choices, (list, tuple)) and default in choices and len(choices) > 1:
        others = [c for c in choices if c != default]
    elif isinstance(default, (int, float)) and not isinstance(default, bool):
        others = [default * 2 if default else 1]
    elif isinstance(default, str) and _label(default) and not _PLACE.search(f"{name} {default}"):
        others = ["other"]
    else:
        return None
    options = tuple((_label(o), f"{flag} {shlex.quote(str(o))}") for o in others)
    return Switch(name, ((_label(default), ""), *options))


def _label(value: object) -> str:
    return re.sub(r"[^\w.+-]+", "-", str(value))[:64]


def _metric(tree: ast.AST) -> str | None:
    """Return the first key that is printed as JSON, or the first `name: ` of a printed text."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    for call in calls:
        if getattr(call.func, "attr", getattr(call.func, "id", "")) in ("dumps", "dump"):
            for argument in call.args[:1]:
                if isinstance(argument, ast.Dict) and argument.keys:
                    key = argument.keys[0]
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        return key.value
    for call in calls:
        if getattr(call.func, "id", "") == "print":
            for part in ast.walk(call):
                value = part.value if isinstance(part, ast.Constant) else None
                if isinstance(value, str) and (match := re.match(r"([A-Za-z_]\w*):\s*$", value)):
                    return match[1]
    return None
