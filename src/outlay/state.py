"""The state of a run: what follows from its events. Nothing in here decides or acts.

`State.apply` costs time proportional to the depth of the node concerned, however long the run.
"""

from __future__ import annotations

from math import fsum
from random import Random
from typing import TYPE_CHECKING

from outlay.budget import Charge, Ledger
from outlay.errors import StoreError
from outlay.folding import fold

if TYPE_CHECKING:
    from collections.abc import Iterable

    from outlay import events
    from outlay.agents.effects import Effects
    from outlay.allocation.reward import Reward
    from outlay.allocation.tree import Node, Tree
    from outlay.budget import Kind, Recent
    from outlay.coordination.contest import Contest
    from outlay.coordination.directions import Directions
    from outlay.coordination.interactions import Interactions
    from outlay.designs.beliefs import Beliefs
    from outlay.events import AnyEvent, Entry, Evaluation
    from outlay.records import Judgement, Work
    from outlay.task import Budget, Task
    from outlay.usage import Role, Used

_RESTORE = "restore the store from a copy, or begin another run"


class State:
    """Everything that follows from a run's events so far.

    Attributes:
        started: How the run began; `None` before its first event.
        task: What is researched.
        budget: The limits in force.
        workers: Attempts at once in this sitting.
        sequence: Number of events applied.
        elapsed: Seconds that drivers were alive.
        tree: The plan tree.
        ledger: Charges and reservations.
        works: Unsettled work by id.
        attempts: Attempts launched.
        measurements: Measurements launched.
        reflections: Reflections launched.
        decisions: Reflections and first tries so far; numbers the random streams.
        drafts: First plans that were asked for, those sent back aside.
        ask_again: Reflections whose answer was in part sent back, each to be launched once more.
        nodes: Node of each attempt, index 0 unused.
        files: Manifest hash after a scored attempt, by node; only where it differs from the
            run's own.
        clients: Client of a model by role; empty where there is none.
        model_drafts: Whether a model drafts the plans.
        baseline: Node number of the baseline, `BASELINE` if it is not in the tree.
        baseline_values: Its values by seed.
        incumbent: The scored node with the best selection score, the earliest of equals.
        contest: Champion and challengers.
        directions: Dead ends, ranking, teams.
        effects: What scored configurations say about each lever.
        configurations: Every configuration in the tree, as option names in lever order.
        judgements: How each comparison ended.
        beliefs: What is believed about the task's hypotheses; `None` without any.
        values: Metric by (node, seed), wherever one was measured.
        final: The final measurement's evaluations since the run was last open.
        finals: Final measurements taken up before those.
        baseline_fault: Why the baseline has no score.
        baseline_seconds: Mean seconds of one evaluation of it.
        repeat_differs: Whether one seed gave two values.
        defaults_differ: Whether the levers' defaults change the program, which ends the run.
        problems: What the baseline's checks found, and designs whose outcome could not be
            read, one line each.
        complaint: What was wrong with the last reflection; empty if it brought what was asked for.
        reward: From metric to reward, once the baseline is known.
        recent: What the latest work used, by kind and by limited thing.
        agents: What agents and models used, by role, client, version and model.
        stopping: Whether the user asked to start nothing new.
        ended: How the run ended, `None` while it is open.
    """

    # There from the first event on.
    task: Task
    budget: Budget
    tree: Tree
    baseline: int
    clients: dict[Role, str]
    model_drafts: bool
    contest: Contest
    directions: Directions
    effects: Effects
    configurations: set[tuple[str, ...]]
    interactions: Interactions
    incumbent: Node

    def __init__(self) -> None:
        self.started: events.RunStarted | None = None
        self.workers = 1
        self.sequence = 0
        self.elapsed = 0.0
        self.ledger = Ledger()
        self.works: dict[str, Work] = {}
        self.attempts = 0
        self.measurements = 0
        self.reflections = 0
        self.decisions = 0
        self.drafts = 0
        self.ask_again: list[events.ReflectionLaunched] = []
        self.complaint = ""
        self.nodes: list[int] = [0]
        self.files: dict[int, str] = {}
        self.judgements: list[Judgement] = []
        self.beliefs: Beliefs | None = None
        self.values: dict[tuple[int, int], float] = {}
        self.baseline_values: dict[int, float] = {}
        self.final: list[Evaluation] = []
        self.finals = 0
        self.problems: list[str] = []
        self.baseline_fault: events.MeasurementSettled | None = None
        self.baseline_seconds = 0.0
        self.repeat_differs = False
        self.defaults_differ = False
        self.reward: Reward | None = None
        self.agents: dict[tuple[str, ...], Used] = {}
        self.stopping = False
        self.ended: events.RunEnded | None = None
        self.recent: dict[Kind, dict[str, Recent]] = {"execution": {}, "planning": {}}

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> State:
        """Return the state after the entries of a whole log.

        Raises:
            StoreError: An event is missing, or does not fit those before it.
        """
        state = cls()
        for entry in entries:
            if entry.sequence != state.sequence + 1:
                raise StoreError(f"event {state.sequence + 1} is missing; {_RESTORE}")
            try:
                state.apply(entry.event, entry.elapsed)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                what = f"does not fit those before it ({type(error).__name__}: {error})"
                raise StoreError(f"event {entry.sequence} {what}; {_RESTORE}") from error
        return state

    def apply(self, event: AnyEvent, elapsed: float) -> None:
        """Take in the next event; `elapsed` is its place on the drivers' clock, seconds."""
        self.sequence += 1
        if elapsed > self.elapsed:
            self.elapsed = elapsed
        fold(self, event)

    @property
    def with_levers(self) -> bool:
        """Whether plans are configurations of levers, with the baseline as root."""
        return self.baseline == 0

    @property
    def start(self) -> str:
        """Manifest hash of the files that the run began with; empty if it keeps none."""
        return self.started.files if self.started is not None else ""

    @property
    def drafting(self) -> bool:
        """Whether the root has no plan yet, or one that failed, and a model is to draft one."""
        root = self.tree.root
        return self.model_drafts and (
            root.status == "failed" or (root.status == "open" and root.proposal is None)
        )

    def random(self, purpose: str) -> Random:
        """Return the random stream of the next decision, its own for each purpose."""
        seed = self.started.seed if self.started is not None else 0
        return Random(f"{seed}/{self.decisions}/{purpose}")  # noqa: S311 - a draw, not a secret

    def configuration(self, node: Node) -> dict[str, str]:
        """Return the node's option of every lever."""
        chosen: dict[str, str] = {}
        for above in node.path():
            if above.proposal is not None:
                for lever, option in above.proposal.changes.items():
                    chosen.setdefault(lever, option)
        return {
            lever.name: chosen.get(lever.name, lever.options[0].name) for lever in self.task.levers
        }

    def oriented(self, value: float) -> float:
        """Return the metric value so that higher is better."""
        return self.task.metric.sign * value

    def usual_charge(self) -> Charge:
        """Return what an attempt usually uses of each limited thing; nothing of the others.

        The 90th percentile of the latest attempts, at first the baseline's seconds. All tokens,
        weighted as the limit counts them, are in `tokens_in`.
        """
        usual = {name: recent.high() for name, recent in self.recent["execution"].items()}
        seconds = usual.get("seconds", 0.0)
        if seconds is None:
            seconds = self.baseline_seconds * len(self.task.seeds.selection)
        tokens = round(usual.get("tokens") or 0.0)
        return Charge(tokens_in=tokens, usd=usual.get("usd") or 0.0, seconds=seconds)

    def usual_planning(self) -> Charge:
        """Return what a reflection by a model usually uses, as `usual_charge` does."""
        usual = {name: recent.high() or 0.0 for name, recent in self.recent["planning"].items()}
        return Charge(
            tokens_in=round(usual.get("tokens", 0.0)),
            usd=usual.get("usd", 0.0),
            seconds=usual.get("seconds", 0.0),
        )

    def selection_mean(self, by_seed: dict[int, float]) -> float:
        """Return the mean over the selection seeds, which all have a value; metric units."""
        seeds = self.task.seeds.selection
        return fsum(by_seed[seed] for seed in seeds) / len(seeds)
