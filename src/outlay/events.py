"""What can happen in a run. A run is the list of these, in order, and nothing else.

Records only: what follows from them is computed by `outlay.state`.
Work in flight has an id: `a12` is attempt 12, `m3` measurement 3 and `r2` reflection 2; each try
of it is numbered.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from outlay.budget import NOTHING, Charge
from outlay.task import Budget

Purpose = Literal["baseline", "confirmation", "final"]
Outcome = Literal["scored", "failed", "interrupted", "infrastructure", "lost"]
Status = Literal["budget", "exhausted", "stopped", "failed"]

ROOT_DRAFT = -1
"""What a reflection is on that drafts the first plan."""


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of the plain records inside events."""


class AgentUse(Record, frozen=True):
    """What a client of a model used, and who says so; tokens and money are in the charge.

    Attributes:
        client: Its name.
        version: Its own version, empty if unknown.
        model: Model that it was told to use; empty if the choice was its own.
        requests: Responses of the model.
        reasoning: Output tokens that were reasoning.
        cache_write: Input tokens that were written to a cache.
        source: Who counted: `proxy`, `stream`, `session`, `told` or `estimate`.
        complete: Whether nothing is missing.
    """

    client: str
    version: str = ""
    model: str = ""
    requests: int = 0
    reasoning: int = 0
    cache_write: int = 0
    source: str = ""
    complete: bool = True


class Design(Record, frozen=True):
    """An experiment that a plan carries out: which arms are run, and with how many seeds each.

    Attributes:
        arms: Names of arms of the task's hypotheses, in their order.
        seeds: Seeds of each condition.
    """

    arms: tuple[str, ...]
    seeds: int


class Rejected(Record, frozen=True):
    """A proposed plan that was sent back before an attempt was spent on it.

    Attributes:
        reason: What was wrong with it, in words.
        design: The design for which the gate sent it back; `None` for a plan that could not be
            used at all.
        saved: Cost that this design would have had, in the unit of the hypotheses' first limit.
    """

    reason: str
    design: Design | None = None
    saved: float = 0.0


class Evaluation(Record, frozen=True):
    """One evaluator run: a value in metric units, or the fault that kept it from being one.

    Attributes:
        node: The node evaluated; 0 is the root, which is the baseline where there are levers.
        seed: Seed, or the number of the repeat where the evaluator takes none.
        value: Metric as measured.
        seconds: Wall clock.
        metrics: Secondary metrics.
        fault: Why there is no value.
        role: `"repeat"` for the second run of one seed, `"bare"` for the program without the
            levers' defaults; both only check the evaluator.
    """

    node: int
    seed: int
    value: float | None = None
    seconds: float = 0.0
    metrics: dict[str, float] = {}
    fault: str = ""
    role: str = ""


class Child(Record, frozen=True):
    """A proposed plan: how it differs from its parent, and what is expected of it.

    Attributes:
        node: Its number in the tree.
        kind: `"plan"` for a reflected child, `"continue"` for one that goes on from its parent,
            `"repeat"` for one that carries its parent's plan out again from the start.
        changes: Lever to option, the modification of the configuration.
        axis: What the modification is about; `None` keeps it out of the dead-end registry.
        direction: Which way along the axis.
        prior: Probability, written before the run, that it improves on its parent.
        hypothesis: What is thought to be true.
        rationale: Why.
        risks: What may go wrong.
        plan: Complete text of the plan, of a first draft only.
        edits: Pairs (search, replace) that turn the parent's plan into this one, where plans are
            not made from levers.
        summary: What differs from the parent, in Markdown.
        design: The experiment that it carries out, which passed the gate; `None` without one.
    """

    node: int
    kind: Literal["plan", "continue", "repeat"] = "plan"
    changes: dict[str, str] = {}
    axis: str | None = None
    direction: str | None = None
    prior: float = 0.5
    hypothesis: str = ""
    rationale: str = ""
    risks: str = ""
    plan: str = ""
    edits: tuple[tuple[str, str], ...] = ()
    summary: str = ""
    design: Design | None = None


class Event(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag=True
):
    """Base of everything that can happen."""


class RunStarted(Event, frozen=True):
    """A run begins.

    Attributes:
        uid: Random text that sets this run apart from every other.
        task: The task as JSON.
        task_hash: Hash of the task, budget aside.
        files: Manifest hash of the workspace.
        dirty: Whether the workspace held uncommitted changes.
        seed: Seed of every random stream of the run.
        agent: Who carries plans out: `levers`, or a client as in `outlay.task.Agent`.
        workers: Attempts at once.
        budget: Limits.
    """

    uid: str
    task: str
    task_hash: str
    files: str
    seed: int
    budget: Budget
    dirty: bool = False
    agent: str = "levers"
    workers: int = 1


class SittingStarted(Event, frozen=True):
    """A driver took the run up.

    Attributes:
        pid: Its process id.
        host: Its machine.
        workers: Attempts at once in this sitting.
    """

    pid: int
    host: str
    workers: int


class BudgetChanged(Event, frozen=True):
    """The limits were changed on resume; an ended run is open again."""

    budget: Budget


class Ticked(Event, frozen=True):
    """The driver was alive; carries nothing but its row's clock."""


class StopRequested(Event, frozen=True):
    """The user asked to start nothing new and to finish."""


class MeasurementLaunched(Event, frozen=True):
    """A batch of evaluations outside an attempt begins.

    Attributes:
        work: `m1`, `m2`, ...
        trial: Which try of it, from 1.
        purpose: What it is for.
        runs: Pairs (node, seed) in the order to evaluate, then `checks`.
        attempt: The challenger's attempt, for a confirmation.
        checks: Evaluations of node 0 that only check the evaluator: (role, seed).
        reserve: Held until it is settled.
    """

    work: str
    trial: int
    purpose: Purpose
    runs: tuple[tuple[int, int], ...]
    attempt: int = 0
    checks: tuple[tuple[str, int], ...] = ()
    reserve: Charge = NOTHING


class MeasurementSettled(Event, frozen=True):
    """A try of a measurement ended.

    Attributes:
        work: Which measurement.
        trial: Which try of it.
        outcome: How it ended.
        reason: One word for a failure.
        detail: One line for people.
        evaluations: What was measured, checks last.
        charge: What it used.
        sandbox: How its process tree was held.
    """

    work: str
    trial: int
    outcome: Outcome
    reason: str = ""
    detail: str = ""
    evaluations: tuple[Evaluation, ...] = ()
    charge: Charge = NOTHING
    sandbox: str = ""


class ScaleFixed(Event, frozen=True):
    """The reward's centre and scale, in metric units, fixed once from the baseline."""

    center: float
    scale: float


class Reflected(Event, frozen=True):
    """A reflection on a node yielded children.

    Attributes:
        node: The node reflected on.
        asked: How many children were asked for.
        children: What came; fewer than asked marks the node exhausted.
        reason: Why fewer came.
        charge: What the reflector used.
    """

    node: int
    asked: int
    children: tuple[Child, ...] = ()
    reason: str = ""
    charge: Charge = NOTHING


class ReflectionLaunched(Event, frozen=True):
    """A client of a model is asked for plans.

    Attributes:
        work: `r1`, `r2`, ...
        trial: Which try of it, from 1.
        node: Node to reflect on; `ROOT_DRAFT` asks for the first plan.
        asked: How many children are asked for.
        problems: What was wrong with those that came last time and are asked for again.
        sent_back: The reflection that they came from; empty without problems.
        reserve: Held until it is settled.
    """

    work: str
    trial: int
    node: int
    asked: int
    problems: tuple[str, ...] = ()
    sent_back: str = ""
    reserve: Charge = NOTHING


class ReflectionSettled(Event, frozen=True):
    """A try of a reflection ended.

    Attributes:
        work: Which reflection.
        trial: Which try of it.
        outcome: `scored` if it answered, and as for attempts otherwise.
        reason: One word for a failure.
        detail: One line for people.
        children: Plans that can be carried out.
        rejected: Those that cannot, or that are not worth an attempt.
        charge: What it used.
        agent: Who says so.
        sandbox: How its process tree was held.
    """

    work: str
    trial: int
    outcome: Outcome
    reason: str = ""
    detail: str = ""
    children: tuple[Child, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    charge: Charge = NOTHING
    agent: AgentUse | None = None
    sandbox: str = ""


class AttemptLaunched(Event, frozen=True):
    """A try of an attempt begins; the attempt's number is claimed by it."""

    attempt: int
    trial: int
    node: int
    reserve: Charge = NOTHING


class AttemptSettled(Event, frozen=True):
    """A try of an attempt ended.

    Attributes:
        attempt: Its number, from 1.
        trial: Which try of it.
        outcome: `scored` and `failed` settle the node; the others do not.
        reason: One word for a failure.
        detail: One line for people.
        evaluations: On the selection seeds.
        files: Manifest hash of the workspace afterwards.
        charge: What it used.
        sandbox: How its process tree was held.
        agent: What its agent's use is known from; `None` without one.
        summary: The agent's last words, shortened.
    """

    attempt: int
    trial: int
    outcome: Outcome
    reason: str = ""
    detail: str = ""
    evaluations: tuple[Evaluation, ...] = ()
    files: str = ""
    charge: Charge = NOTHING
    sandbox: str = ""
    agent: AgentUse | None = None
    summary: str = ""


class Judged(Event, frozen=True):
    """A challenger was promoted or rejected.

    Attributes:
        attempt: The challenger.
        promoted: Whether it is the champion now.
        pairs: Pairs of fresh evaluations spent on it.
        estimate: Gain over the incumbent, positive is better, metric units; `None` without pairs.
        low: Lower end of its interval.
        high: Upper end.
        reason: Why, in one line.
    """

    attempt: int
    promoted: bool
    pairs: int = 0
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""


class RunEnded(Event, frozen=True):
    """Nothing more will start, unless the limits are raised."""

    status: Status
    reason: str = ""


Launch = MeasurementLaunched | ReflectionLaunched | AttemptLaunched
Settled = MeasurementSettled | ReflectionSettled | AttemptSettled

AnyEvent = (
    RunStarted
    | SittingStarted
    | BudgetChanged
    | Ticked
    | StopRequested
    | MeasurementLaunched
    | MeasurementSettled
    | ScaleFixed
    | Reflected
    | ReflectionLaunched
    | ReflectionSettled
    | AttemptLaunched
    | AttemptSettled
    | Judged
    | RunEnded
)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One event in its place in the log.

    Attributes:
        sequence: Place in the run, from 1, without gaps.
        step: Transaction it was written in, from 1.
        at: Wall clock, seconds since 1970; for people only.
        elapsed: Seconds that drivers were alive in this run so far; limits count this.
        event: What happened.
    """

    sequence: int
    step: int
    at: float
    elapsed: float
    event: AnyEvent


_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


def encode(event: AnyEvent) -> bytes:
    """Return the event as JSON. NaN and infinities become null, which `decode` refuses."""
    return _encoder.encode(event)


def decode(body: bytes) -> AnyEvent:
    """Return the event; raises `msgspec.MsgspecError` for anything else."""
    return _decoder.decode(body)
