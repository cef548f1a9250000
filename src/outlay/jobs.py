"""From a launch to the job that carries it out."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from outlay import events
from outlay.agents.access import metered
from outlay.agents.brief import brief
from outlay.agents.clients.programs import KNOWN, find, needed, version
from outlay.agents.prices import price_of
from outlay.agents.subject import subject
from outlay.execution.environment import VENV, has_packages
from outlay.execution.job import AgentWork, Job, Subject
from outlay.reflecting import request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlay.agents.access import Access
    from outlay.events import (
        AttemptLaunched,
        Launch,
        ReflectionLaunched,
        Settled,
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


def work_of(event: Launch | Settled) -> str:
    """Return the id of the work that a launch or an outcome belongs to."""
    if isinstance(event, events.AttemptLaunched | events.AttemptSettled):
        return f"a{event.attempt}"
    return event.work


def job_id(event: Launch | Settled) -> str:
    """Return the id of the job of this try."""
    return f"{work_of(event)}.{event.trial}"


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
        read=(*common.read, *_program(agent)),
        seconds=seconds,
        keep_going=_keeps_going(launch),
    )


def _program(agent: AgentWork | None) -> tuple[str, ...]:
    """Return where a client's program lies, since that may be a folder that no child may see."""
    if agent is None or agent.client == "command" or not agent.command:
        return ()
    return needed(agent.command[0])


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
    return Subject(label="bare", files=state.start)


def _subject(state: State, number: int, *, before: bool = False) -> Subject:
    """Return the workspace of a node, `before` its own attempt or as that attempt left it."""
    if number < 0:
        return Subject(label="baseline", files=state.start)
    node = state.tree.nodes[number]
    if not state.with_levers:
        origin = node.parent if before else node
        if before and node.proposal is not None and node.proposal.kind == "repeat":
            origin = None  # the same plan once more, from the start
        files = state.files.get(origin.id) if origin is not None else None
        return Subject(label=f"n{number}", files=files or state.start)
    return subject(
        state.task.levers, state.configuration(node), label=f"n{number}", files=state.start
    )
