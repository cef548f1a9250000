"""A Harbor task folder, as the tables of a task file, and what of it is not honoured.

task.toml        limits and needs of a container
instruction.md   the question
environment/     what the container starts with
tests/test.sh    the verifier
solution/        of no use here
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from outlay import _tasktext
from outlay._taskcheck import NAME_ALLOWED, is_name
from outlay.errors import InputError, bad_value

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE, INSTRUCTION, VERIFIER, DOCKERFILE = (
    *("task.toml", "instruction.md", "tests/test.sh", "environment/Dockerfile"),
)
ATTEMPTS = 25
"""The limit of the paper's runs on such tasks (PrimeScientist, section 4)."""

VERIFIER_SECONDS = 600.0
"""Harbor's own default."""

_WORKSPACE = "/app"
_HIDDEN = (FILE, "tests", "solution", DOCKERFILE)
_HONOURED = (
    *("version", "schema_version", "task.name", "agent.timeout_sec", "verifier.timeout_sec"),
    *("environment.memory_mb", "environment.memory", "environment.gpus", "environment.workdir"),
    *("environment.allow_internet", "environment.network_mode"),
)
_FOR_PEOPLE = ("metadata", "optimization", "source", "task", "solution")
"""Tables and keys that say something about the task or are for runs that Outlay does not make."""

_NO_USER = "commands run as whoever started Outlay"
_ONE_NETWORK = "agent and verifier have the network of environment, or none"
_NOT_HONOURED = {
    "agent.user": _NO_USER,
    "verifier.user": _NO_USER,
    "agent.network_mode": _ONE_NETWORK,
    "agent.allowed_hosts": _ONE_NETWORK,
    "verifier.network_mode": _ONE_NETWORK,
    "verifier.allowed_hosts": _ONE_NETWORK,
    "environment.allowed_hosts": "a list of hosts cannot be kept to, so there is no network",
    "environment.build_timeout_sec": "nothing is built",
    "environment.cpus": "cores are not limited, libraries are told to use cores / workers threads",
    "environment.docker_image": "no image is run, the programs of this machine are used",
    "environment.gpu_types": "any GPU of this machine will do",
    "environment.skills_dir": "the agent gets no skills",
    "environment.storage": "disk space is not limited",
    "environment.storage_mb": "disk space is not limited",
}
"""Keys without which a task still means the same; each is named to the user, with this reason."""

_CANNOT = {
    "artifacts": "no artifacts",
    "environment.env": "no variables: set them in tests/test.sh",
    "environment.healthcheck": "no health check",
    "environment.mcp_servers": "no MCP servers",
    "multi_step_reward_strategy": "a task of one step",
    "steps": "a task of one step",
    "verifier.collect": "no collect hooks",
    "verifier.env": "no variables: set them in tests/test.sh",
    "verifier.environment": "a verifier in the task's own environment",
    "verifier.environment_mode": '"shared"',
}
"""Keys that change what a task means and that Outlay cannot honour."""

_INSTALLS = re.compile(r"\b(apk|apt-get|apt|conda|curl|dnf|npm|pip3? install|uvx|wget|yum)\b")


def is_harbor(folder: Path) -> bool:
    """Return whether the folder holds a Harbor task."""
    return (folder / FILE).is_file() and any(
        (folder / name).exists() for name in (INSTRUCTION, VERIFIER, "steps")
    )


def defaults(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the tables that the task stands for.

    Raises:
        InputError: The task needs what Outlay cannot do, or a part of it is missing.
    """
    where = str(folder / FILE)
    given = _tasktext.document(_tasktext.text(folder / FILE), where)
    _refuse(given, folder, where)
    environment = given.get("environment", {})
    return {
        "task": {
            "name": _name(given, folder, where),
            "question": _tasktext.text(folder / INSTRUCTION),
            "protected": [INSTRUCTION],
            "hidden": [path for path in _HIDDEN if (folder / path).exists()],
        },
        "evaluate": {
            "command": f"bash /{VERIFIER}",
            "container": environment.get("workdir") or _workdir(folder),
            "metric": "reward",
            "direction": "maximize",
            "range": [0, 1],
            "reward": "identity",
            # AutoLab's verifiers leave what they measured under this name.
            "secondary": ["metric"] if "optimization" in given else [],
            # Many verifiers time something, so work beside them changes the score.
            "noise": "machine",
        },
        "limits": _limits(given, where),
        "budget": {"attempts": ATTEMPTS},
        "sandbox": {"network": _network(environment), "gpu": bool(environment.get("gpus"))},
    }


def notes(folder: Path) -> list[str]:
    """Return what of the task Outlay does not honour, and what it does in its place."""
    given = _tasktext.document(_tasktext.text(folder / FILE), str(folder / FILE))
    found = [
        f"{key}: {_NOT_HONOURED.get(key, 'unknown to Outlay, ignored')}"
        for key, value in _keys(given)
        if key not in (*_HONOURED, *_CANNOT) and key.split(".")[0] not in _FOR_PEOPLE
    ]
    limited = "agent.timeout_sec" in dict(_keys(given))
    found.append(
        "agent.timeout_sec, verifier.timeout_sec: their sum limits each attempt"
        if limited
        else "agent.timeout_sec: not given, so attempts have no limit of time"
    )
    environment = given.get("environment", {})
    if not {"allow_internet", "network_mode"} & environment.keys():
        found.append("environment.allow_internet: not given, so there is no network")
    if (folder / DOCKERFILE).exists():
        seen = environment.get("workdir") or _workdir(folder)
        found.append(
            f"{DOCKERFILE}: not built; what lies beside it is seen in {seen}, and the programs "
            "are those of this machine"
        )
    if match := _INSTALLS.search(_tasktext.text(folder / VERIFIER)):
        found.append(
            f"{VERIFIER}: seems to install something ({match[0]}), which fails in the sandbox and "
            "may look like a reward of 0; install it on this machine and take the line out"
        )
    return found


def _keys(given: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield every key of the document and its value; those of a table after a dot."""
    for name, value in given.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{key}", inner) for key, inner in value.items())
        else:
            yield name, value


def _refuse(given: dict[str, Any], folder: Path, where: str) -> None:
    """Raise `InputError` for the first thing that Outlay cannot honour."""
    for name in ("agent", "environment", "task", "verifier"):
        if not isinstance(given.get(name, {}), dict):
            raise bad_value(where, name, given[name], "a table")
    version = given.get("schema_version", given.get("version", "1.0"))
    if not str(version).startswith("1."):
        raise bad_value(where, "schema_version", version, "a version that starts with 1.")
    for key, value in _keys(given):
        if key in _CANNOT and value and (key, value) != ("verifier.environment_mode", "shared"):
            raise bad_value(where, key, value, _CANNOT[key])
    for name in (INSTRUCTION, VERIFIER):
        if not (folder / name).is_file():
            raise InputError(f"{folder}: found no {name}, allowed: a Harbor task with one")
    compose = folder / "environment/docker-compose.yaml"
    if compose.exists():
        raise InputError(f"{compose}: found several services, allowed: an environment of one")


def _name(given: dict[str, Any], folder: Path, where: str) -> str:
    """Return the task's name, without the organisation before it; else the folder's."""
    named = given.get("task", {}).get("name", folder.resolve().name)
    name = str(named).rpartition("/")[2]
    if not is_name(name):
        raise bad_value(where, "task.name", named, NAME_ALLOWED)
    return name


def _workdir(folder: Path) -> str:
    """Return the absolute folder that the Dockerfile's commands end in, or Harbor's usual one."""
    file = folder / DOCKERFILE
    found = re.findall(r"^\s*WORKDIR\s+(\S+)", _tasktext.text(file), re.M) if file.exists() else []
    plain = [path.rstrip("/") for path in found if path.startswith("/") and "$" not in path]
    return plain[-1] if plain else _WORKSPACE


def _limits(given: dict[str, Any], where: str) -> dict[str, Any]:
    seconds = {name: given.get(name, {}).get("timeout_sec") for name in ("agent", "verifier")}
    memory = given.get("environment", {}).get("memory_mb")
    named = {f"{k}.timeout_sec": v for k, v in seconds.items()} | {"environment.memory_mb": memory}
    for key, value in named.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise bad_value(where, key, value, "a number")
    limits: dict[str, Any] = {}
    if seconds["agent"] is not None:
        verifier = seconds["verifier"]
        limits["seconds"] = seconds["agent"] + (VERIFIER_SECONDS if verifier is None else verifier)
    if memory is not None:
        limits["memory"] = memory * 2**20
    elif older := given.get("environment", {}).get("memory"):
        limits["memory"] = f"{older}iB"  # "2G" is binary there
    return limits


def _network(environment: dict[str, Any]) -> bool:
    mode = environment.get("network_mode")
    if mode is None:
        return bool(environment.get("allow_internet", False)) and not environment.get(
            "allowed_hosts"
        )
    return bool(mode == "public")
