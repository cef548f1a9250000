"""An ablation of a task is a run: a star around its baseline, led by the response surface.

Every attempt measures one configuration, and the reflector asks the surface which one tells most.
So store, ledger, limits, workers and resume are those of any run. What differs stands in the task:
the policy, no comparisons with a champion, and no final measurement.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from outlay import events
from outlay.ablations.findings import minimal
from outlay.allocation.policies import STAR
from outlay.errors import InputError, bad_value
from outlay.events import Child, Reflected
from outlay.surfaces.answers import Suggestion
from outlay.surfaces.beliefs import Assumptions
from outlay.surfaces.factors import read_factors
from outlay.surfaces.measurements import Measurement, Noise, observations
from outlay.surfaces.proposal import propose
from outlay.surfaces.surface import Surface
from outlay.task import Budget, Search

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from outlay.ablations.components import Origin
    from outlay.allocation.tree import Node
    from outlay.events import Entry
    from outlay.state import State
    from outlay.surfaces.factors import Config, Factors
    from outlay.task import Task

LEAST = 2
"""Measurements of the smallest ablation: the baseline and one other configuration."""


def factors_of(task: Task) -> Factors:
    """Return the task's levers as factors; a lever with one option is fixed and none of them.

    Raises:
        InputError: If there is no lever, or there are too many configurations.
    """
    names = {lever.name: [option.name for option in lever.options] for lever in task.levers}
    open_levers = {name: options for name, options in names.items() if len(options) > 1}
    if not open_levers:
        raise InputError(
            f"{task.name}: found no levers, allowed: [levers.NAME] tables in outlay.toml, or "
            "--run RUN alone for the champion of a search"
        )
    return read_factors(open_levers)


def ablation_of(task: Task, limits: Budget) -> Task:
    """Return the task whose run is an ablation of the given one.

    Args:
        task: Its levers are the factors.
        limits: Of `attempts`, which counts measurements, the baseline included, and of `seconds`
            of wall clock; the task's own stand where there is none.

    Raises:
        InputError: If there is nothing to ablate, no limit, or more than there is to measure.
    """
    size = factors_of(task).space.size
    if limits.tokens is not None or limits.usd is not None:
        raise bad_value("ablate", "budget", limits, "a number of measurements, or seconds")
    if limits.attempts is not None and not LEAST <= limits.attempts <= size:
        allowed = f"{LEAST} to {size}, which is every configuration"
        raise bad_value("ablate", "budget", limits.attempts, allowed)
    budget = Budget(
        attempts=task.budget.attempts if limits.attempts is None else limits.attempts - 1,
        seconds=task.budget.seconds if limits.seconds is None else limits.seconds,
    )
    if budget == Budget():
        raise InputError(f"budget: found none, allowed: {LEAST} to {size}, or a time")
    return replace(
        task,
        budget=budget,
        seeds=replace(task.seeds, final=()),
        search=Search(policy=STAR, prune_below=0.0),
        hypotheses={},
        coordination=replace(
            task.coordination,
            confirmation="none",
            dead_ends=False,
            ranking=False,
            teams=1,
            stagnation=0,
        ),
    )


def is_ablation(task: Task) -> bool:
    """Return whether the task is that of an ablation."""
    return task.search.policy == STAR


class SurfaceReflector:
    """Proposes the configuration that leaves the effects least uncertain.

    Args:
        origin: The champion whose parts the factors are, if they are. The last attempt then
            measures the smallest part of it that is predicted to keep the gain.
    """

    def __init__(self, origin: Origin | None = None) -> None:
        self._origin = origin

    def reflect(self, state: State, node: Node, asked: int) -> Reflected:
        """Return up to `asked` configurations that are not in the tree yet."""
        told = self._last(state) or most_telling(state, asked, self._origin)
        base = state.configuration(node)
        children = tuple(
            _child(number, base, suggestion)
            for number, suggestion in enumerate(told[:asked], len(state.tree.nodes))
        )
        reason = (
            "" if len(children) == asked else "every configuration that may work is in the tree"
        )
        return Reflected(node=node.id, asked=asked, children=children, reason=reason)

    def _last(self, state: State) -> list[Suggestion]:
        """Return what the last attempt is kept for, if it is time for that."""
        if self._origin is None or state.budget.attempts != state.attempts + 1:
            return []
        found = minimal(surface_of(state, origin=self._origin))
        if found is None or factors_of(state.task).cell(found.config) in _cells(
            state, state.tree.nodes
        ):
            return []
        reason = "the smallest part that is predicted to keep the gain"
        return [Suggestion(config=dict(found.config), reason=reason)]


def most_telling(state: State, asked: int, origin: Origin | None) -> list[Suggestion]:
    """Return up to `asked` configurations that were not tried, the most telling first."""
    factors, noise = factors_of(state.task), _noise(state, origin)
    done, nodes = measurements(state, {}), state.tree.nodes
    found = propose(
        Assumptions(space=factors.space, noisy=noise is not None),
        observations(factors, done, state.task.metric.name, noise),
        asked,
        np.random.default_rng(state.random("surface").getrandbits(64)),
        blocked=_cells(state, nodes),
        failed=_cells(state, [node for node in nodes if node.status == "failed"]),
        pending=_cells(state, [node for node in nodes if node.status in ("open", "running")]),
    )
    return [Suggestion.of(proposal, factors) for proposal in found]


def reasons(entries: Iterable[Entry]) -> dict[int, str]:
    """Return why attempts failed, by attempt; a lost one says nothing about its configuration."""
    return {
        entry.event.attempt: f"{entry.event.reason}: {entry.event.detail}"
        for entry in entries
        if isinstance(entry.event, events.AttemptSettled) and entry.event.outcome == "failed"
    }


def surface_of(
    state: State,
    why_failed: Mapping[int, str] | None = None,
    origin: Origin | None = None,
) -> Surface:
    """Return the response surface as the run knows it.

    Args:
        state: The run's state, its baseline measured.
        why_failed: Reason of each failed attempt, for people.
        origin: The champion that it takes apart; its search knows more of the noise.
    """
    task = state.task
    return Surface(
        factors_of(task),
        measurements(state, why_failed or {}),
        metric=task.metric.name,
        direction=task.metric.direction,
        noise=_noise(state, origin),
        seed=state.started.seed % 2**32 if state.started is not None else 0,
    )


def is_noisy(state: State) -> bool:
    """Return whether the baseline's values differ between seeds, or between runs of one seed."""
    return state.repeat_differs or len(set(state.baseline_values.values())) > 1


def _noise(state: State, origin: Origin | None) -> Noise | None:
    """Return what is known of the noise beyond what `measurements` tell.

    A search knows it from its comparisons. Otherwise the baseline's values tell it where every
    configuration is measured on one shared seed.
    """
    if not is_noisy(state):
        return None
    if origin is not None and origin.noise_df:
        return Noise(origin.noise_sd, origin.noise_df)
    noise, one_seed = state.contest.noise, len(state.task.seeds.selection) == 1
    if one_seed and _shares_seeds(state) and noise.sd is not None:
        return Noise(noise.sd, noise.df)
    return Noise()


def _shares_seeds(state: State) -> bool:
    """Return whether all configurations are evaluated on the same seeds."""
    return state.task.evaluator.noise == "seed" and state.task.evaluator.seeded


def measurements(state: State, why_failed: Mapping[int, str]) -> list[Measurement]:
    """Return what each settled configuration gave: where seeds differ, one value a seed.

    Configurations share the selection seeds, so that what those seeds have in common cancels in
    effects; the baseline's other seeds count only where nothing is shared.
    """
    found = []
    for node in state.tree.nodes:
        config: Config = {**_factors(state, node)}
        if node.status == "failed":
            reason = why_failed.get(node.attempt, "failed")
            found.append(Measurement(config=config, reason=reason))
        elif node.status == "scored":
            found += [
                Measurement(config=config, metrics={state.task.metric.name: value}, seed=seed)
                for seed, value in _values(state, node)
            ]
    return found


def _values(state: State, node: Node) -> list[tuple[int | None, float]]:
    """Return the node's values, with their seeds where configurations share those."""
    shared = _shares_seeds(state)
    if node.id == state.baseline and not shared:
        return [(None, value) for value in state.baseline_values.values()]
    if is_noisy(state):
        seeds = state.task.seeds.selection
        return [(seed if shared else None, state.values[node.id, seed]) for seed in seeds]
    return [] if node.score is None else [(None, node.score)]


def _cells(state: State, nodes: Iterable[Node]) -> list[int]:
    factors = factors_of(state.task)
    return [factors.cell(_factors(state, node)) for node in nodes]


def _factors(state: State, node: Node) -> dict[str, str]:
    """Return the node's option of every lever that is a factor."""
    chosen = state.configuration(node)
    return {lever.name: chosen[lever.name] for lever in state.task.levers if lever.options[1:]}


def _child(number: int, base: Mapping[str, str], told: Suggestion) -> Child:
    changes = {name: str(option) for name, option in told.config.items() if base[name] != option}
    return Child(
        node=number,
        changes=changes,
        hypothesis="What the components do depends on each other; this shows how.",
        rationale=told.reason,
    )
