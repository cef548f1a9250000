"""From a reflection's launch to what a model is asked, and from its answer to plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from outlay import events
from outlay.agents.reflections.answers import parse
from outlay.agents.reflections.asking import ask_for
from outlay.agents.reflections.question import Told, question
from outlay.agents.reflections.shape import ROOMY, TERSE, schema
from outlay.execution.folder import head_and_tail, read_result
from outlay.report.programs import patch_between

if TYPE_CHECKING:
    from pathlib import Path

    from outlay.agents.reflections.asking import Ask
    from outlay.allocation.tree import Node
    from outlay.events import ReflectionLaunched
    from outlay.state import State

_MOST_LOG = 200_000
"""Bytes of an attempt's output that are looked at."""


class Asked(NamedTuple):
    """The prompt of a reflection, and the JSON schema of its answer."""

    text: str
    schema: str


class Came(NamedTuple):
    """What an answer brought: plans, and those that are sent back."""

    children: tuple[events.Child, ...] = ()
    rejected: tuple[events.Rejected, ...] = ()


def request(state: State, launch: ReflectionLaunched, folder: Path) -> Asked:
    """Return what the model is asked.

    Args:
        state: The state that the launch was applied to.
        launch: What was launched.
        folder: The run's folder, with the outputs of attempts.
    """
    node, ask = _node(state, launch), _ask(state, launch)
    told = Told(
        log=_log(node, folder),
        patch=_patch(state, node, folder),
        answer=_answer(launch, folder),
        problems=launch.problems,
    )
    bounds = TERSE if state.task.reflector.terse else ROOMY
    return Asked(question(state, node, ask, told, bounds), schema(ask, bounds))


def received(state: State, launch: ReflectionLaunched, answer: str) -> Came:
    """Return the plans of an answer, numbered on from the tree's."""
    parsed = parse(answer, _ask(state, launch))
    return Came(children=parsed.children, rejected=parsed.rejected)


def _node(state: State, launch: ReflectionLaunched) -> Node:
    return state.tree.nodes[max(launch.node, 0)]


def _ask(state: State, launch: ReflectionLaunched) -> Ask:
    ask = ask_for(state, _node(state, launch), launch.asked)
    return ask._replace(plan="", first=0) if launch.node == events.ROOT_DRAFT else ask


def _log(node: Node, folder: Path) -> str:
    """Return what the node's attempt printed, both streams."""
    place = _latest(folder, f"a{node.attempt}")
    if place is None:
        return ""
    return "\n".join(head_and_tail(place / name, _MOST_LOG) for name in ("out.txt", "err.txt"))


def _answer(launch: ReflectionLaunched, folder: Path) -> str:
    """Return the answer that is sent back."""
    place = _latest(folder, launch.sent_back) if launch.sent_back else None
    result = read_result(place) if place is not None else None
    return result.agent.answer if result is not None and result.agent is not None else ""


def _latest(folder: Path, work: str) -> Path | None:
    """Return the folder of a work's latest try."""
    tries = folder.glob(f"jobs/{work}.*")
    return max(tries, key=lambda place: int(place.suffix[1:]), default=None)


def _patch(state: State, node: Node, folder: Path) -> str:
    start = state.start
    before = state.files.get(node.parent.id, start) if node.parent is not None else start
    after = state.files.get(node.id, before)
    return patch_between(before, after, folder / "objects") if before != after else ""
