"""What a task file, which may be a stranger's, may not do with the user's keys and accounts."""

from __future__ import annotations

import ipaddress
import os
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from outlay.agents import access
from outlay.agents.clients.programs import KNOWN
from outlay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from outlay.agents.access import Access
    from outlay.task import Task


def refuse_unconfirmed(
    task: Task, agent: str, *, url: str = "", named: bool = False, instead: str = "--trust"
) -> None:
    """Raise `InputError` where a key or an account would get where only the task's file says.

    A key may go to this machine, to the provider that its name stands for, and where the user
    says; an account only to the client's own program.

    Args:
        task: The task, with what the command line says in it.
        agent: Who carries plans out.
        url: Address that the command line names; empty for none.
        named: Whether the command line names the agent.
        instead: What the user may do if the file is right.
    """
    if agent == access.LEVERS:
        return
    for found, place, who in _clients(task, agent, named=named):
        if found.key and found.url not in ("", url) and not _usual(found.url, found.key):
            raise InputError(
                f"{place}: found {found.url!r} for the key in {found.key}, which the task's file "
                "alone says, allowed: an address of this machine, the provider that the key is "
                f"named after, or {instead} if that is meant"
            )
        alone = not access.metered(found, os.environ).url
        if who and found.client in KNOWN and found.command and alone:
            raise InputError(
                f"{who}: found the program {found.command[0]!r} for the account of "
                f"{found.client}, which the task's file alone says, allowed: {found.client}, or "
                f"{instead} if that is meant"
            )


def _clients(task: Task, agent: str, *, named: bool) -> Iterator[tuple[Access, str, str]]:
    """Yield each client, whatever policy is taken, with the keys of the file that say so.

    These are that of its address, and that of its program; empty if the file does not name it.
    """
    mine, own = access.named(task.agent, agent), task.reflector
    who = "" if named else "agent.client"
    yield mine, "agent.url", who
    if own.client:
        yield access.named(own, own.client), "reflector.url", "reflector.client"
        return
    shared = mine._replace(url=own.url or mine.url, key=own.key or mine.key)
    yield shared, "reflector.url" if own.url else "agent.url", who


def _usual(url: str, key: str) -> bool:
    """Return whether an address is of this machine, or of the provider that a key belongs to."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return False
    if "@" in url or "\\" in url:
        return False
    if host == "localhost":
        return True
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    usual = {urlsplit(place).hostname for place, name in access.PROVIDERS.values() if name == key}
    return parts.scheme == "https" and port in (None, 443) and host in usual
