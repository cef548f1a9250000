"""Write docs/commands.md from the help texts: `uv run python docs/generate_commands.py`."""

from __future__ import annotations

from pathlib import Path

import click

from outlay.cli.app import COMMANDS, outlay

PAGE = Path(__file__).with_name("commands.md")

HEAD = """\
# Commands

Every command has `--json` where it prints data: stdout is data, stderr is talk. Exit codes: 0
done; 1 failed; 2 bad usage or input; 3 budget too small to start, or nothing affordable; 4 nothing
usable came out; 5 store locked or of another version; 130 and 143 by signal.

Written by `docs/generate_commands.py` from the help texts.
"""


def text() -> str:
    """Return the page."""
    parts = [HEAD]
    width = {"terminal_width": 96, "max_content_width": 96}
    with click.Context(outlay, info_name="outlay", **width, **outlay.context_settings) as top:
        for name in COMMANDS:
            command = outlay.get_command(top, name)
            if command is not None:
                parts += _help(command, name, top)
    return "\n".join(parts)


def _help(command: click.Command, name: str, above: click.Context) -> list[str]:
    with click.Context(command, info_name=name, parent=above, terminal_width=96) as context:
        shown = [f"## {context.command_path}\n", f"```\n{command.get_help(context)}\n```\n"]
        if isinstance(command, click.Group):
            for inner in command.list_commands(context):
                found = command.get_command(context, inner)
                if found is not None:
                    shown += _help(found, inner, context)
        return shown


if __name__ == "__main__":
    PAGE.write_text(text())
