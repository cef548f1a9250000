"""What a run believes about its task's hypotheses, as `outlay search --json` prints it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from outlay.designs.beliefs import Beliefs, Experiment
    from outlay.events import Rejected


class Hypothesis(msgspec.Struct, frozen=True, kw_only=True):
    """One explanation, with its probability before the run and now."""

    name: str
    prior: float
    posterior: float


class Experimented(msgspec.Struct, frozen=True, kw_only=True):
    """A design that passed the gate.

    Attributes:
        node: The plan that carries it out.
        attempt: The attempt that carried it out; 0 while none has ended.
        arms: Names of its arms.
        seeds: Seeds of each condition.
        cost: What it takes of the budget.
        outcome: What it showed, by arm; empty if it was not read.
        posterior: Probability of each hypothesis after it, in their order; empty likewise.
        problem: Why it told nothing; empty if it did, or has not ended.
    """

    node: int
    attempt: int
    arms: tuple[str, ...]
    seeds: int
    cost: float
    outcome: dict[str, float]
    posterior: tuple[float, ...]
    problem: str


class SentBack(msgspec.Struct, frozen=True, kw_only=True):
    """A plan whose design did not pass the gate, and what the design would have cost."""

    arms: tuple[str, ...]
    seeds: int
    reason: str
    saved: float


class Believed(msgspec.Struct, frozen=True, kw_only=True):
    """Beliefs, and what was done about them; costs are of the first limit.

    Attributes:
        hypotheses: The explanations, in the task's order.
        unit: What costs count.
        budget: Of all designs of the run.
        left: What is left of it.
        saved: What the designs that were sent back would have cost together.
        experiments: Designs that passed the gate, by node.
        sent_back: Plans whose design did not.
    """

    hypotheses: list[Hypothesis]
    unit: str
    budget: float
    left: float
    saved: float
    experiments: list[Experimented]
    sent_back: list[SentBack]


def believed(beliefs: Beliefs) -> Believed:
    """Return beliefs as data."""
    first, now = beliefs.first, beliefs.now
    pairs = zip(first.hypotheses, first.prior, now.prior, strict=True)
    return Believed(
        hypotheses=[Hypothesis(name=n, prior=p, posterior=q) for n, p, q in pairs],
        unit=first.limits[0].unit,
        budget=first.limits[0].budget,
        left=now.limits[0].budget,
        saved=beliefs.saved,
        experiments=[_experimented(node, one) for node, one in beliefs.experiments.items()],
        sent_back=[found for one in beliefs.sent_back if (found := _sent_back(one))],
    )


def _experimented(node: int, found: Experiment) -> Experimented:
    arms = found.design.arms
    return Experimented(
        node=node,
        attempt=found.attempt,
        arms=arms,
        seeds=found.design.seeds,
        cost=found.cost,
        outcome=dict(zip(arms, found.outcome, strict=True)) if found.outcome else {},
        posterior=found.posterior,
        problem=found.problem,
    )


def _sent_back(rejected: Rejected) -> SentBack | None:
    design = rejected.design
    if design is None:
        return None
    return SentBack(
        arms=design.arms, seeds=design.seeds, reason=rejected.reason, saved=rejected.saved
    )
