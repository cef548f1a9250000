"""Texts and TOML documents of a task, with errors that say what was found instead."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

from outlay.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def text(file: Path) -> str:
    """Return the text of a file, without a byte order mark.

    What is no regular file is refused: reading a pipe that nobody writes to never ends.
    """
    if file.exists() and not (file.is_file() or file.is_dir()):
        raise InputError(f"{file}: found a pipe, socket or device, allowed: a regular file")
    try:
        return file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{file}: found no such file, allowed: a task file") from None
    except OSError as error:
        raise InputError(f"{file}: found {error.strerror}, allowed: a readable file") from None
    except UnicodeDecodeError as error:
        found = f"byte 0x{error.object[error.start]:02x} at offset {error.start}"
        raise InputError(f"{file}: found {found}, allowed: UTF-8 text") from None


def document(text: str, where: str) -> dict[str, Any]:
    """Return what a TOML text holds; `where` is what messages call it."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InputError(f"{where}: found values nested too deep, allowed: a task file") from None
    except ValueError as error:
        raise InputError(f"{where}: found no valid TOML: {error}, allowed: TOML 1.0") from None
