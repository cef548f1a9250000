"""Any agent that speaks the Agent Client Protocol over its standard input and output.

The protocol is a conversation, so a small program of ours, `acp_driver.py`, holds it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from outlay.agents.clients.command import CommandReader, filled
from outlay.agents.clients.contract import Invocation, Usage
from outlay.agents.clients.prompts import whole

if TYPE_CHECKING:
    from outlay.agents.clients.contract import Request

_DRIVER, _ASKED = "acp_driver.py", "acp.json"


class Acp:
    """The adapter of an agent that is started by a command line, with its placeholders."""

    name = "acp"
    own = ()

    def invoke(self, request: Request) -> Invocation:
        """Return the command line; raises `ValueError` without a command or a sandbox of ours."""
        if not request.command:
            raise ValueError("agent: found no command line, allowed: one, as in acp:my-agent acp")
        if not request.confined:
            raise ValueError(
                "acp: found no sandbox around the agent, which asks before some steps only; "
                "allowed: bubblewrap, which `outlay doctor` looks for"
            )
        asked = {
            "command": filled(request),
            "prompt": whole(request, schema=True),
            "folder": request.folder,
            "session": request.session,
        }
        driver = Path(__file__).with_name(_DRIVER).read_text(encoding="utf-8")
        command = (sys.executable, "-I", f"{request.home}/{_DRIVER}", f"{request.home}/{_ASKED}")
        environment = {"HOME": request.home} if request.url else {}
        return Invocation(command, environment, {_DRIVER: driver, _ASKED: json.dumps(asked)})

    def reader(self, before: Usage = Usage()) -> CommandReader:  # noqa: B008 - never changed
        """Return a reader of what the driver prints."""
        return CommandReader()

    def recover(self, home: str, session: str = "") -> Usage:
        """Return nothing: the protocol tells usage at the end, and session files are not in it."""
        return Usage(complete=False)
