"""What an ablation came to: the object that `outlay ablate --json` prints."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

import msgspec

from outlay.ablations import findings
from outlay.ablations.components import Origin
from outlay.ablations.findings import Best, Conditional, Effect, Failed, Interaction, Minimal
from outlay.ablations.running import factors_of, is_noisy, most_telling
from outlay.budget import NOTHING
from outlay.summary import charges
from outlay.surfaces.factors import Config
from outlay.trust import self_reported

if TYPE_CHECKING:
    from outlay.state import State
    from outlay.surfaces.surface import Surface


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """The program as it stands.

    Attributes:
        value: Its mean where the other configurations were measured, too.
        values: One value for each of its seeds or repeats.
        noise_sd: Standard deviation of one evaluation; null where nothing tells.
    """

    value: float
    values: list[float]
    noise_sd: float | None


class Next(msgspec.Struct, frozen=True, kw_only=True):
    """The measurement that would come next.

    Attributes:
        config: Its configuration.
        gain: Share of the effects' summed uncertainty that it is expected to remove, 0 to 1; null
            for a starting point.
        reason: That in words.
        seconds: What measurements took so far, on average.
        affordable: Whether the budget still pays for it.
    """

    config: Config
    gain: float | None
    reason: str
    seconds: float
    affordable: bool


class Ablated(msgspec.Struct, frozen=True, kw_only=True):
    """What an ablation came to so far; effects and what follows are empty before the baseline.

    Attributes:
        run: Its name.
        status: `budget`, `exhausted`, `stopped`, `failed`, or `interrupted` if it can go on.
        reason: The status in one line.
        measurements: Configurations that were measured, the baseline and failed ones included.
        configurations: How many there are.
        metric: Its name.
        direction: Which way is better.
        noisy: Whether a measurement repeated would give another value.
        baseline: The program as it stands; null before it was measured.
        best: The configuration with the best predicted value.
        effects: What each option does on average.
        depends: Conditional effects of options that help in one background and harm in another:
            the surest in either direction.
        interactions: Of every two options, largest first.
        next: What would be measured next; null if nothing is left to measure.
        failed: Configurations that gave no value.
        blamed: What explains those: each entry is a list of options, or of up to three together,
            of which every failed configuration contains one and no other measured one does.
        origin: The search whose champion was taken apart; null for the ablation of a task.
        minimal: The smallest part of that champion that keeps its gain; null if its gain is not
            told from 0.
        minimal_command: How to evaluate it, where its parts are levers.
        problems: What the evaluator's checks found.
        self_reported: Whether a file that an agent could edit prints the metric.
        files: Path of each file that was written, by its name.
        charges: `total`, and by kind of work.
    """

    run: str
    status: str
    reason: str
    measurements: int
    configurations: int
    metric: str
    direction: str
    noisy: bool
    baseline: Baseline | None
    best: Best | None
    effects: list[Effect]
    depends: list[Conditional]
    interactions: list[Interaction]
    next: Next | None
    failed: list[Failed]
    blamed: list[list[Config]]
    origin: Origin | None
    minimal: Minimal | None
    minimal_command: list[str]
    problems: list[str]
    self_reported: bool
    files: dict[str, str]
    charges: dict[str, dict[str, float]]


def ablated(state: State, run: str, surface: Surface | None, origin: Origin | None) -> Ablated:
    """Return what an ablation came to.

    Args:
        state: The run's state.
        run: Its name.
        surface: What it knows; `None` before the baseline was measured.
        origin: What it took apart.
    """
    settled = sum(node.status in ("scored", "failed") for node in state.tree.nodes)
    conditional = findings.conditional_effects(surface) if surface else []
    effects = findings.effects(surface, conditional) if surface else []
    smallest = findings.minimal(surface) if surface and origin else None
    return Ablated(
        run=run,
        status=state.ended.status if state.ended else "interrupted",
        reason=state.ended.reason if state.ended else "the run can be continued",
        measurements=settled,
        configurations=factors_of(state.task).space.size,
        metric=state.task.metric.name,
        direction=state.task.metric.direction,
        noisy=is_noisy(state),
        baseline=_baseline(state, surface) if surface else None,
        best=findings.best(surface) if surface else None,
        effects=effects,
        depends=_depends(effects, conditional),
        interactions=findings.interactions(surface) if surface else [],
        next=_next(state, origin) if surface else None,
        failed=findings.failed(surface) if surface else [],
        blamed=surface.blamed() if surface else [],
        origin=origin,
        minimal=smallest,
        minimal_command=_command(state, smallest, origin),
        problems=list(state.problems),
        self_reported=origin.self_reported if origin else self_reported(state),
        files={},
        charges=charges(state),
    )


def _baseline(state: State, surface: Surface) -> Baseline:
    first = surface.factors.config(0)
    own = [taken.metrics for taken in surface.measurements if taken.config == first]
    return Baseline(
        value=fmean(value for metrics in own for value in metrics.values()),
        values=list(state.baseline_values.values()),
        noise_sd=state.contest.noise.sd if is_noisy(state) else None,
    )


def _next(state: State, origin: Origin | None) -> Next | None:
    found = most_telling(state, 1, origin)
    if not found:
        return None
    spent = state.ledger.by_kind.get("execution", NOTHING)
    seconds = spent.seconds / spent.attempts if spent.attempts else state.baseline_seconds
    left = state.ledger.remaining(state.budget, state.elapsed)
    return Next(
        config=found[0].config,
        gain=found[0].gain,
        reason=found[0].reason,
        seconds=seconds,
        affordable=(left.attempts is None or left.attempts >= 1)
        and (left.seconds is None or left.seconds >= seconds),
    )


def _depends(effects: list[Effect], conditional: list[Conditional]) -> list[Conditional]:
    """Return the surest effect up and the surest one down of every option that has both."""
    found = []
    for effect in effects:
        if effect.depends:
            here = [c for c in conditional if (c.factor, c.level) == (effect.factor, effect.level)]
            found += [max(here, key=lambda c: c.low), min(here, key=lambda c: c.high)]
    return found


def _command(state: State, smallest: Minimal | None, origin: Origin | None) -> list[str]:
    from outlay.report.attempt_cards import command_of

    if smallest is None or origin is None or origin.by != "lever":
        return []
    defaults = {lever.name: lever.options[0].name for lever in state.task.levers}
    return command_of(state.task, defaults | {k: str(v) for k, v in smallest.config.items()})
