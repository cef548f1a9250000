"""The baseline, and the scale that follows from it."""

from __future__ import annotations

from statistics import fmean, stdev
from typing import TYPE_CHECKING

from outlay import events
from outlay.allocation.reward import fix_scale

if TYPE_CHECKING:
    from outlay.events import AnyEvent
    from outlay.state import State

NOISE_SEEDS = 2
"""Seeds of the baseline beyond the selection seeds, from the head of the confirmation stream."""


def baseline_seeds(state: State) -> tuple[int, ...]:
    """Return the seeds of the baseline: selection seeds, then `NOISE_SEEDS` for the noise."""
    seeds = state.task.seeds
    return (*seeds.selection, *range(seeds.confirmation, seeds.confirmation + NOISE_SEEDS))


def measure_baseline(state: State) -> AnyEvent | None:
    """Return the launch of the baseline, or how the run ends where it has no score."""
    if state.baseline_fault is not None:
        fault = state.baseline_fault
        return events.RunEnded(status="failed", reason=f"baseline: {fault.reason}")
    if state.defaults_differ:
        return events.RunEnded(status="failed", reason=state.problems[-1])
    if state.works:
        return None
    first = state.task.seeds.selection[0]
    checks = [("repeat", first)]
    if any(not lever.options[0].is_plain for lever in state.task.levers):
        checks.append(("bare", first))
    return events.MeasurementLaunched(
        work="m1",
        trial=1,
        purpose="baseline",
        runs=tuple((state.baseline, seed) for seed in baseline_seeds(state)),
        checks=tuple(checks),
    )


def scale_from_baseline(state: State) -> AnyEvent | None:
    """Return the scale of rewards, once the baseline is measured."""
    values = list(state.baseline_values.values())
    if not values or state.defaults_differ:
        return None
    spread = stdev(values) if len(values) > 1 else 0.0
    scale = fix_scale(state.task.metric, fmean(values), spread)
    return events.ScaleFixed(center=fmean(values), scale=scale)
