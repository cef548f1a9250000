"""The state of a run as a fold over its events. Nothing in here decides or acts.

`apply` costs time proportional to the depth of the node concerned, whatever the length of the
run.
"""

from __future__ import annotations

from math import fsum
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Any

from msgspec import structs

from outlay import events
from outlay.agents import access
from outlay.allocation.reward import Reward
from outlay.allocation.tree import Tree
from outlay.budget import NOTHING, Charge, Kind, Ledger, Recent
from outlay.coordination.contest import Contest
from outlay.coordination.directions import Directions
from outlay.coordination.interactions import Interactions, reopened
from outlay.errors import StoreError
from outlay.records import Judgement, Work
from outlay.task import from_json
from outlay.usage import ROLES, used_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from outlay.allocation.tree import Node
    from outlay.designs.beliefs import Beliefs
    from outlay.events import AnyEvent, Entry, Evaluation, Launch, Settled
    from outlay.task import Budget, Task
    from outlay.usage import Role, Used

BASELINE = -1
"""The baseline where it is not a node of the tree, because plans come from a model."""

LOST_TRIES = 3
"""Tries that may be lost before the work is given up."""

BLAMELESS = ("ended", "key", "provider")
"""Reasons for which a try ends without counting as lost."""

_RESTORE = "restore the store from a copy, or begin another run"

_RECENT = 256
"""Attempts that the 90th percentile of what one uses is taken over."""


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
        agents: What agents and models used, by role, client, version and model.
        stopping: Whether the user asked to start nothing new.
        ended: How the run ended, `None` while it is open.
    """

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
        self._used: dict[Kind, dict[str, Recent]] = {"execution": {}, "planning": {}}

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
        _HANDLERS[type(event)](self, event)

    # What follows from the state, without keeping it twice.

    @property
    def with_levers(self) -> bool:
        """Whether plans are configurations of levers, with the baseline as root."""
        return self.baseline == 0

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
        usual = {name: recent.high() for name, recent in self._used["execution"].items()}
        seconds = usual.get("seconds", 0.0)
        if seconds is None:
            seconds = self.baseline_seconds * len(self.task.seeds.selection)
        tokens = round(usual.get("tokens") or 0.0)
        return Charge(tokens_in=tokens, usd=usual.get("usd") or 0.0, seconds=seconds)

    def usual_planning(self) -> Charge:
        """Return what a reflection by a model usually uses, as `usual_charge` does."""
        usual = {name: recent.high() or 0.0 for name, recent in self._used["planning"].items()}
        return Charge(
            tokens_in=round(usual.get("tokens", 0.0)),
            usd=usual.get("usd", 0.0),
            seconds=usual.get("seconds", 0.0),
        )

    def _watch_limits(self) -> None:
        for used in self._used.values():
            for name in ("tokens", "usd", "seconds"):
                if getattr(self.budget, name) is not None:
                    used.setdefault(name, Recent(_RECENT))

    def _note_agent(
        self, event: events.AttemptSettled | events.ReflectionSettled, role: Role
    ) -> None:
        if (found := used_by(event, role, self.clients[role])) is not None:
            name = (role, found.client, found.version, found.model)
            self.agents[name] = self.agents[name].plus(found) if name in self.agents else found

    def _note_use(self, kind: Kind, charge: Charge) -> None:
        for name, recent in self._used[kind].items():
            recent.add(getattr(charge, name))

    # Handlers, one for each event.

    def _run_started(self, event: events.RunStarted) -> None:
        self.started = event
        self.task: Task = from_json(event.task)
        self.budget: Budget = event.budget
        self._watch_limits()
        self.workers = event.workers
        search = self.task.search
        self.tree = Tree(children=search.children, prune_below=search.prune_below)
        self.baseline = 0 if event.agent == "levers" else BASELINE
        works = access.executor(self.task, event.agent), access.reflector(self.task, event.agent)
        self.clients: dict[Role, str] = {
            role: who.client if who is not None else ""
            for role, who in zip(ROLES, works, strict=True)
        }
        self.model_drafts = works[1] is not None
        evaluator = self.task.evaluator
        shared = evaluator.noise == "seed" and evaluator.seeded
        self.contest = Contest(self.task.coordination, seeds_decide=shared)
        self.contest.champion = self.baseline
        self.directions = Directions(
            {lever.name: tuple(o.name for o in lever.options) for lever in self.task.levers},
            self.task.coordination,
        )
        if self.with_levers:
            from outlay.agents.effects import Effects  # loads numpy, which takes a while

            self.effects = Effects(self.task.levers, self.task.metric.sign)
        if self.task.hypotheses:
            from outlay.designs.beliefs import Beliefs  # loads numpy, which takes a while

            self.beliefs = Beliefs(self.task.hypotheses)
        self.configurations: set[tuple[str, ...]] = set()
        self.interactions = Interactions()
        self.incumbent: Node = self.tree.root

    def _sitting_started(self, event: events.SittingStarted) -> None:
        self.workers = event.workers
        self.stopping = False
        if self.ended is not None and self.ended.status == "stopped":
            self._open_again()

    def _budget_changed(self, event: events.BudgetChanged) -> None:
        self.budget = event.budget
        self._watch_limits()
        if self.ended is not None and self.ended.status == "budget":
            self._open_again()

    def _open_again(self) -> None:
        self.ended = None
        self.finals += bool(self.final)
        self.final = []

    def _ticked(self, event: events.Ticked) -> None:
        """Only the clock moves, and `apply` has done that."""

    def _stop_requested(self, event: events.StopRequested) -> None:
        self.stopping = True

    def _run_ended(self, event: events.RunEnded) -> None:
        self.ended = event

    def _scale_fixed(self, event: events.ScaleFixed) -> None:
        metric = self.task.metric
        self.reward = Reward(
            identity=metric.reward == "identity",
            sign=metric.sign,
            center=event.center,
            scale=event.scale,
        )
        score = self.selection_mean(self.baseline_values)
        selection = self.task.seeds.selection
        fresh = [v for seed, v in self.baseline_values.items() if seed not in selection]
        self.contest.noise = self.contest.noise.with_group(list(self.baseline_values.values()))
        self.contest.crown(self.baseline, self.oriented(score), [self.oriented(v) for v in fresh])
        if self.with_levers:
            self.tree.score_root(score, self.reward(score))
            self.nodes[0] = 0
            self._record_configuration(self.tree.root, score)

    def _measurement_launched(self, event: events.MeasurementLaunched) -> None:
        if event.trial == 1:
            self.measurements += 1
        if event.purpose == "confirmation" and self.contest.challenge is None:
            self.contest.begin(self.nodes[event.attempt])
        self._launch(event.work, event, event.reserve)

    def _attempt_launched(self, event: events.AttemptLaunched) -> None:
        if event.trial == 1:
            self.attempts += 1
            self.decisions += 1
            self.nodes.append(event.node)
            self.tree.launch(self.tree.nodes[event.node], event.attempt)
        self._launch(f"a{event.attempt}", event, event.reserve)

    def _reflection_launched(self, event: events.ReflectionLaunched) -> None:
        if event.trial == 1:
            self.reflections += 1
            self.decisions += 1
            self.ask_again = [asked for asked in self.ask_again if asked.node != event.node]
            if event.node != events.ROOT_DRAFT:
                self.tree.reflect(self.tree.nodes[event.node], begins=True)
            elif not event.problems:
                self.drafts += 1
        self._launch(event.work, event, event.reserve)

    def _launch(self, work: str, launch: Launch, reserve: Charge) -> None:
        if work in self.works:
            self.works[work].launch, self.works[work].in_flight = launch, True
        else:
            self.works[work] = Work(launch=launch)
        self.ledger.reserve(work, reserve)

    def _settle(self, work: str, kind: Kind, event: Settled) -> None:
        self.ledger.settle(work, kind, event.charge)
        if event.outcome in ("interrupted", "infrastructure"):
            self.works[work].in_flight = False
            self.works[work].lost += event.reason not in BLAMELESS
        else:
            del self.works[work]

    def _measurement_settled(self, event: events.MeasurementSettled) -> None:
        launch = self.works[event.work].launch
        self._settle(event.work, "measurement", event)
        if event.outcome in ("interrupted", "infrastructure"):
            return
        for evaluation in event.evaluations:
            if evaluation.value is not None and not evaluation.role:
                self.values[evaluation.node, evaluation.seed] = evaluation.value
        if isinstance(launch, events.MeasurementLaunched):
            _PURPOSES[launch.purpose](self, event, launch)

    def _baseline_measured(
        self, event: events.MeasurementSettled, launch: events.MeasurementLaunched
    ) -> None:
        plain = [e for e in event.evaluations if not e.role]
        if event.outcome != "scored":
            self.baseline_fault = event
            return
        self.baseline_values = {e.seed: e.value for e in plain if e.value is not None}
        self.baseline_seconds = fmean(e.seconds for e in plain)
        self._check_baseline([e for e in event.evaluations if e.role])

    def _check_baseline(self, checks: Sequence[Evaluation]) -> None:
        """Note what the second run of a seed, and the bare program, say about the evaluator."""
        first = self.baseline_values[self.task.seeds.selection[0]]
        evaluator = self.task.evaluator
        for check in checks:
            if check.value == first:
                continue
            self.repeat_differs |= check.role == "repeat"
            if evaluator.noise == "seed" and evaluator.seeded:
                text = _PROBLEMS[check.role].format(found=check.value, first=first)
                self.problems.append(text)
                self.defaults_differ |= check.role == "bare"

    def _pair_measured(
        self, event: events.MeasurementSettled, launch: events.MeasurementLaunched
    ) -> None:
        by_run = {(e.node, e.seed): e.value for e in event.evaluations}
        challenge = self.contest.challenge
        for node, seed in launch.runs:
            if challenge is not None and node == challenge.node:
                sides = (by_run.get((node, seed)), by_run.get((self.contest.champion, seed)))
                self.contest.add_pair(*(None if v is None else self.oriented(v) for v in sides))

    def _final_measured(
        self, event: events.MeasurementSettled, launch: events.MeasurementLaunched
    ) -> None:
        found = {(e.node, e.seed) for e in event.evaluations}
        absent = [
            events.Evaluation(node=node, seed=seed, fault=event.reason or "not reached")
            for node, seed in launch.runs
            if (node, seed) not in found
        ]
        self.final += [*event.evaluations, *absent]

    def _reflected(self, event: events.Reflected) -> None:
        self.decisions += 1
        parent = self.tree.nodes[event.node]
        if event.charge != NOTHING:
            self.ledger.record("planning", event.charge)
        added = self.tree.extend(parent, event.children)
        if self.beliefs is not None:
            self.beliefs.propose(event.children)
        if self.with_levers:
            self.configurations |= {tuple(self.configuration(n).values()) for n in added}
        if len(event.children) < event.asked:
            self.tree.exhaust(parent)

    def _reflection_settled(self, event: events.ReflectionSettled) -> None:
        launch = self.works[event.work].launch
        self._settle(event.work, "planning", event)
        self._note_agent(event, "reflector")
        if not isinstance(launch, events.ReflectionLaunched):
            raise ValueError(f"{event.work} is no reflection")
        if event.outcome in ("interrupted", "infrastructure"):
            return
        self._note_use("planning", event.charge)
        if self.beliefs is not None:
            self.beliefs.propose(event.children, event.rejected)
        lacking = launch.asked - len(event.children)
        problems = tuple(rejected.reason for rejected in event.rejected)
        if event.outcome != "scored":
            problems = (event.detail or event.reason,)
        self.complaint = problems[0] if lacking and problems else ""
        again = bool(self.complaint and not launch.problems and event.outcome != "lost")
        if again:
            ask = structs.replace(launch, asked=lacking, problems=problems, sent_back=event.work)
            self.ask_again.append(ask)
        if launch.node == events.ROOT_DRAFT:
            for child in event.children:
                self.tree.draft_root(child)
            return
        node = self.tree.nodes[launch.node]
        self.tree.extend(node, event.children)
        self.tree.reflect(node, begins=again)
        if lacking and not again:
            self.tree.exhaust(node)

    def _attempt_settled(self, event: events.AttemptSettled) -> None:
        self._settle(f"a{event.attempt}", "execution", event)
        self._note_agent(event, "executor")
        node = self.tree.nodes[self.nodes[event.attempt]]
        if event.outcome == "scored":
            self._note_use("execution", event.charge)
            if self.started is not None and event.files not in ("", self.started.files):
                self.files[node.id] = event.files
            self._score(node, event.evaluations)
            self._learn(node, event)
        elif event.outcome == "failed":
            self._note_use("execution", event.charge)
            self.tree.settle_without_score(node, "failed")
            if self.with_levers and node.parent is not None:
                parent = self.configuration(node.parent)
                self.effects.record(self.configuration(node), None, parent)
            self._finish_outcome(node, improved=False)
            self._learn(node, event)
        elif event.outcome == "lost":
            self.tree.settle_without_score(node, "lost")
            self._learn(node, event)

    def _learn(self, node: Node, event: events.AttemptSettled) -> None:
        """Update the beliefs from a design's outcome, and note why where that is impossible."""
        if self.beliefs is None:
            return
        found = event.evaluations if event.outcome == "scored" else ()
        problem = self.beliefs.learn(node.id, event.attempt, found)
        if problem:
            self.problems.append(f"attempt {event.attempt}: its design told nothing: {problem}")

    def _score(self, node: Node, evaluations: Sequence[Evaluation]) -> None:
        if self.reward is None:
            raise ValueError("an attempt was scored before the baseline")
        by_seed: dict[int, float] = {}
        for evaluation in evaluations:
            if evaluation.value is not None:
                by_seed[evaluation.seed] = evaluation.value
                self.values[node.id, evaluation.seed] = evaluation.value
        score = self.selection_mean(by_seed)
        oriented = self.oriented(score)
        self.tree.score(node, score, self.reward(score))
        best = self.incumbent.score
        if best is None or oriented > self.oriented(best):
            self.incumbent = node
        self._record_configuration(node, score)
        if node.parent is not None and node.parent.score is not None:
            axis = node.proposal.axis if node.proposal is not None else None
            self.directions.record_effect(axis, score - node.parent.score)
        if self.contest.is_challenger(oriented):
            self.contest.queue.append(node.id)
        else:
            self._finish_outcome(node, improved=False)

    def selection_mean(self, by_seed: dict[int, float]) -> float:
        """Return the mean over the selection seeds, which all have a value; metric units."""
        seeds = self.task.seeds.selection
        return fsum(by_seed[seed] for seed in seeds) / len(seeds)

    def _record_configuration(self, node: Node, score: float) -> None:
        if not self.with_levers:
            return
        configuration = self.configuration(node)
        self.interactions.record(configuration, self.oriented(score))
        self.configurations.add(tuple(configuration.values()))
        if node.parent is None:
            self.effects.record(configuration, score)
        else:
            parent = self.configuration(node.parent)
            self.effects.record(configuration, score, parent, node.parent.score)

    def _judged(self, event: events.Judged) -> None:
        node = self.tree.nodes[self.nodes[event.attempt]]
        incumbent = self.contest.champion
        challenge = self.contest.challenge
        if challenge is None or challenge.node != node.id:
            self.contest.queue.remove(node.id)
            fresh: list[float] = []
        else:
            fresh = [pair[0] for pair in challenge.complete]
            self.contest.close(promoted=event.promoted)
        self.judgements.append(
            Judgement(attempt=event.attempt, node=node.id, incumbent=incumbent, event=event)
        )
        if event.promoted and node.score is not None:
            self.contest.crown(node.id, self.oriented(node.score), fresh)
            self._reopen_directions(incumbent, node)
        self._finish_outcome(node, improved=event.promoted)

    def _reopen_directions(self, before: int, after: Node) -> None:
        sd = self.contest.noise.sd
        if not self.with_levers or sd is None:
            return
        for axis, direction in reopened(
            self.directions.dead_ends.retired,
            self.configuration(self.tree.nodes[before]),
            self.configuration(after),
            self.interactions,
            sd,
        ):
            self.directions.dead_ends.reopen(axis, direction)

    def _finish_outcome(self, node: Node, *, improved: bool) -> None:
        proposal = node.proposal
        if proposal is not None:
            self.directions.record_outcome(proposal.axis, proposal.direction, improved)


_PROBLEMS = {
    "repeat": "seed noise: the same seed gave {first} and then {found}; "
    'set noise = "machine", or make the program follow its seed',
    "bare": "levers: the defaults change the program, which gives {found} without and {first} "
    "with them; a lever's first option must describe the program as it stands",
}

_PURPOSES = {
    "baseline": State._baseline_measured,
    "confirmation": State._pair_measured,
    "final": State._final_measured,
}

_HANDLERS: dict[type, Callable[[State, Any], None]] = {
    events.RunStarted: State._run_started,
    events.SittingStarted: State._sitting_started,
    events.BudgetChanged: State._budget_changed,
    events.Ticked: State._ticked,
    events.StopRequested: State._stop_requested,
    events.MeasurementLaunched: State._measurement_launched,
    events.MeasurementSettled: State._measurement_settled,
    events.ScaleFixed: State._scale_fixed,
    events.Reflected: State._reflected,
    events.ReflectionLaunched: State._reflection_launched,
    events.ReflectionSettled: State._reflection_settled,
    events.AttemptLaunched: State._attempt_launched,
    events.AttemptSettled: State._attempt_settled,
    events.Judged: State._judged,
    events.RunEnded: State._run_ended,
}
