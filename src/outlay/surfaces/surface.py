"""The response surface as far as it is known: predictions, effects, the best configuration."""

from __future__ import annotations

from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from outlay.errors import InputError, NothingUsableError, bad_value
from outlay.surfaces import effect_rows, files
from outlay.surfaces.answers import Best, Estimate, Suggestion
from outlay.surfaces.beliefs import CHUNK, Assumptions, Beliefs, believe
from outlay.surfaces.breaking import Odds, explanations
from outlay.surfaces.earlier import standardise
from outlay.surfaces.measurements import (
    Measurement,
    Noise,
    failures,
    metric_name,
    observations,
)
from outlay.surfaces.proposal import check_count, neighbours, propose
from outlay.surfaces.readout import Readout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pandas as pd
    from matplotlib.figure import Figure

    from outlay.surfaces.cube import FloatArray, IntArray
    from outlay.surfaces.factors import Config, Factors, Inactive, Level
    from outlay.surfaces.mixture import Observations

LISTED = 4096
FEW = 512
BACKGROUNDS = 64
DRAWS = 2000
TIE = 1e-9
COLUMNS = ("mean", "low", "high", "measured", "repeats", "failed")

Direction = Literal["maximize", "minimize"]


class Surface:
    """What is known about the value of every configuration, with 90 % intervals.

    Made by `outlay.ablate` or `Ablation.surface`. In spaces of more than 4,096 configurations,
    tables cover the measured configurations and their neighbours, and averages a sample.
    """

    def __init__(
        self,
        factors: Factors,
        measurements: Sequence[Measurement],
        *,
        metric: str | None = None,
        direction: Direction | None = None,
        noise: Noise | None = None,
        equalities: Sequence[Inactive] = (),
        earlier: Sequence[FloatArray] = (),
        seed: int = 0,
    ) -> None:
        """Set up a surface; see `outlay.ablate` for the arguments.

        `noise` is `None` where a measured value is exact. `earlier` holds values of earlier
        surfaces by cell.
        """
        self.factors = factors
        self.measurements = tuple(measurements)
        self._metric = metric
        self.direction = direction
        self.noise = noise
        self.equalities = tuple(equalities)
        self.earlier = tuple(earlier)
        self.seed = seed

    @property
    def noisy(self) -> bool:
        """Whether measured values carry noise."""
        return self.noise is not None

    def __repr__(self) -> str:
        done = sum(not taken.reason for taken in self.measurements)
        return (
            f"<Surface of {', '.join(self.factors.names)}: {done} good measurements, "
            f"{self.factors.space.size} configurations{self._broken()}>"
        )

    def _broken(self) -> str:
        found = self.blamed()
        if not found:
            return ""
        parts = [", ".join(f"{n}={level}" for n, level in part.items()) for part in found[0]]
        return f"; every one measured with {' or '.join(parts)} failed, no other"

    def predict(self, config: Mapping[str, Level]) -> Estimate:
        """Return the value of a configuration; factors not named are at their default.

        Raises:
            InputError: If a factor or level is unknown.
            NothingUsableError: If nothing has been measured successfully.
        """
        return Estimate.at(self.readout.cells(np.array([self.factors.cell(config)])), 0)

    def table(self) -> pd.DataFrame:
        """Return one row per configuration: levels, mean, low, high, measured, repeats, failed.

        A factor with the name of one of these columns is called `config_NAME`.
        """
        import pandas as pd

        cells = self.covered()
        columns = self.factors.columns(COLUMNS)
        found = self.readout.cells(cells)
        repeats = dict(zip(self.readout.exact, self._seen.repeats.tolist(), strict=True))
        failed = failures(self.factors, self.measurements)
        rows = [
            {columns[name]: level for name, level in self.factors.config(cell).items()}
            | asdict(Estimate.at(found, place))
            | {"repeats": repeats.get(cell, 0), "failed": failed.get(cell, "")}
            for place, cell in enumerate(cells.tolist())
        ]
        return pd.DataFrame(rows)

    def to_pandas(self) -> pd.DataFrame:
        """Return `table()`."""
        return self.table()

    def effects(self, kind: Literal["average", "conditional"] = "average") -> pd.DataFrame:
        """Return what each level does against its factor's default.

        Columns are factor, level, effect, effect_low, effect_high. Average effects are means over
        backgrounds. Conditional effects have one row per background, which the columns of the
        other factors name (`config_NAME` for a factor called like another column), and say
        whether both ends are measured.
        """
        import pandas as pd

        if kind == "average":
            rows = self.average_rows
        elif kind == "conditional":
            rows = effect_rows.conditional_effects(self.factors, self.readout, self.covered())
        else:
            raise bad_value("effects", "kind", kind, "average or conditional")
        return pd.DataFrame(rows)

    def interactions(self) -> pd.DataFrame:
        """Return the mean second difference of every two levels of two factors.

        `u(both) - u(first) - u(second) + u(neither)` over the backgrounds of the other factors.
        """
        import pandas as pd

        return pd.DataFrame(self.interaction_rows)

    def best(self) -> Best:
        """Return the configuration with the best predicted value; ties go to fewer changes.

        Raises:
            InputError: If the direction of the metric is not given.
        """
        if self.direction is None:
            raise InputError("direction: found none, allowed: maximize or minimize")
        sign = 1.0 if self.direction == "maximize" else -1.0
        cells = self.usable()
        found = self.readout.cells(cells)
        changed = (self.factors.space.rows(cells) != 0).sum(axis=1)
        order = np.lexsort((cells, changed, -sign * found.mean))[:CHUNK]
        return Best(
            config=self.factors.config(int(cells[order[0]])),
            estimate=Estimate.at(found, int(order[0])),
            probability=self._probability_of_first(cells[order], sign),
        )

    def next(self, k: int = 1) -> list[Suggestion]:
        """Return up to `k` configurations that would tell most about the effects, and why.

        Raises:
            InputError: If `k` is below 1.
        """
        check_count("next", k)
        failed = list(failures(self.factors, self.measurements))
        rng = np.random.default_rng([self.seed, len(self.measurements)])
        found = propose(self._given, self._seen, k, rng, failed=failed)
        return [Suggestion.of(proposal, self.factors) for proposal in found]

    def structure(self) -> list[tuple[tuple[Inactive, ...], float]]:
        """Return sets of inactive options that exact ties suggest, with probabilities, best first.

        Options declared inactive are in every set; without any, the empty set stands for no such
        structure.
        """
        found = [
            (tuple(self.factors.inactive(gate) for gate in gates), probability)
            for gates, probability in self.beliefs.gates().items()
        ]
        return sorted(found, key=lambda entry: -entry[1])

    def blamed(self) -> list[list[Config]]:
        """Return what explains the failures: options that all failed configurations share.

        Each entry is one explanation: parts of a configuration, one option or up to three, such
        that every failed configuration contains one of them and no other measured one does.
        Without failures, or where nothing explains them, there is none.
        """
        space, failed = self.factors.space, failures(self.factors, self.measurements)
        bad = space.rows(np.array(list(failed), dtype=np.int64))
        good = {self.factors.cell(t.config) for t in self.measurements if not t.reason}
        found = explanations(bad, space.rows(np.array(sorted(good), dtype=np.int64)))
        return [[self.factors.part(part) for part in parts] for parts in found]

    def plot(self, kind: Literal["effects", "interactions", "surface"] = "effects") -> Figure:
        """Return a matplotlib figure: effects with intervals, interaction heat map, or tiles."""
        from outlay.surfaces.plots import plot_effects, plot_interactions, plot_surface

        kinds = {
            "effects": plot_effects,
            "interactions": plot_interactions,
            "surface": plot_surface,
        }
        if kind not in list(kinds):
            raise bad_value("plot", "kind", kind, ", ".join(kinds))
        return kinds[kind](self)

    def save(self, path: str | Path) -> None:
        """Write everything that is needed to load the surface again, as JSON.

        Raises:
            StoreError: If the file cannot be written.
        """
        content = {
            "factors": [[factor.name, list(factor.levels)] for factor in self.factors.all],
            "metric": self._metric,
            "direction": self.direction,
            "noise": self.noise,
            "equalities": [asdict(entry) for entry in self.equalities],
            "earlier": [values.tolist() for values in self.earlier],
            "seed": self.seed,
            "measurements": [asdict(taken) for taken in self.measurements],
        }
        files.write(path, content)

    @classmethod
    def load(cls, path: str | Path) -> Surface:
        """Return a saved surface.

        Raises:
            InputError: If the file is not one, of another version, or a field is wrong.
        """
        return cls(**files.read(path))

    def values_over(self, factors: Factors) -> FloatArray:
        """Return the predicted value of every cell of a space that shares factors by name.

        Factors that only this surface has are at their default; factors that only the other space
        has change nothing.

        Raises:
            InputError: If no factor is shared, or the other space is too large to list.
        """
        if factors.space.size > LISTED:
            raise bad_value("prior", "configurations", factors.space.size, f"at most {LISTED}")
        shared = [name for name in self.factors.names if name in factors.names]
        if not shared:
            raise InputError("prior: found no factor of the same name in the earlier surface")
        configs = [factors.config(cell) for cell in range(factors.space.size)]
        own = [self.factors.cell({name: config[name] for name in shared}) for config in configs]
        cells, back = np.unique(own, return_inverse=True)
        found: FloatArray = self.readout.cells(cells).mean[back]
        return found

    @cached_property
    def metric(self) -> str:
        """The metric looked at: the one named, or the only one.

        Raises:
            InputError: If there are several and none is named.
        """
        return metric_name(self.measurements, self._metric)

    @cached_property
    def _seen(self) -> Observations:
        return observations(self.factors, self.measurements, self.metric, self.noise)

    @cached_property
    def beliefs(self) -> Beliefs:
        """The plausible models.

        Raises:
            NothingUsableError: If nothing has been measured successfully.
        """
        if not len(self._seen.values):
            raise NothingUsableError("nothing has been measured successfully, so nothing is known")
        rng = np.random.default_rng([self.seed, len(self.measurements)])
        return believe(self._given, self._seen, rng, fading=True)

    @cached_property
    def readout(self) -> Readout:
        """Values, effects and sums by cell number."""
        cells = self.factors.space.cells(self._seen.rows).tolist()
        return Readout(
            space=self.factors.space,
            beliefs=self.beliefs,
            exact=dict(zip(cells, self._seen.values.tolist(), strict=True)),
            noisy=self.noisy,
            seed=self.seed,
        )

    @cached_property
    def average_rows(self) -> list[effect_rows.Row]:
        """The rows of `effects()`."""
        return effect_rows.average_effects(self.factors, self.readout, self._backgrounds())

    @cached_property
    def interaction_rows(self) -> list[effect_rows.Row]:
        """The rows of `interactions()`."""
        return effect_rows.interactions(self.factors, self.readout, self._backgrounds())

    def covered(self) -> IntArray:
        """Return the cells that tables cover: all, or the measured ones and their neighbours."""
        space = self.factors.space
        if space.size <= LISTED:
            return np.arange(space.size)
        return neighbours(space, [*self.readout.exact, *space.anchors])

    def usable(self) -> IntArray:
        """Return the covered cells without those that failed, or contain what always fails."""
        failed = failures(self.factors, self.measurements)
        return Odds.of(self.factors.space, self.readout.exact, failed).usable(self.covered())

    def read_in(self) -> IntArray:
        """Return the backgrounds that pictures and findings read conditional effects in.

        All, or in a space of more than 512 configurations the measured ones and the anchors.
        """
        space = self.factors.space
        if space.size <= FEW:
            return np.arange(space.size)
        return np.unique([*self.readout.exact, *space.anchors])

    @property
    def _given(self) -> Assumptions:
        space = self.factors.space
        return Assumptions(
            space=space,
            noisy=self.noisy,
            gates=self.factors.gates(self.equalities),
            earlier=standardise(space, self.earlier),
        )

    def _backgrounds(self) -> IntArray:
        """Return the cells that averages run over."""
        size = self.factors.space.size
        if size <= CHUNK:
            return np.arange(size)
        return np.random.default_rng(self.seed).integers(0, size, BACKGROUNDS)

    def _probability_of_first(self, cells: IntArray, sign: float) -> float:
        """Return how often the first cell is among the best in draws from the posterior."""
        mean = self.readout.cells(cells).mean
        covariance = self.readout.posterior(cells).covariance
        if not self.noisy:
            unmeasured = ~np.isin(cells, list(self.readout.exact))
            covariance = covariance * np.outer(unmeasured, unmeasured)
        draws = np.random.default_rng(self.seed).multivariate_normal(
            sign * mean, covariance, DRAWS, method="eigh"
        )
        return float((draws[:, 0] >= draws.max(axis=1) - TIE * self.beliefs.spread).mean())
