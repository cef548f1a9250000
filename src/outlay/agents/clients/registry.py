"""The client that a name stands for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outlay.agents.clients.contract import Client

_BUILT_IN = {
    "codex": "Codex",
    "claude": "Claude",
    "opencode": "OpenCode",
    "command": "Command",
    "acp": "Acp",
    "model": "Model",
}
NAMES = tuple(_BUILT_IN)
"""Clients that come with Outlay, each in a module of its name."""

GROUP = "outlay.clients"
"""Entry points of other packages: a callable without arguments that returns a `Client`."""


def by_name(name: str) -> Client:
    """Return the client; raises `ValueError` with the names there are if it is none of them.

    Only the module of that client is loaded; packages are asked for names that are not built in.
    """
    if name in _BUILT_IN:
        module = importlib.import_module(f"outlay.agents.clients.{name}")
        client: Client = getattr(module, _BUILT_IN[name])()
        return client
    from importlib.metadata import entry_points

    others = {point.name: point for point in entry_points(group=GROUP)}
    if name not in others:
        raise ValueError(f"agent: found {name!r}, allowed: {', '.join((*NAMES, *others))}")
    found: Client = others[name].load()()
    return found
