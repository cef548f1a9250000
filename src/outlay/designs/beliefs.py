"""What a run believes about its task's hypotheses, as a fold over its designs and outcomes."""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING, Any, NamedTuple

from outlay.designs.catalogue import cost, paid
from outlay.designs.posteriors import updated
from outlay.designs.statefile import parse_state
from outlay.designs.states import design_of
from outlay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlay.designs.states import ResearchState
    from outlay.events import Child, Design, Evaluation, Rejected


class Experiment(NamedTuple):
    """A design that passed the gate.

    Attributes:
        design: Its arms and seeds.
        cost: What it takes of the first limit.
        attempt: The attempt that carried it out; 0 while none has.
        outcome: What it showed, one number for each arm; empty if it was not read.
        posterior: Probability of each hypothesis after it; empty likewise.
        problem: Why it told nothing, in words.
    """

    design: Design
    cost: float
    attempt: int = 0
    outcome: tuple[float, ...] = ()
    posterior: tuple[float, ...] = ()
    problem: str = ""


class Beliefs:
    """Hypotheses under test. A design takes its cost when it passes, whether or not it runs.

    Attributes:
        first: The research state that the run began with.
        now: The posterior as prior, and what is left of every limit.
        experiments: Designs that passed, by node.
        sent_back: Plans whose design did not.
    """

    def __init__(self, hypotheses: dict[str, Any]) -> None:
        self.first: ResearchState = parse_state(hypotheses, "task.hypotheses")
        self.now = self.first
        self.experiments: dict[int, Experiment] = {}
        self.sent_back: list[Rejected] = []

    @property
    def saved(self) -> float:
        """What the designs that were sent back would have cost, in the first limit's unit."""
        return fsum(rejected.saved for rejected in self.sent_back)

    def propose(self, children: Sequence[Child], rejected: Sequence[Rejected] = ()) -> None:
        """Take in what a reflection came to."""
        self.sent_back += [one for one in rejected if one.design is not None]
        for child in children:
            if child.design is not None:
                design = design_of(self.now, *_parts(child.design))
                self.experiments[child.node] = Experiment(child.design, cost(self.now, design))
                self.now = paid(self.now, design)

    def learn(self, node: int, attempt: int, evaluations: Sequence[Evaluation]) -> str:
        """Take in an attempt that ended; return what its evaluator left unsaid, if anything.

        Args:
            node: What was carried out; nothing happens for a plan without a design.
            attempt: Number of the attempt.
            evaluations: On the selection seeds, with the secondary metrics; none if it failed.
        """
        planned = self.experiments.get(node)
        if planned is None:
            return ""
        design = design_of(self.now, *_parts(planned.design))
        ended = planned._replace(attempt=attempt)
        if not evaluations:
            self.experiments[node] = ended._replace(problem="the attempt has no score")
            return ""
        try:
            outcome = tuple(_mean(evaluations, self.now.arms[arm]) for arm in design.arms)
            self.now = updated(self.now, design, outcome)
        except InputError as error:
            self.experiments[node] = ended._replace(problem=str(error))
            return str(error)
        self.experiments[node] = ended._replace(outcome=outcome, posterior=self.now.prior)
        return ""


def _parts(design: Design) -> tuple[tuple[str, ...], int]:
    return design.arms, design.seeds


def _mean(evaluations: Sequence[Evaluation], arm: str) -> float:
    """Return the mean of the secondary metric that is named as the arm."""
    found = [e.metrics[arm] for e in evaluations if arm in e.metrics]
    if not found:
        raise InputError(f"found no metric {arm!r}, allowed: one number for each arm")
    if len(found) < len(evaluations):
        raise InputError(f"found no metric {arm!r} on some seeds, allowed: one on each")
    return fsum(found) / len(found)
