"""What is run for a configuration: arguments, variables, swapped files and patches."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from outlay.execution.job import Subject

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from outlay.task import Lever, Option


def chosen(levers: Sequence[Lever], config: Mapping[str, str]) -> list[Option]:
    """Return the chosen option of every lever, in lever order."""
    return [
        next(option for option in lever.options if option.name == config[lever.name])
        for lever in levers
    ]


def subject(levers: Sequence[Lever], config: Mapping[str, str], label: str, files: str) -> Subject:
    """Return the workspace to lay out for a configuration.

    Args:
        levers: The task's levers; arguments and patches are applied in their order.
        config: Lever to option, complete.
        label: Short name for people.
        files: Hash of the manifest of the starting files.
    """
    options = chosen(levers, config)
    return Subject(
        label=label,
        files=files,
        swaps={target: source for option in options for target, source in option.files.items()},
        patches=tuple(option.patch for option in options if option.patch is not None),
        args=tuple(arg for option in options for arg in option.args),
        env={name: value for option in options for name, value in option.env.items()},
        config={lever.name: config[lever.name] for lever in levers},
    )


def described(option: Option) -> str:
    """Return what the option does, in one line of Markdown."""
    parts = [f"`{shlex.join(option.args)}`"] if option.args else []
    parts += [f"`{name}={shlex.quote(value)}`" for name, value in option.env.items()]
    parts += [f"`{target}` from `{source}`" for target, source in option.files.items()]
    parts += [f"patch `{option.patch}`"] if option.patch else []
    return ", ".join(parts) or "the program as it stands"
