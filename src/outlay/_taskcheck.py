"""What makes a task wrong, whether it was read from a file or built in Python; no file is touched.

Every function takes the task and raises `InputError` through a `Fault`, which knows where the task
came from. Keys are those of the task file.
"""

from __future__ import annotations

import math
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from outlay.errors import InputError, bad_value
from outlay.globs import is_literal, matches

if TYPE_CHECKING:
    from outlay.task import Lever, Option, Task

MAX_SEED = 2**31 - 1

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}", re.ASCII)
NAME_ALLOWED = "1 to 64 letters, digits, spaces and ._- that start with a letter or digit"
_LEVER_NAME = re.compile(r"[\w.+-][\w.+:-]{0,63}")
_FUNCTION = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_URL = re.compile(r"https?://[^\s/@?#]+(/[^\s@?#]*)?")
_CONTAINER = re.compile(r"(/[A-Za-z_][\w.-]*)+", re.ASCII)
_SYSTEM = (
    *("bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "logs", "media", "mnt", "nix"),
    *("opt", "proc", "root", "run", "sbin", "srv", "sys", "tests", "tmp", "usr", "var"),
)
_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_CHOICES = {
    "evaluate.direction": ("metric", "direction", ("maximize", "minimize")),
    "evaluate.metric_line": ("metric", "line", ("only", "last")),
    "evaluate.reward": ("metric", "reward", ("logistic", "identity")),
    "evaluate.noise": ("evaluator", "noise", ("seed", "machine")),
    "coordination.confirmation": ("coordination", "confirmation", ("sequential", "band", "none")),
}
_INSIDE = "a path inside the workspace, relative to it"


class Fault(NamedTuple):
    """Raises errors about one task."""

    where: str

    def value(self, key: str, found: object, allowed: str) -> NoReturn:
        """Raise for a wrong value."""
        raise bad_value(self.where, key, found, allowed)

    def missing(self, key: str, allowed: str) -> NoReturn:
        """Raise for an absent value."""
        raise InputError(f"{self.where}: {key}: found nothing, allowed: {allowed}")

    def unless_number(
        self, key: str, found: float | None, allowed: str, low: float, high: float = math.inf
    ) -> None:
        """Raise unless the number is finite and in [low, high]; `None` passes."""
        if found is not None and not (math.isfinite(found) and low <= found <= high):
            self.value(key, found, allowed)

    def unless_inside(self, key: str, path: str) -> None:
        """Raise unless the path is relative and stays below its start."""
        parts = PurePosixPath(path).parts
        if not path.strip("./") or path.startswith("/") or ".." in parts or not _clean(path):
            self.value(key, path, _INSIDE)


def is_name(text: str) -> bool:
    """Return whether a task or a run may be called so; it also names a folder."""
    return _NAME.fullmatch(text) is not None


def shown(name: str) -> str:
    """Return the name as it is written in a dotted key."""
    return name if re.fullmatch(r"[\w-]+", name) else repr(name[:60])


def check_choices(task: Task, where: str) -> None:
    """Raise `InputError` for the first word that is not one of its choices."""
    fault = Fault(where)
    for key, (part, name, choices) in _CHOICES.items():
        found = getattr(getattr(task, part), name, choices[0])
        if found == "":
            fault.missing(key, ", ".join(choices))
        if found not in choices:
            fault.value(key, found, ", ".join(choices))


def check_all(task: Task, where: str, *, called: bool) -> None:
    """Raise `InputError` for the first thing in the task that is wrong."""
    fault = Fault(where)
    if not called and task.evaluator.function is None and not task.evaluator.command:
        fault.missing("evaluate.command", 'a command such as "python3 score.py --seed {seed}"')
    parts = (_about, _evaluator, _metric, _budget, _seeds, _paths, _settings, _agents, _levers)
    for part in (*parts, _hypotheses):
        part(task, fault)


def _clean(text: str) -> bool:
    return text.isprintable() and bool(text)


def _about(task: Task, fault: Fault) -> None:
    if not is_name(task.name):
        fault.value("task.name", task.name, NAME_ALLOWED)
    if not task.question.strip() or "\0" in task.question:
        fault.value("task.question", task.question, "the question in words")


def _evaluator(task: Task, fault: Fault) -> None:
    evaluator = task.evaluator
    if evaluator.function is not None and evaluator.command:
        fault.value("evaluate.function", evaluator.function, "either a command or a function")
    if evaluator.function is not None and not _FUNCTION.fullmatch(evaluator.function):
        fault.value("evaluate.function", evaluator.function, '"module:name"')
    for key, command in (("command", evaluator.command), ("check", evaluator.check)):
        if command and (not command[0].strip() or any("\0" in part for part in command)):
            fault.value(f"evaluate.{key}", list(command), "a program and its arguments")
    place = evaluator.container
    if place and (not _CONTAINER.fullmatch(place) or place.split("/")[1] in _SYSTEM):
        allowed = "an absolute path outside the system's folders, such as /app"
        fault.value("evaluate.container", place, allowed)


def _metric(task: Task, fault: Fault) -> None:
    metric = task.metric
    if not metric.name:
        fault.missing(
            "evaluate.metric", 'the name of a number that the evaluator prints ("score")'
        )
    for key, name in (("metric", metric.name), *(("secondary", n) for n in metric.secondary)):
        if not _clean(name) or ":" in name or name != name.strip():
            fault.value(f"evaluate.{key}", name, "a printable name without a colon")
    if len({metric.name, *metric.secondary}) <= len(metric.secondary):
        allowed = "different names, the metric not among them"
        fault.value("evaluate.secondary", list(metric.secondary), allowed)
    if metric.source != "stdout":
        fault.unless_inside("evaluate.read", metric.source)
    _range(task, fault)
    _reward(task, fault)


def _range(task: Task, fault: Fault) -> None:
    low, high = task.metric.low, task.metric.high
    finite = all(end is None or math.isfinite(end) for end in (low, high))
    if not finite or (low is not None and high is not None and low >= high):
        allowed = "[low, high] with low < high; -inf and inf leave an end open"
        fault.value("evaluate.range", [low, high], allowed)


def _reward(task: Task, fault: Fault) -> None:
    metric = task.metric
    scale = metric.reward_scale
    if scale is not None and not (math.isfinite(scale) and scale > 0):
        fault.value("evaluate.reward_scale", scale, "a finite number above 0")
    if metric.reward == "identity" and scale is not None:
        fault.value("evaluate.reward_scale", scale, 'nothing where reward = "identity"')
    if metric.reward == "identity" and metric.direction == "minimize":
        fault.value("evaluate.reward", "identity", '"logistic" where the metric is minimized')


def _budget(task: Task, fault: Fault) -> None:
    budget = task.budget
    limits = (budget.attempts, budget.tokens, budget.usd, budget.seconds)
    if all(limit is None for limit in limits):
        fault.missing("budget", "at least one limit of attempts, tokens, usd, time")
    fault.unless_number("budget.attempts", budget.attempts, "a whole number of at least 1", 1)
    fault.unless_number("budget.tokens", budget.tokens, "a whole number of at least 1", 1)
    tiny = math.nextafter(0, 1)
    fault.unless_number("budget.usd", budget.usd, "a finite number above 0", tiny)
    fault.unless_number("budget.time", budget.seconds, "a time above 0", tiny)
    fault.unless_number("limits.seconds", task.limits.seconds, "a time above 0", tiny)
    fault.unless_number("limits.memory", task.limits.memory, "at least 1MB", 10**6)
    fault.unless_number("limits.output", task.limits.output, "at least 1kB", 1000)
    fault.unless_number("limits.tokens", task.limits.tokens, "a whole number of at least 1", 1)
    fault.unless_number("limits.usd", task.limits.usd, "a finite number above 0", tiny)


def _seeds(task: Task, fault: Fault) -> None:
    seeds = task.seeds
    allowed = f"different whole numbers from 0 to {MAX_SEED}"
    for key, stream, least in (("selection", seeds.selection, 1), ("final", seeds.final, 2)):
        outside = [s for s in stream if not 0 <= s <= MAX_SEED]
        if outside or len(set(stream)) < len(stream) or len(stream) < least:
            fault.value(f"seeds.{key}", list(stream), f"at least {least}, {allowed}")
    first = seeds.confirmation
    fault.unless_number("seeds.confirmation", first, f"0 to {MAX_SEED}", 0, MAX_SEED)
    if shared := sorted(set(seeds.selection) & set(seeds.final)):
        fault.value("seeds.final", shared[0], "a seed that is not in seeds.selection too")
    for key, stream in (("selection", seeds.selection), ("final", seeds.final)):
        if max(stream) >= first:
            fault.value(
                f"seeds.{key}",
                max(stream),
                f"a seed below seeds.confirmation = {first}, whose stream has no end",
            )


def _paths(task: Task, fault: Fault) -> None:
    workspace = task.workspace
    if not workspace.path or "\0" in workspace.path:
        fault.missing("task.workspace", "a folder")
    for key in ("editable", "protected", "hidden", "data"):
        for path in getattr(workspace, key):
            fault.unless_inside(f"task.{key}", path)
    if not workspace.editable:
        fault.value("task.editable", [], "at least one path or glob")
    explicit = workspace.editable != ("**",)
    for key in ("protected", "hidden"):
        for path in getattr(workspace, key):
            if explicit and is_literal(path) and matches(path, workspace.editable):
                fault.value(f"task.{key}", path, "a path that is not in task.editable too")
            if explicit and path in workspace.editable:
                fault.value(f"task.{key}", path, "a path that is not in task.editable too")
    for path in workspace.protected:
        if path in workspace.hidden:
            fault.value("task.hidden", path, "a path that is not in task.protected too")
    for path in task.sandbox.read:
        if not path.startswith("/") or not _clean(path):
            fault.value("sandbox.read", path, "an absolute path, or one that starts with ~")


def _settings(task: Task, fault: Fault) -> None:
    rules = task.coordination
    if not 0 < rules.error_rate < 1:
        fault.value("coordination.error_rate", rules.error_rate, "a number between 0 and 1")
    fault.unless_number("coordination.teams", rules.teams, "a whole number of at least 1", 1)
    fault.unless_number(
        "coordination.stagnation", rules.stagnation, "a whole number, 0 for never", 0
    )
    search = task.search
    if not _clean(search.policy):
        fault.value("search.policy", search.policy, "the name of a policy such as adaptive")
    fault.unless_number("search.children", search.children, "a whole number of at least 1", 1)
    fault.unless_number("search.prune_below", search.prune_below, "a number of at least 0", 0)


def _agents(task: Task, fault: Fault) -> None:
    for name, agent in (("agent", task.agent), ("reflector", task.reflector)):
        if agent.url and not _URL.fullmatch(agent.url):
            fault.value(
                f"{name}.url", agent.url, "an address that begins with http:// or https://"
            )
        if agent.key and not _ENV.fullmatch(agent.key):
            allowed = "the name of the environment variable that holds the key, never the key"
            fault.value(f"{name}.key", "…", allowed)
        fault.unless_number(f"{name}.patience", agent.patience, "a time", 0)
        for part in ("client", "model"):
            if getattr(agent, part) and not _clean(getattr(agent, part)):
                fault.value(f"{name}.{part}", getattr(agent, part), "printable text on one line")
    for model, price in task.prices.items():
        for part in ("input", "output", "cached", "cache_write"):
            found, key = getattr(price, part), f"prices.{shown(model)}.{part}"
            fault.unless_number(key, found, "dollars for a million tokens, at least 0", 0)


def _hypotheses(task: Task, fault: Fault) -> None:
    if not task.hypotheses:
        return
    from outlay.designs.statefile import parse_state  # loads numpy, which takes a while

    state = parse_state(task.hypotheses, f"{fault.where}: task.hypotheses")
    found = task.metric.secondary
    if lacking := [arm for arm in state.arms if arm not in found]:
        allowed = f"every arm of task.hypotheses too, of which {', '.join(lacking)} is missing"
        fault.value("evaluate.secondary", list(found), allowed)


def _levers(task: Task, fault: Fault) -> None:
    names = [lever.name for lever in task.levers]
    for name in names:
        if names.count(name) > 1:
            fault.value(f"levers.{shown(name)}", name, "each lever once")
    owners: dict[str, str] = {}
    for lever in task.levers:
        key = f"levers.{shown(lever.name)}"
        if not _LEVER_NAME.fullmatch(lever.name):
            fault.value(key, lever.name, "1 to 64 letters, digits and _.+:-")
        _options(lever, f"{key}.options", fault, by_name=not task.evaluator.command)
        for effect in {e for option in lever.options for e in _claims(option)}:
            if owners.setdefault(effect, lever.name) != lever.name:
                allowed = f"one lever only; {owners[effect]} sets it too"
                fault.value(f"{key}.options", effect, allowed)


def _options(lever: Lever, key: str, fault: Fault, *, by_name: bool) -> None:
    """Check a lever's options; a function knows them by name, so they need not differ."""
    names = [option.name for option in lever.options]
    if len(names) < 2:
        fault.value(key, names, "at least two options, the first of them the default")
    settings = []
    for option in lever.options:
        here = f"{key}.{shown(option.name)}"
        if not _LEVER_NAME.fullmatch(option.name) or names.count(option.name) > 1:
            fault.value(here, option.name, "a name of letters, digits and _.+:-, each once")
        _option(option, here, fault)
        setting = (option.args, option.env, option.files, option.patch)
        if setting in settings and not by_name:
            fault.value(here, option.name, "options that differ in what they do")
        settings.append(setting)
    if lever.options[0].patch is not None:
        allowed = "no patch: the first option is the program as it stands"
        fault.value(f"{key}.{shown(names[0])}.patch", lever.options[0].patch, allowed)


def _option(option: Option, key: str, fault: Fault) -> None:
    if any("\0" in arg for arg in option.args):
        fault.value(f"{key}.args", list(option.args), "texts without a zero character")
    for name, value in option.env.items():
        if not _ENV.fullmatch(name) or name.startswith("OUTLAY_"):
            fault.value(f"{key}.env", name, "a variable name that does not start with OUTLAY_")
        if "\0" in value:
            fault.value(f"{key}.env.{name}", value, "a text without a zero character")
    for path in (*option.files, *option.files.values()):
        fault.unless_inside(f"{key}.files", path)
    if option.patch is not None:
        fault.unless_inside(f"{key}.patch", option.patch)


def _claims(option: Option) -> set[str]:
    return {*option.env, *option.files}
