"""`outlay.ablate`: an ablation of a function that is called here."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from outlay.errors import BudgetError, InputError, NothingUsableError, bad_value
from outlay.surfaces.ablation import Ablation
from outlay.surfaces.factors import Config, Inactive, Level
from outlay.surfaces.files import held
from outlay.surfaces.measurements import metric_name, one_value_each
from outlay.surfaces.surface import Direction, Surface

if TYPE_CHECKING:
    from outlay.task import Budget

Program = Callable[[Config], float | Mapping[str, float]]


def ablate(
    fn: Program,
    factors: Sequence[str] | Mapping[str, Sequence[Level]],
    budget: int | Budget,
    *,
    direction: Direction | None = None,
    metric: str | None = None,
    noisy: bool = False,
    noise: float | None = None,
    equalities: Sequence[Inactive] = (),
    prior: Surface | Sequence[Surface] = (),
    cost: Callable[[Config], float] | None = None,
    save: str | Path | None = None,
    seed: int = 0,
    clock: Callable[[], float] = time.monotonic,
) -> Surface:
    """Return the response surface of `fn` over all settings of `factors`, from a few calls.

    `fn` is called with one configuration at a time (factor name to level) and returns a number or
    metrics by name. If it raises, or returns something that is not finite, that measurement has
    failed: it counts in the budget, its configuration is marked, and the run goes on.

    Args:
        fn: The program.
        factors: Names of switches (off and on), or names with their levels, the default first.
        budget: Number of calls; or `Budget` with `attempts` (calls), `seconds` or `usd`.
        direction: Which way the metric is better; needed by `Surface.best` only.
        metric: Which of several metrics to learn about.
        noisy: Whether repeating a call gives another value. Repeats are then bought where they
            tell most, and count in the budget.
        noise: Standard deviation of one call, if it is known; noisy then, and surer of effects.
        equalities: Options known to change nothing while another is at some level.
        prior: Earlier surfaces of the same workflow, over other data.
        cost: US dollars of one call; purchases then weigh what they tell by it.
        save: File that is written after every call. If it exists, the run continues from it.
        seed: Seed of the samples that large spaces need.
        clock: Seconds, for the budget.

    Raises:
        InputError: If an argument is wrong; nothing has been called then, except for `metric`,
            which can only be checked against what the first call returned.
        BudgetError: If the budget does not pay for one call.
        NothingUsableError: If every call failed, or both starting points for one reason.
        StoreError: If another process has the file, or it cannot be written; nothing has been
            called then.
    """
    ablation = Ablation(
        factors,
        budget=budget,
        direction=direction,
        metric=metric,
        noisy=noisy,
        noise=noise,
        equalities=equalities,
        prior=prior,
        cost=cost,
        seed=seed,
    )
    return _run(ablation, fn, save, clock)


def _run(
    ablation: Ablation, fn: Program, save: str | Path | None, clock: Callable[[], float]
) -> Surface:
    """Measure until the budget is spent or nothing is left that would tell more."""
    if not callable(fn):
        raise bad_value("ablate", "fn", fn, "a function; `ablate_task` ablates a task")
    is_path = isinstance(save, str | Path)
    if save is not None and not (
        is_path and Path(save).parent.is_dir() and not Path(save).is_dir()
    ):
        found = str(save) if is_path else save
        raise bad_value("ablate", "save", found, "a file in a folder that there is")
    with nullcontext() if save is None else held(save):
        if save is not None and Path(save).exists():
            _continue(ablation, save)
        while ablation.remaining and (asked := ablation.ask()):
            _measure(ablation, fn, asked[0].config, clock)
            _refuse_broken(ablation)
            if save is not None and _worth_saving(ablation):
                ablation.surface().save(save)
            metric_name(ablation.measurements, ablation.metric)
    if not ablation.measurements:
        raise BudgetError("ablate: the budget does not pay for one measurement")
    if all(taken.reason for taken in ablation.measurements):
        reasons = {taken.reason for taken in ablation.measurements}
        raise NothingUsableError(f"ablate: every measurement failed: {'; '.join(sorted(reasons))}")
    return ablation.surface()


def _measure(ablation: Ablation, fn: Program, config: Config, clock: Callable[[], float]) -> None:
    """Call the program once and record what came of it; an interrupt records nothing."""
    start = clock()
    try:
        value = fn(dict(config))
    except (Exception, SystemExit) as error:
        # Whatever the program raises is a finding about this configuration, not about the run.
        ablation.fail(config, f"{type(error).__name__}: {error}", seconds=clock() - start)
        return
    try:
        ablation.tell(config, value, seconds=clock() - start)
    except InputError as error:
        ablation.fail(config, str(error), seconds=clock() - start)
        first = not any(taken.metrics for taken in ablation.measurements)
        if first and isinstance(value, Mapping) and ablation.metric not in (None, *value):
            raise  # a metric that is called otherwise would cost every call of the budget


def _refuse_broken(ablation: Ablation) -> None:
    """Stop where both starting points broke for one reason: so would every other call."""
    taken = ablation.measurements
    if len(taken) == 2 and taken[0].reason and taken[0].reason == taken[1].reason:
        raise NothingUsableError(
            f"ablate: both starting points failed alike, so nothing more was called: "
            f"{taken[0].reason}"
        )


def _worth_saving(ablation: Ablation) -> bool:
    """Return whether going on from here beats beginning again, once the program is mended."""
    return any(taken.metrics for taken in ablation.measurements)


def _continue(ablation: Ablation, path: str | Path) -> None:
    """Take over what a file holds, if this ablation could have written it."""
    earlier = Surface.load(path)
    if earlier.factors != ablation.factors:
        raise InputError(f"{path}: holds other factors; name another file to save to")
    try:
        metric_name(earlier.measurements, ablation.metric)
        if ablation.noise is None:
            one_value_each(earlier.measurements)
    except InputError as error:
        raise InputError(f"{path}: {error}; or name another file to save to") from None
    ablation.measurements = list(earlier.measurements)
