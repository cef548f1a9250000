"""An ablation as ask and tell: what to measure next, and what came out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from outlay.errors import BudgetError, InputError, bad_value
from outlay.surfaces.answers import Suggestion
from outlay.surfaces.beliefs import Assumptions
from outlay.surfaces.earlier import standardise
from outlay.surfaces.factors import Config, Inactive, Level, read_factors
from outlay.surfaces.files import is_amount, is_seed
from outlay.surfaces.measurements import (
    Measurement,
    Noise,
    failures,
    metric_name,
    observations,
    read_metrics,
    read_noise,
    two_values,
)
from outlay.surfaces.prices import Prices
from outlay.surfaces.proposal import check_count, propose
from outlay.surfaces.surface import Direction, Surface
from outlay.task import Budget


class Ablation:
    """Ask what to measure, tell what came out; the surface is there at any time.

    Budget counts every measurement, the two starting points included: all factors at their first
    level, and all at their last.

    Example:
        >>> ablation = Ablation(["cache", "index"], budget=4)
        >>> while ablation.remaining:
        ...     for suggestion in ablation.ask():
        ...         config = suggestion.config
        ...         ablation.tell(config, 1.0 + 2.0 * config["cache"])
        >>> round(ablation.surface().predict({"cache": True}).mean, 6)
        3.0
    """

    def __init__(
        self,
        factors: Sequence[str] | Mapping[str, Sequence[Level]],
        *,
        budget: int | Budget,
        direction: Direction | None = None,
        metric: str | None = None,
        noisy: bool = False,
        noise: float | None = None,
        equalities: Sequence[Inactive] = (),
        prior: Surface | Sequence[Surface] = (),
        cost: Callable[[Config], float] | None = None,
        seed: int = 0,
    ) -> None:
        """Set up an ablation, with the arguments of `ablate`; nothing is measured yet.

        Raises:
            InputError: If an argument is wrong.
        """
        self.factors = read_factors(factors)
        self.noise = read_noise(noisy, noise)
        self.budget = _read_budget(budget, self.factors.space.size, self.noise, cost)
        if direction not in (None, "maximize", "minimize"):
            raise bad_value("ablate", "direction", direction, "maximize or minimize")
        if metric is not None and not isinstance(metric, str):
            raise bad_value("ablate", "metric", metric, "the name of one")
        if not isinstance(equalities, Iterable):
            raise bad_value("ablate", "equalities", equalities, "a list of Inactive")
        self.direction, self.metric = direction, metric
        self.equalities, self.seed = tuple(equalities), seed
        if not is_seed(seed):
            raise bad_value("ablate", "seed", seed, "a whole number, at least 0")
        self._prices = Prices(self.factors, cost)
        self._earlier = [surface.values_over(self.factors) for surface in _surfaces(prior)]
        self._given = Assumptions(
            space=self.factors.space,
            noisy=self.noise is not None,
            gates=self.factors.gates(self.equalities),
            earlier=standardise(self.factors.space, self._earlier),
        )
        self.measurements: list[Measurement] = []
        self._asked: list[int] = []

    @property
    def remaining(self) -> int:
        """Measurements that may still be asked for; 0 once any limit is reached."""
        limits = self.budget
        seconds = sum(taken.seconds for taken in self.measurements)
        if limits.seconds is not None and seconds >= limits.seconds:
            return 0
        left = self.factors.space.size if limits.attempts is None else limits.attempts
        if limits.usd is not None:
            cheapest = min(map(self._prices, self._open_sample()), default=0.0)
            if self._usd_left() < cheapest:
                return 0
        return max(0, left - len(self.measurements) - len(self._asked))

    def ask(self, k: int = 1) -> list[Suggestion]:
        """Return up to `k` configurations to measure now; each must be told or failed.

        Fewer come back when nothing is left that would tell more, or that the money pays for.

        Raises:
            InputError: If `k` is below 1, or `cost` gives no price.
            BudgetError: If `k` measurements are more than the budget still allows; none is asked.
        """
        check_count("ask", k)
        if k > self.remaining:
            raise BudgetError(f"ask: {k} measurements exceed the {self.remaining} that remain")
        name = metric_name(self.measurements, self.metric)
        found = propose(
            self._given,
            observations(self.factors, self.measurements, name, self.noise),
            k,
            np.random.default_rng([self.seed, len(self.measurements), len(self._asked)]),
            failed=list(failures(self.factors, self.measurements)),
            pending=self._asked,
            prices=self._prices if self._prices.given else None,
            purse=self._usd_left(),
        )
        self._asked += [proposal.cell for proposal in found]
        return [
            Suggestion.of(proposal, self.factors, self._prices(proposal.cell))
            for proposal in found
        ]

    def tell(
        self,
        config: Mapping[str, Level],
        value: float | Mapping[str, float],
        *,
        seconds: float = 0.0,
        usd: float | None = None,
    ) -> None:
        """Record what a measurement gave: a number, or metrics by name.

        A configuration that was not asked for is welcome, and counts in the budget. Without
        noise a value that is known already changes nothing and counts nothing.

        Raises:
            InputError: If factor, level or value are wrong (report a failed run with `fail`), or
                another value of this configuration is known and noise was not spoken of.
            BudgetError: If the budget is spent.
        """
        metrics = read_metrics(value)
        known = (name for taken in self.measurements for name in taken.metrics)
        wanted = self.metric or next(known, None)
        if wanted is not None and wanted not in metrics:
            raise InputError(f"metric: found {', '.join(metrics)}, allowed: {wanted}")
        if self.noise is not None or not self._is_known(config, metrics):
            self._record(config, metrics, "", seconds, usd)

    def fail(
        self,
        config: Mapping[str, Level],
        reason: str,
        *,
        seconds: float = 0.0,
        usd: float | None = None,
    ) -> None:
        """Record that a measurement failed, and why; it counts in the budget."""
        self._record(config, {}, reason or "failed", seconds, usd)

    def surface(self) -> Surface:
        """Return what is known by now."""
        return Surface(
            self.factors,
            self.measurements,
            metric=self.metric,
            direction=self.direction,
            noise=self.noise,
            equalities=self.equalities,
            earlier=self._earlier,
            seed=self.seed,
        )

    def _record(
        self,
        config: Mapping[str, Level],
        metrics: dict[str, float],
        reason: str,
        seconds: float,
        usd: float | None,
    ) -> None:
        for name, amount in (("seconds", seconds), ("usd", usd)):
            if not (is_amount(amount) or (name == "usd" and amount is None)):
                raise bad_value("tell", name, amount, "a finite number, at least 0")
        cell = self.factors.cell(config)
        if cell in self._asked:
            self._asked.remove(cell)
        elif not self.remaining:
            raise BudgetError("tell: the budget is spent, so this measurement was not recorded")
        self.measurements.append(
            Measurement(
                config=self.factors.config(cell),
                metrics=metrics,
                reason=reason,
                seconds=seconds,
                usd=self._prices(cell) if usd is None else usd,
            )
        )

    def _is_known(self, config: Mapping[str, Level], metrics: dict[str, float]) -> bool:
        """Return whether an exact measurement says the same already."""
        full = self.factors.config(self.factors.cell(config))
        for taken in self.measurements:
            if taken.config == full and taken.metrics:
                for name in metrics.keys() & taken.metrics.keys():
                    if metrics[name] != taken.metrics[name]:
                        raise two_values(full, name, taken.metrics[name], metrics[name])
                return True
        return False

    def _usd_left(self) -> float:
        spent = sum(taken.usd for taken in self.measurements) + sum(map(self._prices, self._asked))
        return float("inf") if self.budget.usd is None else self.budget.usd - spent

    def _open_sample(self) -> list[int]:
        """Return cells whose price says whether anything is affordable."""
        done = {self.factors.cell(taken.config) for taken in self.measurements}
        size = min(self.factors.space.size, 1024)
        return [cell for cell in range(size) if cell not in done or self.noise is not None]


def _surfaces(prior: object) -> tuple[Surface, ...]:
    """Return the earlier surfaces; a single one needs no list."""
    found = tuple(prior) if isinstance(prior, list | tuple) else (prior,)
    for surface in found:
        if not isinstance(surface, Surface):
            allowed = "a Surface, or a list of them; `Surface.load` reads one from its file"
            raise bad_value("ablate", "prior", surface, allowed)
    return found


def _read_budget(
    budget: int | Budget, size: int, noise: Noise | None, cost: Callable[[Config], float] | None
) -> Budget:
    if isinstance(budget, bool) or not isinstance(budget, int | Budget):
        raise bad_value("ablate", "budget", budget, "a number of measurements, or a Budget")
    limits = Budget(attempts=budget) if isinstance(budget, int) else budget
    if limits.attempts is not None and type(limits.attempts) is not int:
        raise bad_value("ablate", "budget.attempts", limits.attempts, "a whole number")
    for name, amount in (("seconds", limits.seconds), ("usd", limits.usd)):
        if amount is not None and not is_amount(amount):
            raise bad_value("ablate", f"budget.{name}", amount, "a finite number, at least 0")
    if limits.tokens is not None:
        raise bad_value("ablate", "budget.tokens", limits.tokens, "attempts, seconds or usd")
    if limits.attempts is None and limits.seconds is None and limits.usd is None:
        raise InputError("budget: found no limit, allowed: attempts, seconds or usd")
    if limits.attempts is not None and limits.attempts < 1:
        raise bad_value("ablate", "budget", limits.attempts, "at least 1")
    if limits.attempts is not None and limits.attempts > size and noise is None:
        raise bad_value("ablate", "budget", limits.attempts, f"at most {size}: all configurations")
    if limits.usd is not None and cost is None:
        raise InputError("cost: found none, allowed: a function, as the budget is in usd")
    return limits
