"""Where the program of a client is, which version it has, and which it must have.

A client from npm is a small script that starts the real program, and a signal to the script leaves
that alive; so the real program beside it is preferred. Codex and Claude Code come from PyPI too.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

Version = tuple[int, ...]


class Known(NamedTuple):
    """A client's program.

    Attributes:
        oldest: Oldest version that is known to work.
        native: Globs of the real program inside `node_modules`, best first.
        wheel: Package on `sys.path` that has it, and the path in there; empty if none has.
        install: What to do where it is missing.
    """

    oldest: Version
    native: tuple[str, ...]
    wheel: tuple[str, str]
    install: str


KNOWN = {
    "codex": Known(
        oldest=(0, 163, 0),
        native=("@openai/codex-*/vendor/*/bin/codex",),
        wheel=("codex_cli_bin", "bin/codex"),
        install="npm install -g @openai/codex, or pip install openai-codex",
    ),
    "claude": Known(
        oldest=(2, 1, 197),
        native=("@anthropic-ai/claude-code-*/claude",),
        wheel=("claude_agent_sdk", "_bundled/claude"),
        install="npm install -g @anthropic-ai/claude-code, or pip install claude-agent-sdk",
    ),
    "opencode": Known(
        oldest=(1, 18, 33),
        native=("opencode-*/bin/opencode",),
        wheel=("", ""),
        install="npm install -g opencode-ai",
    ),
}


def find(name: str) -> str:
    """Return the path of a client's program, on `PATH` or in a Python package.

    Raises `ValueError` with what to install if there is none.
    """
    # Not at the top: an attempt is told where its client is, and these take longer than the rest.
    import importlib.util
    import shutil

    known = KNOWN[name]
    if found := shutil.which(name):
        real = os.path.realpath(found)
        # A link to a program of another name may be how that program tells what to be.
        plain = real if Path(real).stem == name else found
        return _native(real, known) or plain
    package, inside = known.wheel
    spec = importlib.util.find_spec(package) if package else None
    if spec is not None and spec.origin is not None:
        program = Path(spec.origin).parent / inside
        if os.access(program, os.X_OK):
            return str(program)
    raise ValueError(f"{name}: found no such program on PATH, allowed: {known.install}")


def needed(program: str) -> tuple[str, ...]:
    """Return what must be seen for a program to run: all of `node_modules`, else itself."""
    import shutil

    found = shutil.which(program)
    if found is None:
        return ()
    places = (os.path.abspath(found), os.path.realpath(found))
    return tuple(dict.fromkeys(_around(place) for place in places))


def _around(place: str) -> str:
    folders = [str(folder) for folder in Path(place).parents if folder.name == "node_modules"]
    return folders[-1] if folders else place


def _native(path: str, known: Known) -> str:
    """Return the real program that a script from npm would start; empty if it is no script."""
    with open(path, "rb") as file:
        if file.read(2) != b"#!":
            return ""
    for folder in Path(path).parents:
        if folder.name == "node_modules":
            for pattern in known.native:
                for program in sorted(folder.glob(pattern), key=lambda p: len(str(p))):
                    if os.access(program, os.X_OK):
                        return str(program)
    return ""


def version(command: tuple[str, ...]) -> str:
    """Return the version that a program prints, such as 0.171.0; empty if it prints none."""
    import subprocess

    try:
        done = subprocess.run(
            [*command, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(rb"\d+\.\d+(\.\d+)*", done.stdout)
    return found[0].decode() if found else ""


def numbers(text: str) -> Version:
    """Return the parts of a version, to compare."""
    return tuple(int(part) for part in text.split(".") if part.isdigit())
