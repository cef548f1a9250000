"""The end of what an attempt printed, read from its job folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlay.execution.folder import job_folder

if TYPE_CHECKING:
    from pathlib import Path

_BYTES, _LINES, _COLUMNS = 4000, 25, 400


def log_tail(folder: Path, job_id: str) -> str:
    """Return the last lines of a job's output and of its errors; empty where none is kept.

    Args:
        folder: The run's folder.
        job_id: Id of the try, such as `a12.1`.
    """
    job = job_folder(folder, job_id)
    parts = []
    for name, title in (("out.txt", ""), ("err.txt", "stderr:\n")):
        text = _tail(job / name)
        if any(line and not line.startswith("== ") for line in text.splitlines()):
            parts.append(title + text)
    return "\n".join(parts)


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _BYTES))
            text = file.read(_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    lines = [line[:_COLUMNS] for line in text.splitlines()]
    kept = lines[size > _BYTES :][-_LINES:]
    return "\n".join((["…"] if len(kept) < len(lines) or size > _BYTES else []) + kept)
