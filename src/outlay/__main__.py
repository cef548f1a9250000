"""The command `outlay`. An attempt's process starts here without loading the CLI library."""

from __future__ import annotations

import os
import sys

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""The driver's own matrices are small, and its threads would only disturb the attempts."""


def main() -> int:
    """Run the command line and return its exit code."""
    if sys.argv[1:2] == ["attempt"]:
        from outlay.execution.attempt import main as attempt

        return attempt(sys.argv[2:])
    for name in ONE_THREAD:
        os.environ.setdefault(name, "1")
    from outlay.cli import main as cli

    return cli()


if __name__ == "__main__":
    sys.exit(main())
