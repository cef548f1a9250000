"""From what a job came to, to the event that settles it."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from outlay import events
from outlay.budget import Charge
from outlay.jobs import work_of
from outlay.records import BLAMELESS, LOST_TRIES
from outlay.reflecting import Came, received

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlay.events import (
        AttemptLaunched,
        AttemptSettled,
        Launch,
        MeasurementLaunched,
        MeasurementSettled,
        ReflectionLaunched,
    )
    from outlay.execution.job import AgentTold, Evaluated, Result
    from outlay.state import State

MOST_SUMMARY = 2000
"""Characters of an agent's last words that are kept in the log."""


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
        files=result.files if result.files != state.start else "",
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
