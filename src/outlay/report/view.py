"""Everything that a report is written from, gathered beforehand so that writing it is pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from outlay.report.history import History

if TYPE_CHECKING:
    from collections.abc import Mapping

    from outlay.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A run as its report sees it.

    Attributes:
        run: Its name.
        state: Its state.
        history: Its course.
        logs: End of the output of each try, by id of the job.
        patch: What the champion changes of the program's files; empty where it changes none.
        versions: What is needed to run it again: (name, version).
    """

    run: str
    state: State
    history: History = field(default_factory=History)
    logs: Mapping[str, str] = field(default_factory=dict)
    patch: str = ""
    versions: tuple[tuple[str, str], ...] = ()
