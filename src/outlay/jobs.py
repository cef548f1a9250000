"""From a launch to the job that carries it out, and from its result to the event it settles in."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from outlay import events
from outlay.agents.access import metered
from outlay.agents.brief import brief
from outlay.agents.clients.programs import KNOWN, find, needed, version
from outlay.agents.prices import price_of
from outlay.agents.subject import subject
from outlay.budget import Charge
from outlay.execution.environment import VENV, has_packages
from outlay.execution.job import AgentTold, AgentWork, Evaluated, Job, Result, Subject
from outlay.reflecting import Came, received, request
from outlay.state import BLAMELESS, LOST_TRIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlay.agents.access import Access
    from outlay.events import (
        AttemptLaunched,
        AttemptSettled,
        Launch,
        MeasurementLaunched,
        MeasurementSettled,
        ReflectionLaunched,
    )
    from outlay.state import State
    from outlay.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the jobs of a run live, and what surrounds them.

    Attributes:
        folder: The run's folder, absolute.
        environment: Environment of the children.
        mask: Folders that no child may see.
        executor: Who carries plans out; `None` for levers.
        reflector: Which model drafts them, if one does.
    """

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    mask: tuple[str, ...] = ()
    executor: AgentWork | None = None
    reflector: AgentWork | None = None

    @property
    def objects(self) -> Path:
        """The run's object store."""
        return self.folder / "objects"


MOST_SUMMARY = 2000
"""Characters of an agent's last words that are kept in the log."""


def work_of(launch: Launch) -> str:
    """Return the id of the work that a launch belongs to."""
    if isinstance(launch, events.AttemptLaunched):
        return f"a{launch.attempt}"
    return launch.work


def job_id(launch: Launch) -> str:
    """Return the id of the job of this try."""
    return f"{work_of(launch)}.{launch.trial}"


def token(state: State, launch: Launch) -> str:
    """Return the text that marks every process of this try, 32 hexadecimal digits."""
    uid = state.started.uid if state.started is not None else ""
    return hashlib.sha256(f"{uid}/{job_id(launch)}".encode()).hexdigest()[:32]


def template(task: Task, place: Place) -> Job:
    """Return what all jobs of a sitting have in common; `job_for` fills the rest in."""
    return Job(
        id="",
        token="",
        folder="",
        objects=os.path.join(place.folder, "objects"),
        subjects=(),
        runs=(),
        command=task.evaluator.command,
        function=task.evaluator.function,
        check=task.evaluator.check,
        metric=task.metric.name,
        source=task.metric.source,
        line=task.metric.line,
        secondary=task.metric.secondary,
        low=task.metric.low,
        high=task.metric.high,
        memory=task.limits.memory,
        output=task.limits.output,
        environment=place.environment,
        editable=task.workspace.editable,
        protected=task.workspace.protected,
        hidden=task.workspace.hidden,
        data=_data(task.workspace.path, task.workspace.data),
        read=task.sandbox.read,
        network=task.sandbox.network,
        gpu=task.sandbox.gpu,
        mask=place.mask,
        container=task.evaluator.container,
        exclusive=_lock(place, task.evaluator.noise),
    )


def job_for(state: State, launch: Launch, common: Job, place: Place, seconds: float | None) -> Job:
    """Return the job that carries the launch out.

    Args:
        state: The state that the launch was applied to.
        launch: What was launched.
        common: The sitting's `template`.
        place: Where it is to run.
        seconds: Limit of the whole job; `None` for none.
    """
    subjects, runs = _what(state, launch)
    identity, agent = job_id(launch), _agent(state, launch, place)
    return common._replace(
        id=identity,
        token=token(state, launch),
        folder=os.path.join(place.folder, "jobs", identity),
        subjects=tuple(subjects),
        runs=tuple(runs),
        check=() if isinstance(launch, events.ReflectionLaunched) else common.check,
        agent=agent,
        read=(*common.read, *(_program(agent) if agent is not None else ())),
        seconds=seconds,
        keep_going=_keeps_going(launch),
    )


def _program(agent: AgentWork) -> tuple[str, ...]:
    """Return where a client's program lies, since that may be a folder that no child may see."""
    return needed(agent.command[0]) if agent.client in KNOWN else ()


def _keeps_going(launch: Launch) -> bool:
    """Whether values on the other seeds are worth having; the baseline needs every one."""
    return isinstance(launch, events.MeasurementLaunched) and launch.purpose != "baseline"


def _lock(place: Place, noise: str) -> str | None:
    return str(place.folder.parent / "machine.lock") if noise == "machine" else None


def _data(workspace: str, paths: Sequence[str]) -> dict[str, str]:
    linked = [*paths, VENV] if has_packages(workspace) else paths
    return {str(Path(workspace, path).resolve()): path for path in linked}


def agent_work(task: Task, access: Access | None) -> AgentWork | None:
    """Return what a client of a model is started with; text and limits come with each job."""
    if access is None:
        return None
    found = metered(access, os.environ)
    command = found.command or ((find(found.client),) if found.client in KNOWN else ())
    return AgentWork(
        client=found.client,
        command=command,
        version=version(command) if found.client in KNOWN else "",
        model=found.model,
        url=found.url,
        key=found.key,
        prices=price_of(task, found.model),
        partial=task.agent.partial,
        patience=task.agent.patience,
    )


def _agent(state: State, launch: Launch, place: Place) -> AgentWork | None:
    if isinstance(launch, events.AttemptLaunched) and place.executor is not None:
        text = brief(state, state.tree.nodes[launch.node])
        return _limited(state, launch, place.executor._replace(text=text))
    if isinstance(launch, events.ReflectionLaunched) and place.reflector is not None:
        asked = request(state, launch, place.folder)
        return _limited(
            state, launch, place.reflector._replace(text=asked.text, schema=asked.schema)
        )
    return None


def _limited(
    state: State, launch: AttemptLaunched | ReflectionLaunched, work: AgentWork
) -> AgentWork:
    """Return the work with its limits: its own, and what is left beside other work in flight."""
    left = state.ledger.remaining(state.budget, 0.0)
    limits = state.task.limits
    tokens = [limits.tokens, left.tokens and left.tokens + launch.reserve.tokens]
    usd = [limits.usd, left.usd and left.usd + launch.reserve.usd]
    return work._replace(
        tokens=min((n for n in tokens if n is not None), default=None),
        usd=min((n for n in usd if n is not None), default=None),
    )


def _what(state: State, launch: Launch) -> tuple[list[Subject], list[tuple[int, int | None]]]:
    """Return the workspaces of a launch and what is evaluated in them, in order."""
    seeded = state.task.evaluator.seeded
    if isinstance(launch, events.AttemptLaunched):
        seeds = state.task.seeds.selection
        return [_subject(state, launch.node, before=True)], [
            (0, seed if seeded else None) for seed in seeds
        ]
    if isinstance(launch, events.ReflectionLaunched):
        return [_subject(state, launch.node)], []
    nodes = list(dict.fromkeys(node for node, _ in launch.runs))
    subjects = [_subject(state, node) for node in nodes]
    runs = [(nodes.index(node), seed if seeded else None) for node, seed in launch.runs]
    for role, seed in launch.checks:
        place = 0
        if role == "bare":
            subjects.append(_bare(state))
            place = len(subjects) - 1
        runs.append((place, seed if seeded else None))
    return subjects, runs


def _bare(state: State) -> Subject:
    return Subject(label="bare", files=_start(state))


def _start(state: State) -> str:
    return state.started.files if state.started is not None else ""


def _subject(state: State, number: int, *, before: bool = False) -> Subject:
    """Return the workspace of a node, `before` its own attempt or as that attempt left it."""
    if number < 0:
        return Subject(label="baseline", files=_start(state))
    node = state.tree.nodes[number]
    if not state.with_levers:
        origin = node.parent if before else node
        if before and node.proposal is not None and node.proposal.kind == "repeat":
            origin = None  # the same plan once more, from the start
        files = state.files.get(origin.id) if origin is not None else None
        return Subject(label=f"n{number}", files=files or _start(state))
    return subject(
        state.task.levers, state.configuration(node), label=f"n{number}", files=_start(state)
    )


# Back from the result.


def settle_attempt(
    state: State, launch: AttemptLaunched, result: Result, *, cut: bool
) -> AttemptSettled:
    """Return the event that settles this try of an attempt.

    Args:
        state: The state before.
        launch: The try.
        result: What its process answered.
        cut: Whether the time limit was the run's and not the attempt's own.
    """
    outcome = _outcome(state, launch, result)
    reason = "budget" if cut and result.reason == "timeout" else result.reason
    return events.AttemptSettled(
        attempt=launch.attempt,
        trial=launch.trial,
        outcome=outcome,
        reason="" if outcome == "scored" else reason,
        detail="" if outcome == "scored" else result.detail,
        evaluations=_evaluations(
            result.runs, [(launch.node, seed, "") for seed in state.task.seeds.selection]
        ),
        files=result.files if result.files != _start(state) else "",
        charge=_charge(result, attempts=int(outcome in ("scored", "failed", "lost"))),
        sandbox=result.sandbox,
        agent=_agent_use(result.agent),
        summary=result.agent.answer[:MOST_SUMMARY] if result.agent is not None else "",
    )


def settle_reflection(
    state: State, launch: ReflectionLaunched, result: Result
) -> events.ReflectionSettled:
    """Return the event that settles this try of a reflection, with the plans that it brought."""
    outcome = _outcome(state, launch, result)
    scored = outcome == "scored" and result.agent is not None
    came = received(state, launch, result.agent.answer) if scored and result.agent else Came()
    return events.ReflectionSettled(
        work=launch.work,
        trial=launch.trial,
        outcome=outcome,
        reason=result.reason if outcome != "scored" else "",
        detail=result.detail if outcome != "scored" else "",
        children=came.children,
        rejected=came.rejected,
        charge=_charge(result, attempts=0),
        agent=_agent_use(result.agent),
        sandbox=result.sandbox,
    )


def _agent_use(told: AgentTold | None) -> events.AgentUse | None:
    if told is None:
        return None
    return events.AgentUse(
        client=told.client,
        version=told.version,
        model=told.model,
        requests=told.requests,
        reasoning=told.reasoning,
        cache_write=told.cache_write,
        source=told.source,
        complete=told.complete,
    )


def settle_measurement(
    state: State, launch: MeasurementLaunched, result: Result
) -> MeasurementSettled:
    """Return the event that settles this try of a measurement.

    A measurement whose evaluations partly failed is settled with what it has; only the baseline
    needs every value.
    """
    asked = [(node, seed, "") for node, seed in launch.runs]
    asked += [(state.baseline, seed, role) for role, seed in launch.checks]
    outcome = _outcome(state, launch, result)
    return events.MeasurementSettled(
        work=launch.work,
        trial=launch.trial,
        outcome=outcome,
        reason=result.reason if outcome != "scored" else "",
        detail=result.detail if outcome != "scored" else "",
        evaluations=_evaluations(result.runs, asked),
        charge=_charge(result, attempts=0),
        sandbox=result.sandbox,
    )


def _outcome(state: State, launch: Launch, result: Result) -> events.Outcome:
    if result.status == "done":
        return "scored"
    if result.reason == "ended":
        return "interrupted"
    if result.status == "failed":
        return "failed"
    if result.reason not in BLAMELESS and state.works[work_of(launch)].lost + 1 >= LOST_TRIES:
        return "lost"
    return "interrupted" if result.reason == "host" else "infrastructure"


def _evaluations(
    runs: Sequence[Evaluated], asked: Sequence[tuple[int, int, str]]
) -> tuple[events.Evaluation, ...]:
    return tuple(
        events.Evaluation(
            node=node,
            seed=seed,
            role=role,
            value=run.value,
            seconds=run.seconds,
            metrics={k: v for k, v in run.metrics.items() if isfinite(v)},
            fault=run.fault,
        )
        for run, (node, seed, role) in zip(runs, asked, strict=False)
    )


def _charge(result: Result, *, attempts: int) -> Charge:
    return Charge(
        attempts=attempts,
        seconds=result.seconds,
        tokens_in=result.tokens_in,
        tokens_cached=result.tokens_cached,
        tokens_out=result.tokens_out,
        usd=result.usd,
    )
