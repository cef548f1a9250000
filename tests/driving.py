"""Whole runs in this process: a task, an engine that has accidents, and a clock of its own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from outlay.ablations.running import SurfaceReflector, is_ablation
from outlay.agents import access
from outlay.agents.reflector import BUILT_IN
from outlay.bench.designs.gated_search import world
from outlay.budget import Charge
from outlay.designs.statefile import state_to_json
from outlay.driver import Driver
from outlay.events import Child, Reflected
from outlay.execution.job import AgentTold, AgentWork, Evaluated, Result
from outlay.jobs import Place
from outlay.runs import Settings, open_run
from outlay.task import (
    Agent,
    Budget,
    Coordination,
    Evaluator,
    Lever,
    Metric,
    Option,
    Search,
    Task,
    Workspace,
)

if TYPE_CHECKING:
    from outlay.execution.job import Job
    from outlay.state import State
    from outlay.store import Store

RUN = "run"


def task(
    *,
    levers: int = 3,
    policy: str = "adaptive",
    confirmation: str = "sequential",
    limits: Budget | None = None,
    model: bool = False,
    hypotheses: bool = False,
) -> Task:
    """A task with so many levers of two or three options.

    Without levers plans come from `ThreeChildren`, or from `model_answer` if a model drafts them.
    Hypotheses are those of a simulated world; outcomes are drawn at random, at times off the grid.
    """
    known = state_to_json(world(0).state) if hypotheses else {}
    return Task(
        name=RUN,
        question="Which help?",
        workspace=Workspace(path="/"),
        evaluator=Evaluator(command=("score", "{seed}")),
        metric=Metric(name="score", direction="maximize", secondary=tuple(known.get("arms", ()))),
        budget=limits or Budget(attempts=12),
        levers=tuple(
            Lever(
                name=f"l{k}",
                options=(
                    Option(name="off"),
                    *(Option(name=f"on{j}", args=(f"--l{k}={j}",)) for j in range(1 + k % 2)),
                ),
            )
            for k in range(levers)
        ),
        coordination=Coordination(confirmation=confirmation),
        search=Search(policy=policy),
        reflector=Agent(client="model") if model else Agent(),
        hypotheses=known,
    )


class ThreeChildren:
    """A reflector without levers: what was asked for, now and then one fewer, at a price."""

    def reflect(self, state, node, asked):
        random, first = state.random("reflect"), len(state.tree.nodes)
        came = asked - (random.random() < 0.1)
        children = tuple(
            Child(
                node=first + k,
                prior=round(random.random(), 3),
                axis=random.choice("abc"),
                direction=random.choice(["up", "down"]),
            )
            for k in range(came)
        )
        reason = "" if came == asked else "no more ideas"
        charge = Charge(tokens_in=100, tokens_out=10)
        return Reflected(
            node=node.id, asked=asked, children=children, reason=reason, charge=charge
        )


def reflector_of(task: Task):
    if is_ablation(task):
        return SurfaceReflector()
    return BUILT_IN if task.levers else ThreeChildren()


@dataclass
class Clock:
    time: float = 0.0

    def __call__(self) -> float:
        return self.time


@dataclass(frozen=True, kw_only=True)
class Accidents:
    """Probabilities, each for one job."""

    failed: float = 0.0
    lost: float = 0.0
    evaluation: float = 0.0
    ended: float = 0.0


class Engine:
    """Carries jobs out in no order; what comes of a job depends on its id and the seed only.

    A job that an earlier driver started has died with it.
    """

    def __init__(self, seed: int, clock: Clock, accidents: Accidents, answer=None) -> None:
        self.answer = answer or model_answer
        self.seed = seed
        self.clock = clock
        self.accidents = accidents
        self.started: list[str] = []
        self._order = Random(seed)
        self._flying: dict[str, Result] = {}

    def start(self, job: Job) -> None:
        assert job.id not in self.started, f"{job.id} was started twice"
        self.started.append(job.id)
        self._flying[job.id] = self._answer(job)

    def adopt(self, job_id: str, token: str) -> None:
        if job_id not in self._flying:
            self._flying[job_id] = Result(
                id=job_id, status="infrastructure", reason="host", seconds=1.0
            )

    def wait(self, timeout: float | None) -> list[Result]:
        self.clock.time += self._order.expovariate(1.0)
        ids = sorted(self._flying)
        if not ids or self._order.random() < 0.2:
            return []
        chosen = self._order.sample(ids, self._order.randint(1, min(2, len(ids))))
        return [self._flying.pop(job_id) for job_id in chosen]

    def end(self, job_id: str) -> None:
        if job_id in self._flying:
            self._flying[job_id] = Result(id=job_id, status="failed", reason="ended", seconds=0.5)

    def close(self) -> None:
        self._flying.clear()

    def _answer(self, job: Job) -> Result:
        work = job.id.split(".")[0]
        fate = Random(f"{self.seed}/{job.id}")
        outcome = Random(f"{self.seed}/{work}")
        seconds = round(outcome.uniform(0.5, 2.0) * len(job.runs), 3)
        result = Result(id=job.id, status="done", seconds=seconds, tokens_out=7)
        if job.agent is not None and job.agent.schema:
            answer = self.answer(job.agent.schema, outcome)
            told = AgentTold(client="model", requests=1, source="proxy", answer=answer)
            result = result._replace(agent=told, tokens_in=50, seconds=0.5)
        if work == "m1":
            return result._replace(runs=self._runs(job, 0.0))
        if fate.random() < self.accidents.lost:
            return result._replace(status="infrastructure", reason="host")
        if fate.random() < self.accidents.ended:
            return result._replace(status="failed", reason="ended")
        if job.seconds is not None and result.seconds > job.seconds:
            return result._replace(status="failed", reason="timeout", seconds=job.seconds)
        if outcome.random() < self.accidents.failed:
            return result._replace(status="failed", reason="crash")
        if work.startswith("r"):
            return result
        runs = self._runs(job, self.accidents.evaluation)
        broken = any(run.value is None for run in runs)
        if broken:
            return result._replace(status="failed", reason="metric", runs=runs)
        return result._replace(runs=runs)

    def _runs(self, job: Job, broken: float) -> tuple[Evaluated, ...]:
        return tuple(self._evaluated(job, place, seed, broken) for place, seed in job.runs)

    def _evaluated(self, job: Job, place: int, seed: int | None, broken: float) -> Evaluated:
        subject = job.subjects[place]
        what = subject.config or subject.label
        truth = _truth(what, self.seed)
        draw = Random(f"{self.seed}/{what}/{seed}")
        if draw.random() < broken:
            return Evaluated(subject=place, seed=seed, value=None, seconds=0.2, fault="none")
        value = 1.0 + truth + draw.gauss(0.0, 0.05)
        arms = {name: draw.choice([0.0, 0.25, 0.5, 0.75, 1.0, 1.1]) for name in job.secondary}
        return Evaluated(subject=place, seed=seed, value=value, seconds=0.4, metrics=arms)


def model_answer(schema: str, random: Random) -> str:
    """What a model might say: fewer plans than asked, the same one twice, an edit that misses."""
    shape = json.loads(schema)
    if random.random() < 0.1:
        return "I would rather talk about the weather."
    if "children" not in shape["properties"]:
        approach = [f"Try idea {random.randrange(10**6)}.", "Keep it simple."]
        return json.dumps({"title": "A", "hypothesis": "It helps.", "approach": approach})
    fields = shape["$defs"]["child"]["properties"]
    lines = fields["edits"]["items"]["properties"]["search"].get("enum", ["It helps."])
    asked = shape["properties"]["children"]["maxItems"]
    came = asked if random.random() < 0.8 else 1
    children = [_model_child(lines, random) for _ in range(came)]
    if "design" in fields:
        form = fields["design"]["anyOf"][0]["properties"]
        children = [child | {"design": _model_design(form, random)} for child in children]
    return json.dumps({"children": children})


def _model_design(form: dict[str, Any], random: Random) -> dict[str, object] | None:
    """A design of one to three arms, or none: good, telling nothing, or too dear."""
    arms = random.sample(form["arms"]["items"]["enum"], random.randint(1, 3))
    seeds = random.randint(form["seeds"]["minimum"], form["seeds"]["maximum"])
    return {"arms": arms, "seeds": seeds} if random.random() < 0.8 else None


def _model_child(lines: list[str], random: Random) -> dict[str, object]:
    search = random.choice([*lines, *lines, "a line that is not there"])
    new = random.choice([f"Try idea {random.randrange(10**6)}.", "Try idea 1."])
    axis = random.choice(["width", "rate", None])
    return {
        "hypothesis": "It helps.",
        "edits": [{"search": search, "replace": new}],
        "changes": "Another idea.",
        "axis": axis,
        "direction": axis and random.choice(["up", "down"]),
        "chance": random.randint(1, 99),
        "rationale": "It may.",
        "risks": "It may not.",
    }


def place_of(task: Task, agent: str) -> Place:
    found = access.reflector(task, agent)
    work = AgentWork(client=found.client) if found is not None else None
    return Place(folder=Path("/nowhere"), reflector=work)


def _truth(what, seed: int) -> float:
    if isinstance(what, dict):
        on = [f"{lever}={option}" for lever, option in what.items() if option != "off"]
        return sum(Random(f"{seed}/{name}").gauss(0.0, 0.2) for name in on)
    return 0.0 if what == "baseline" else Random(f"{seed}/{what}").gauss(0.0, 0.2)


def open_driver(
    store: Store,
    task: Task,
    *,
    workers: int = 1,
    seed: int = 0,
    accidents: Accidents | None = None,
    answer=None,
    on_step=lambda entries, state: None,
) -> Driver:
    """Begin the run or take it up, as a command would."""
    agent = "levers" if task.levers else "command:agent"
    settings = Settings(seed=seed, agent=agent, workers=workers)
    state, began = open_run(store, task, RUN, settings, None)
    clock = Clock()
    driver = Driver(
        store,
        RUN,
        state,
        place_of(task, agent),
        Engine(seed, clock, accidents or Accidents(), answer),
        reflector=reflector_of(task),
        on_step=on_step,
        monotonic=clock,
        now=lambda: 0.0,
    )
    driver.record(*began)
    return driver


def drive(store: Store, task: Task, **options) -> State:
    """Take the run to its end."""
    driver = open_driver(store, task, **options)
    driver.drive()
    return driver.state
