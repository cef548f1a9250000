"""The command `outlay` and its subcommands, each imported only when it is called."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import click

from outlay.errors import FULL_DISK, MAKE_ROOM, OutlayError

COMMANDS = {
    "init": "Write a task file for a folder.",
    "doctor": "Check a task before anything is spent.",
    "search": "Search over plans under one budget.",
    "ablate": "Find out which component does what.",
    "resume": "Go on with a run.",
    "stop": "Ask a running search to finish.",
    "runs": "List the runs of a store.",
    "show": "Show a run, or one of its attempts.",
    "diff": "Compare the programs of two nodes.",
    "export": "Hand a node's program back as a patch or a branch.",
    "report": "Write the report of a run.",
    "record": "Keep a run as one file.",
    "replay": "Search again from a record.",
    "clean": "Remove what runs left behind.",
    "design": "Plan, score and update experiments by information per cost.",
    "audit": "Tell gains from noise in a log from elsewhere.",
    "bench": "Benchmark the methods themselves.",
    "attempt": "Carry out one attempt (started by the driver).",
}


class Lazy(click.Group):
    """A group whose commands live in modules of this package and load when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command, importing its module."""
        if cmd_name not in COMMANDS or cmd_name == "attempt":
            return None
        command: click.Command = import_module(f"outlay.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="outlay")
def outlay() -> None:
    """Spend research effort where it pays.

    Exit codes: 0 done; 1 failed; 2 bad usage or input; 3 budget too small to start, or nothing
    affordable; 4 nothing usable came out; 5 store locked or of another version; 130 and 143 by
    signal. Running the same command again continues the run.
    """


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code; errors are one line on stderr."""
    try:
        code: Any = outlay.main(arguments, "outlay", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Abort:
        return 130
    except click.ClickException as error:
        return _refused(error)
    except OutlayError as error:
        return _failed(str(error), error.exit_code)
    except BrokenPipeError:
        _stdout_works()
        return 1
    except OSError as error:
        works = _stdout_works()
        place = error.filename or ("disk" if works else "standard output")
        advice = f"; {MAKE_ROOM}" if error.errno in FULL_DISK else ""
        return _failed(f"{place}: {error.strerror or error}{advice}", 1)
    return code if isinstance(code, int) else 0


def _failed(message: str, code: int) -> int:
    from outlay.report.words import printable  # slow to load, and most commands do not fail

    line = " ".join(message.splitlines())
    sys.stderr.write(f"outlay: {printable(line)}\n")
    return code


def _refused(error: click.ClickException) -> int:
    """Say in one line what is wrong with a command line; a group called alone prints its help."""
    message = error.format_message()
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None or message.startswith("Usage:"):
        error.show()
        return error.exit_code
    line = " ".join(message.split()).rstrip(".")
    return _failed(f"{line}; see '{context.command_path} --help'", error.exit_code)


def _stdout_works() -> bool:
    """Whether stdout takes what is left for it; if not, it goes nowhere.

    The interpreter would fail on it once more at its end, and complain.
    """
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True
