"""Runs of the digits example whose plans come from a model, built from events."""

from __future__ import annotations

import random
from pathlib import Path

from outlay import events
from outlay.agents.reflections.texts import editable_lines, plan_of, root_plan
from outlay.budget import Charge
from outlay.events import Child, Evaluation
from outlay.state import State
from outlay.task import Budget, Evaluator, Metric, Task, Workspace
from tests.report.samples import started

DIGITS = Task(
    name="digits",
    question="Which changes of the training make it recognise more digits?",
    workspace=Workspace(path=str(Path(__file__).parents[3] / "examples" / "digits")),
    evaluator=Evaluator(command=("python3", "train.py", "--seed", "{seed}")),
    metric=Metric(name="accuracy", direction="maximize", low=0.0, high=1.0, reward_scale=0.02),
    budget=Budget(attempts=25, tokens=1_000_000),
)

ROOT = root_plan(
    "Better digits from 400 images",
    "The training stops too early and the network is too narrow for what the images hold.",
    [
        "1. Read train.py and note the options that exist.",
        "2. Raise the learning rate from 0.01 to 0.05.",
        "3. Widen the hidden layer from 32 to 96 units.",
        "4. Keep stochastic gradient descent as the optimizer.",
        "5. Do not mirror the images.",
        "6. Train for 30 epochs with batches of 32.",
    ],
)

LOG = "loading 400 images\n" + "".join(
    f"epoch {k}: loss {2.3 / (k + 1):.3f}\n" for k in range(200)
)

IDEAS = [
    ("optimizer", "adam", "4. Use the adam optimizer instead of gradient descent."),
    ("learning-rate", "higher", "2. Raise the learning rate to 0.1 and halve it every 10 epochs."),
    ("width", "wider", "3. Widen the hidden layer to 128 units."),
    ("augmentation", "mirror", "5. Mirror a random half of the training images."),
    ("features", "strokes", "1. Add stroke features beside the pixels."),
    ("epochs", "more", "6. Train for 60 epochs with batches of 16."),
]


def child(state: State, parent: int, idea: int, **changes: object) -> Child:
    """Return a child that replaces the line of the plan that the idea's number names."""
    axis, direction, line = IDEAS[idea]
    lines = editable_lines(plan_of(state.tree.nodes[parent]))
    old = next(text for text in lines if text[:2] == line[:2])
    fields = {
        "node": len(state.tree.nodes),
        "edits": ((old, line),),
        "summary": f"{axis} goes to {direction}\n",
        "axis": axis,
        "direction": direction,
        "prior": 0.4,
        "hypothesis": f"A change of the {axis} helps.",
    }
    return Child(**{**fields, **changes})  # type: ignore[arg-type]


def model_run(task: Task = DIGITS) -> State:
    """Return a run whose baseline is measured and whose first plan is drafted, not tried."""
    state = State.of(started(task, agent="command:agent"))
    measured = tuple(Evaluation(node=-1, seed=s, value=0.8 + s % 7 / 500) for s in (1, 2, 3))
    runs = tuple((-1, e.seed) for e in measured)
    launched = events.MeasurementLaunched(work="m1", trial=1, purpose="baseline", runs=runs)
    state.apply(launched, 1.0)
    done = {"outcome": "scored", "evaluations": measured}
    state.apply(events.MeasurementSettled(work="m1", trial=1, **done), 2.0)  # type: ignore[arg-type]
    state.apply(events.ScaleFixed(center=0.804, scale=0.02), 2.0)
    state.tree.root.proposal = Child(node=0, plan=ROOT, hypothesis="It stops too early.")
    return state


def attempt(state: State, node: int, score: float | None) -> None:
    """Carry a node out; `None` is a failure."""
    number = state.attempts + 1
    state.apply(events.AttemptLaunched(attempt=number, trial=1, node=node), 3.0)
    values = () if score is None else (Evaluation(node=0, seed=1, value=score),)
    outcome = "failed" if score is None else "scored"
    state.apply(
        events.AttemptSettled(
            attempt=number,
            trial=1,
            outcome=outcome,
            evaluations=values,
            charge=Charge(attempts=1, tokens_in=20_000, tokens_out=1_000),
        ),
        4.0,
    )


def searched(seed: int, steps: int = 6, task: Task = DIGITS) -> State:
    """Return a run in which `steps` children were proposed and tried, at random places."""
    rng = random.Random(seed)
    state = model_run(task)
    attempt(state, 0, 0.85)
    for idea in rng.sample(range(len(IDEAS)), min(steps, len(IDEAS))):
        scored = [n for n in state.tree.nodes if n.score is not None and not n.pruned]
        parent = rng.choice(scored).id
        made = child(state, parent, idea)
        state.apply(events.Reflected(node=parent, asked=1, children=(made,)), 4.0)
        attempt(state, made.node, None if rng.random() < 0.15 else 0.8 + rng.random() / 8)
    return state
