"""One question to a model through our adapter, carried out as the process of an attempt would."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from outlay.agents.clients.contract import Ending, Request
from outlay.agents.clients.model import Model

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "sk-very-secret-7"


def ask_model(
    folder: Path,
    url: str,
    *,
    prompt: str = "What next?",
    form: str = "",
    model: str = "fake-1",
    timeout: float = 120,
) -> Ending:
    """Return how it ended; the key must show nowhere but in the environment."""
    request = Request(
        prompt=prompt,
        folder=str(folder),
        home=str(folder),
        model=model,
        url=url,
        key=SECRET,
        schema=form,
    )
    made = Model().invoke(request)
    for path, text in made.files.items():
        (folder / path).write_text(text, encoding="utf-8")
    assert SECRET not in " ".join(made.command) + "".join(made.files.values())
    done = subprocess.run(
        made.command,
        env={"PATH": os.environ["PATH"], **made.environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=timeout,
        text=True,
    )
    assert SECRET not in done.stdout + done.stderr
    reader = Model().reader()
    for line in done.stdout.splitlines():
        reader.line(line)
    return reader.ending(done.returncode, done.stderr)
