"""The command `outlay`. An attempt's process starts here without loading the CLI library."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line and return its exit code."""
    if sys.argv[1:2] == ["attempt"]:
        from outlay.execution.attempt import main as attempt

        return attempt(sys.argv[2:])
    from outlay.cli import main as cli

    return cli()


if __name__ == "__main__":
    sys.exit(main())
