"""Records that the state of a run is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outlay.events import Judged, Launch

BASELINE = -1
"""The baseline where it is not a node of the tree, because plans come from a model."""

LOST_TRIES = 3
"""Tries that may be lost before the work is given up."""

BLAMELESS = ("ended", "key", "provider")
"""Reasons for which a try ends without counting as lost."""


@dataclass(slots=True, kw_only=True)
class Work:
    """Work that is not settled: in flight, or to be tried again.

    Attributes:
        launch: The event of its latest try.
        in_flight: Whether that try still runs, as far as the log knows.
        lost: Tries that died or met a fault of the machine; those that were asked to end, or
            never began, do not count.
    """

    launch: Launch
    in_flight: bool = True
    lost: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How the comparison of an attempt with the incumbent of its time ended."""

    attempt: int
    node: int
    incumbent: int
    event: Judged
