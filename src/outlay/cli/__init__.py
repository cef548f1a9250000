"""The command line; each module holds one command and is imported when it is called."""

from __future__ import annotations


def main() -> int:
    """Run the command line and return its exit code."""
    from outlay.cli.app import main as run

    return run()
