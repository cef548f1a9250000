"""What a coding agent is doing right now, read from the folder of its job while it works."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from outlay.agents.clients.lines import record, word
from outlay.execution.agent_log import LOG
from outlay.execution.folder import agent_usage, job_folder
from outlay.report.words import many, usd

if TYPE_CHECKING:
    from pathlib import Path

_BYTES = 8000
_DOES = ("message", "tool", "error")


def working(folder: Path, job_id: str) -> str:
    """Return the latest that an agent said or did, and its tokens and money so far; one line.

    Args:
        folder: The run's folder.
        job_id: Id of the try, such as `a12.1`; empty comes back for one without an agent.
    """
    job = job_folder(folder, job_id)
    told = _told(job / LOG)
    # A client with an account of its own is counted by no proxy of ours.
    used = _used(job) or _latest(told, "usage")
    return " · ".join(filter(None, (used, _latest(told, *_DOES))))


def _told(log: Path) -> list[dict[str, Any]]:
    """Return the last things that the client told, the latest first.

    One that is being written is left out, and so is what is none.
    """
    try:
        with open(log, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _BYTES))
            *lines, _ = file.read().split(b"\n")
    except OSError:
        return []
    whole = lines[size > _BYTES :]
    return [
        found for line in reversed(whole) if (found := record(line.decode("utf-8", "replace")))
    ]


def _latest(told: list[dict[str, Any]], *kinds: str) -> str:
    found = next((t for t in told if word(t, "kind") in kinds and word(t, "text")), {})
    said = word(found, "text")
    return said if not said or "usage" in kinds else f"{word(found, 'kind')}: {said}"


def _used(job: Path) -> str:
    used = agent_usage(job)
    if not used:
        return ""
    into = used.get("tokens_in", 0) + used.get("tokens_cached", 0)
    words = [many(into, "token") + " in", f"{used.get('tokens_out', 0):,} out"]
    if used.get("usd"):
        words.append(usd(used["usd"]))
    return ", ".join(words)
