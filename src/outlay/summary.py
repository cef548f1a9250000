"""What a run came to: the object that `outlay search --json` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from outlay.believed import Believed, believed
from outlay.coordination.estimates import Interval, estimate, paired_difference
from outlay.decision.challengers import untested
from outlay.records import BASELINE
from outlay.trust import self_reported
from outlay.usage import Used

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlay.budget import Charge
    from outlay.state import State


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A mean with its 95 % t interval; the limits are null where fewer than two values exist."""

    mean: float
    low: float | None
    high: float | None
    n: int


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A node's two scores, in metric units.

    Attributes:
        node: Its number, or `"baseline"` where the baseline is not in the tree.
        selected: Mean over the selection seeds, which chose it: biased upwards for a champion.
        fresh: Estimate from the final seeds, which chose nothing; null before the end.
        configuration: Lever to option.
    """

    node: int | str
    selected: float
    fresh: Estimate | None
    configuration: dict[str, str] = {}


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a run came to so far.

    Attributes:
        run: Its name.
        status: `budget`, `exhausted`, `stopped`, `failed`, or `interrupted` if it can go on.
        reason: The status in one line.
        attempts: Attempts launched.
        baseline: The program as it stands; null before it was measured.
        champion: The best confirmed one; the baseline if nothing was confirmed.
        difference: Champion minus baseline on the final seeds, paired; positive is better.
        charges: `total`, and by kind of work; tokens, dollars and seconds.
        agents: What coding agents and models used, by role, client and model.
        metric: Its name.
        direction: Which way is better.
        seed: Seed of the run.
        policy: Name of the policy.
        untested: Nodes that may be better than the champion and were not compared with it.
        problems: What the evaluator's checks found, and designs that told nothing.
        beliefs: What is believed about the task's hypotheses; null without any.
        self_reported: Whether a file that the agent may edit prints the metric.
        report: Path of the report; empty if none was written.
    """

    run: str
    status: str
    reason: str
    attempts: int
    baseline: Standing | None
    champion: Standing | None
    difference: Estimate | None
    charges: dict[str, dict[str, float]]
    agents: list[Used]
    metric: str
    direction: str
    seed: int
    policy: str
    untested: list[int]
    problems: list[str]
    beliefs: Believed | None
    self_reported: bool
    report: str = ""


def summarise(state: State, run: str, report: str = "") -> Summary:
    """Return the summary of a run that has started."""
    metric, started = state.task.metric, state.started
    measured = bool(state.baseline_values)
    return Summary(
        run=run,
        status=state.ended.status if state.ended else "interrupted",
        reason=state.ended.reason if state.ended else "the run can be continued",
        attempts=state.attempts,
        baseline=standing(state, state.baseline) if measured else None,
        champion=standing(state, state.contest.champion) if measured else None,
        difference=difference(state),
        charges=charges(state),
        agents=list(state.agents.values()),
        metric=metric.name,
        direction=metric.direction,
        seed=started.seed if started else 0,
        policy=state.task.search.policy,
        untested=untested(state) if measured else [],
        problems=list(state.problems),
        beliefs=believed(state.beliefs) if state.beliefs is not None else None,
        self_reported=self_reported(state),
        report=report,
    )


def standing(state: State, node: int) -> Standing:
    """Return the scores of the champion or the baseline."""
    if node == state.baseline:
        selected = state.selection_mean(state.baseline_values)
    else:
        selected = state.tree.nodes[node].score or 0.0
    values = [e.value for e in state.final if e.node == node and e.value is not None]
    return Standing(
        node="baseline" if node == BASELINE else node,
        selected=selected,
        fresh=_estimate(values),
        configuration=state.configuration(state.tree.nodes[node]) if state.with_levers else {},
    )


def difference(state: State) -> Estimate | None:
    """Return champion minus baseline on the final seeds where both have a value."""
    sides: dict[int, dict[int, float]] = {}
    for evaluation in state.final:
        if evaluation.value is not None:
            sides.setdefault(evaluation.seed, {})[evaluation.node] = evaluation.value
    champion, baseline = state.contest.champion, state.baseline
    pairs = [
        (s[champion], s[baseline]) for s in sides.values() if {champion, baseline} <= s.keys()
    ]
    if not pairs:
        return None
    sign = state.task.metric.sign
    return _shown(paired_difference([sign * a for a, _ in pairs], [sign * b for _, b in pairs]))


def charges(state: State) -> dict[str, dict[str, float]]:
    """Return every charge so far, by kind of work and in total."""
    ledger = state.ledger
    found = {str(kind): _charge(charge) for kind, charge in sorted(ledger.by_kind.items())}
    return {"total": _charge(ledger.spent), **found}


def _charge(charge: Charge) -> dict[str, float]:
    fields: dict[str, Any] = {f: getattr(charge, f) for f in charge.__struct_fields__}
    return {**fields, "tokens": charge.tokens}


def _estimate(values: Sequence[float]) -> Estimate | None:
    return _shown(estimate(values)) if values else None


def _shown(interval: Interval) -> Estimate:
    return Estimate(mean=interval.mean, low=interval.low, high=interval.high, n=interval.n)
