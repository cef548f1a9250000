"""Who says what to try next: the seam between the loop and a rule or a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlay.bench.coordination.objective import Objective, Point

Avoid = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Champion:
    """The best point so far, the metric it is believed to have, and the experiment it came from.

    The start is experiment -1.
    """

    point: Point
    metric: float
    experiment: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One move along one axis.

    Attributes:
        axis: One of the axes offered.
        direction: One of its directions.
        rationale: Why, for people.
        fallback: Why a rule had to stand in for the proposer; empty if it did not.
    """

    axis: str
    direction: str
    rationale: str = ""
    fallback: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One finished experiment; `delta` is measured against the champion of that moment."""

    proposal: Proposal
    point: Point
    metric: float
    delta: float
    improved: bool


@dataclass(slots=True)
class Board:
    """What all teams see: the champion and the append-only log.

    Attributes:
        champion: The best point so far.
        outcomes: All finished experiments.
        ways: Axis to the direction that improved it last.
        tried: Points that were proposed.
    """

    champion: Champion
    outcomes: list[Outcome] = field(default_factory=list)
    ways: dict[str, str] = field(default_factory=dict)
    tried: set[Point] = field(default_factory=set)

    def add(self, outcome: Outcome) -> None:
        """Append an outcome; one that improved becomes champion."""
        self.tried.add(outcome.point)
        if outcome.improved:
            self.champion = Champion(
                point=outcome.point, metric=outcome.metric, experiment=len(self.outcomes)
            )
            self.ways[outcome.proposal.axis] = outcome.proposal.direction
        self.outcomes.append(outcome)


class Proposer(Protocol):
    """The only thing that the loop knows of whoever proposes.

    A proposal names one of `axes` (never empty). Pairs (axis, direction) in `avoid` are retired;
    a faithful proposer keeps clear of them if it can.
    """

    def propose(
        self, board: Board, axes: Sequence[str], proposer: int, avoid: Avoid = frozenset()
    ) -> Proposal:
        """Return the next move for team number `proposer`."""


class RuleBased:
    """The paper's rule: the axes in turn, in the direction that improved them last."""

    def propose(
        self, board: Board, axes: Sequence[str], proposer: int, avoid: Avoid = frozenset()
    ) -> Proposal:
        """Return a step along the axis whose turn it is, at first towards 0."""
        axis = axes[len(board.outcomes) % len(axes)]
        towards = "-" if board.champion.point[axis_index(axis)] > 0 else "+"
        direction = board.ways.get(axis, towards)
        other = "+" if direction == "-" else "-"
        if (axis, direction) in avoid and (axis, other) not in avoid:
            return Proposal(axis=axis, direction=other, rationale="the other way is retired")
        return Proposal(axis=axis, direction=direction, rationale="its turn")


class Foremost:
    """A rule for any landscape: the first axis on offer with a move that was not made yet.

    It takes the order of axes at its word, so that ranking decides what is tried first. The
    direction that improved the axis last comes first. When every open move was made before, it
    repeats them in turn.
    """

    def __init__(self, objective: Objective) -> None:
        self._objective = objective

    def propose(
        self, board: Board, axes: Sequence[str], proposer: int, avoid: Avoid = frozenset()
    ) -> Proposal:
        """Return the first new move, axis by axis as offered."""
        for axis in axes:
            for direction in self._open_ways(board, axis, avoid):
                if self._goal(board, axis, direction) not in board.tried:
                    return Proposal(axis=axis, direction=direction, rationale="new")
        moves = [(axis, way) for axis in axes for way in self._open_ways(board, axis, avoid)]
        axis, direction = moves[len(board.outcomes) % len(moves)]
        return Proposal(axis=axis, direction=direction, rationale="nothing new is left")

    def _open_ways(self, board: Board, axis: str, avoid: Avoid) -> list[str]:
        """Return the directions that lead elsewhere, the one that improved the axis last first."""
        here = board.champion.point
        ways = [
            direction
            for direction in self._objective.directions
            if (axis, direction) not in avoid and self._goal(board, axis, direction) != here
        ]
        return sorted(ways, key=lambda way: way != board.ways.get(axis))

    def _goal(self, board: Board, axis: str, direction: str) -> Point:
        return self._objective.moved(board.champion.point, axis_index(axis), direction)


def axis_name(index: int) -> str:
    """Return the name of an axis."""
    return f"x{index}"


def axis_index(name: str) -> int:
    """Return the place of an axis."""
    return int(name[1:])
