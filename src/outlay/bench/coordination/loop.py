"""The coordination loop: propose, measure, record, and share out the axes again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from outlay.bench.coordination.objective import SIGNS
from outlay.bench.coordination.proposers import (
    Board,
    Champion,
    Outcome,
    Proposal,
    axis_index,
    axis_name,
)
from outlay.coordination.directions import Directions
from outlay.coordination.interactions import Interactions, Move, Step
from outlay.coordination.stagnation import Stagnation

if TYPE_CHECKING:
    from outlay.bench.coordination.objective import Objective, Point
    from outlay.bench.coordination.proposers import Proposer
    from outlay.bench.coordination.referees import Referee
    from outlay.task import Coordination


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How long a search lasts and what is switched on beyond the published mechanisms.

    Attributes:
        experiments: Most experiments.
        evaluations: Most evaluations of the objective; an experiment under way may cross it.
        reordering: Order a team's axes by effect before each experiment, not only when dealt.
        reopening: Reopen dead ends that interact with what the champion changed.
        refreshing: Measure the champion again when the search stagnates, and start afresh from
            it if its value has moved.
    """

    experiments: int = 60
    evaluations: int | None = None
    reordering: bool = False
    reopening: bool = False
    refreshing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The champion after an experiment, and the evaluations spent by then."""

    metric: float
    clean: float
    evaluations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What a search did.

    Attributes:
        board: Champion and log at the end.
        moments: The champion after each experiment.
        redundant: Outcomes in a direction that was retired at that moment, or would have been.
        retired: Directions retired at the end; 0 with the registry off.
        false: Promotions of a point that was not better.
        reorganisations: Times that axes were dealt again.
    """

    board: Board
    moments: tuple[Moment, ...]
    redundant: int
    retired: int
    false: int
    reorganisations: int

    @property
    def confirmed(self) -> int:
        """Promotions."""
        return sum(outcome.improved for outcome in self.board.outcomes)

    def first_at(self, clean: float) -> int | None:
        """Return the number (from 1) of the first experiment with a champion that good."""
        reached = (i for i, moment in enumerate(self.moments, 1) if moment.clean >= clean)
        return next(reached, None)


def search(
    objective: Objective,
    proposer: Proposer,
    referee: Referee,
    settings: Coordination,
    plan: Plan,
) -> Trace:
    """Return the trace of one search; it ends early when every direction is retired."""
    run = _Search(objective, proposer, referee, settings, plan)
    while run.goes_on and run.experiment():
        pass
    return run.trace()


class _Search:
    """One search under way."""

    def __init__(
        self,
        objective: Objective,
        proposer: Proposer,
        referee: Referee,
        settings: Coordination,
        plan: Plan,
    ) -> None:
        self.objective, self.proposer, self.referee = objective, proposer, referee
        self.settings, self.plan = settings, plan
        self.axes = tuple(axis_name(i) for i in range(len(objective.start)))
        self.directions = Directions(dict.fromkeys(self.axes, objective.directions), settings)
        self.interactions = Interactions()
        self.stagnation = Stagnation(settings.stagnation)
        metric = referee.start(objective.start)
        self.board = Board(Champion(point=objective.start, metric=metric, experiment=-1))
        self.interactions.record(self._configuration(objective.start), metric)
        self.moments: list[Moment] = []
        self.false = 0

    @property
    def time(self) -> int:
        return len(self.board.outcomes)

    @property
    def goes_on(self) -> bool:
        limit = self.plan.evaluations
        afford = limit is None or self.referee.meter.evaluations < limit
        return afford and self.time < self.plan.experiments

    def experiment(self) -> bool:
        """Carry out one experiment; `False` if no axis is left."""
        axes = self._axes_on_offer()
        if not axes:
            return False
        team = self.time % self.settings.teams
        retired = self.directions.dead_ends.retired if self.settings.dead_ends else frozenset()
        proposal = self.proposer.propose(self.board, axes, team, retired)
        before, time = self.board.champion, self.time
        point = self.objective.moved(before.point, axis_index(proposal.axis), proposal.direction)
        metric, delta, improved = self.referee.assess(point, before, time)
        self.board.add(
            Outcome(proposal=proposal, point=point, metric=metric, delta=delta, improved=improved)
        )
        self._record(proposal, before.point, delta, improved)
        if improved:
            better = self.objective.clean(point, time) > self.objective.clean(before.point, time)
            self.false += not better
        champion = self.board.champion
        self.moments.append(
            Moment(
                metric=champion.metric,
                clean=self.objective.clean(champion.point, time),
                evaluations=self.referee.meter.evaluations,
            )
        )
        return True

    def _axes_on_offer(self) -> list[str]:
        """Return the axes of the team whose turn it is, all if none of its own can move."""
        directions = self.directions
        hand = directions.order if self.plan.reordering else directions.hand
        axes = hand(self.time)
        if self.objective.directions == SIGNS:
            return axes
        mine = [axis for axis in axes if self._can_move(axis)]
        return mine or [axis for axis in self.axes if self._can_move(axis)]

    def _can_move(self, axis: str) -> bool:
        """Whether an axis of options has one that is open and not the champion's own."""
        here = self.board.champion.point
        return any(
            self.objective.moved(here, axis_index(axis), direction) != here
            for direction in self.objective.directions
            if not self.directions.is_retired(axis, direction)
        )

    def _record(self, proposal: Proposal, before: Point, delta: float, improved: bool) -> None:
        outcome = self.board.outcomes[-1]
        self.interactions.record(self._configuration(outcome.point), outcome.metric)
        self.directions.record_effect(proposal.axis, delta)
        self.directions.record_outcome(proposal.axis, proposal.direction, improved)
        if improved and self.plan.reopening:
            self._reopen(proposal, before)
        if self.stagnation.record(improved) and self.plan.refreshing:
            self._refresh()

    def _reopen(self, proposal: Proposal, before: Point) -> None:
        """Reopen what interacts with the step that has just improved the champion."""
        sd = self.referee.sd
        if sd is None:
            return
        change = self._change(before, proposal.axis, proposal.direction)
        for axis, direction in sorted(self.directions.dead_ends.retired):
            other = self._change(self.board.champion.point, axis, direction)
            if axis != proposal.axis and self.interactions.excludes_zero(change, other, sd):
                self.directions.dead_ends.reopen(axis, direction)

    def _refresh(self) -> None:
        """Measure the champion again; if its value has moved, what was learnt no longer holds."""
        self.stagnation = Stagnation(self.settings.stagnation)
        if self.referee.refresh(self.board.champion.point, self.time):
            self.board.tried.clear()
            for axis, direction in self.directions.dead_ends.retired:
                self.directions.dead_ends.reopen(axis, direction)

    def _change(self, point: Point, axis: str, direction: str) -> Move | Step:
        place = axis_index(axis)
        after = self.objective.moved(point, place, direction)[place]
        if self.objective.directions == SIGNS:
            return Step(axis, after - point[place])
        return Move(axis, point[place], after)

    def _configuration(self, point: Point) -> dict[str, float]:
        return dict(zip(self.axes, point, strict=True))

    def trace(self) -> Trace:
        dead_ends = self.directions.dead_ends
        return Trace(
            board=self.board,
            moments=tuple(self.moments),
            redundant=dead_ends.redundant,
            retired=len(dead_ends.retired) if self.settings.dead_ends else 0,
            false=self.false,
            reorganisations=self.directions.reorganisations,
        )
