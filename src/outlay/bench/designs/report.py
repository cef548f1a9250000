"""The tables of the benchmark, computed from archived replies."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from outlay.bench.designs.archive import read_archive
from outlay.bench.designs.collection import Item, Setting, items
from outlay.bench.designs.policies import panel_means
from outlay.bench.designs.scored import Scored, score_archive, score_matrix
from outlay.bench.designs.statistics import (
    Contrast,
    Interval,
    contrasts,
    mean_interval,
    relative_increase,
    retention,
    state_means,
)
from outlay.budget import Charge
from outlay.designs.interfaces import Interface
from outlay.designs.readings import MODES, Mode
from outlay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from outlay.designs.catalogue import Catalogue

LEVELS: tuple[Interface, ...] = ("L1", "L2", "L3", "L4")
STRATEGIES: tuple[Interface, ...] = ("think_then_act", "plan_and_solve", "self_refine")
_PLANNED = (("L1", "L2"), ("L1", "L3"), ("L1", "L4"), ("L3", "L4"))
_CONTROLS: tuple[Interface, ...] = ("L3_short", "L1_padded")


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a setting's archive was collected for.

    Attributes:
        name: Name of the setting.
        family: Its model family.
        model: Model as the endpoint calls it.
        parameters: Added to each request.
        interfaces: Interfaces collected.
        repetitions: Replies for each state and interface.
        seed: Seed of the panel.
        states: Number of its states, from the first.
    """

    name: str
    family: str
    model: str
    parameters: dict[str, Any]
    interfaces: tuple[Interface, ...]
    repetitions: int
    seed: int
    states: int

    @property
    def setting(self) -> Setting:
        """The model with its parameters."""
        return Setting(
            name=self.name, family=self.family, model=self.model, parameters=self.parameters
        )

    @property
    def plan(self) -> tuple[Item, ...]:
        """Every item wanted."""
        return items(self.interfaces, self.states, self.repetitions)


class Row(NamedTuple):
    """One setting and interface.

    Attributes:
        setting: Name of the setting.
        interface: What was asked.
        efficiency: Mean affordable efficiency in percent, with its interval.
        means: Its state means, 0 to 1.
        requests: Final answers.
        parsed: Those that were valid.
        all_feasible: Those with every reading within the budget.
        feasible: Mean share of readings within the budget, invalid answers counting 0.
        modes: Mean efficiency in percent under each executor mode.
        gaps: Mean signed gaps over the valid answers: target, resolution, total; `None` if none.
        negative: Valid answers whose resolution gap is below -1e-10.
    """

    setting: str
    interface: Interface
    efficiency: Interval
    means: NDArray[np.float64]
    requests: int
    parsed: int
    all_feasible: int
    feasible: float
    modes: dict[Mode, float]
    gaps: tuple[float, float, float] | None
    negative: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that the benchmark reports about a folder of archives.

    Attributes:
        rows: One for each setting and interface (the paper's Tables I, II, V, VII, X to XII).
        contrasts: The planned paired tests, one Holm family (Table VI).
        strategies: L3 against each prompting strategy, one Holm family of its own (Table VII).
        increases: Family to the relative increase from L1 to L3, in percent.
        retained: Setting and control to the share of the L1-to-L3 gain kept, in percent.
        policies: Mean efficiency of the policies that need no model, in percent (Table XIII).
        charges: Setting to tokens, money and seconds.
        problems: Setting, interface, state, repetition and reason of each invalid answer.
    """

    rows: tuple[Row, ...]
    contrasts: tuple[Contrast, ...]
    strategies: tuple[Contrast, ...]
    increases: dict[str, Interval]
    retained: dict[str, Interval]
    policies: dict[str, float]
    charges: dict[str, Charge]
    problems: tuple[str, ...]


def read_manifests(folder: Path) -> tuple[Manifest, ...]:
    """Return the manifests (`*.json`) of a folder, by name.

    Raises:
        InputError: There is none, one is damaged, or they are of different panels.
    """
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            found.append(msgspec.json.decode(path.read_bytes(), type=Manifest))
        except msgspec.MsgspecError as error:
            raise InputError(f"{path}: {error}") from error
    if not found:
        raise InputError(
            f"{folder}: found no collection there; run `outlay bench designs collect`"
        )
    if any((a.seed, a.states) != (b.seed, b.states) for a, b in pairwise(found)):
        raise InputError(f"{folder}: the collections are of different panels")
    return tuple(found)


def report(folder: Path, tables: Sequence[Catalogue]) -> Report:
    """Return the report of a folder of archives; no call is made.

    Args:
        folder: Holds `NAME.json` and `NAME.jsonl` of each setting.
        tables: All designs of each state of the panel.

    Raises:
        InputError: A reply is missing, or an archive is damaged.
    """
    manifests = read_manifests(folder)
    rows: list[Row] = []
    problems: list[str] = []
    charges = {}
    for manifest in manifests:
        archive = read_archive(folder / f"{manifest.name}.jsonl")
        charges[manifest.name] = sum((x.charge for x in archive.values()), start=Charge())
        scores = {
            mode: score_archive(manifest.setting, manifest.plan, archive, tables, mode)
            for mode in MODES
        }
        rows.extend(_row(manifest, interface, scores) for interface in manifest.interfaces)
        problems.extend(_problem(s) for s in scores["default"] if s.problem)
    means = {(row.setting, row.interface): row.means for row in rows}
    families = _families(manifests)
    return Report(
        rows=tuple(rows),
        contrasts=contrasts(list(_planned(families, means))),
        strategies=contrasts(list(_strategies(manifests, means))),
        increases=dict(_increases(families, means)),
        retained=dict(_retained(manifests, means)),
        policies=panel_means(manifests[0].seed),
        charges=charges,
        problems=tuple(problems),
    )


def _row(
    manifest: Manifest, interface: Interface, scores: Mapping[Mode, tuple[Scored, ...]]
) -> Row:
    shape = manifest.states, manifest.repetitions
    means = {
        mode: state_means(score_matrix(found, interface, *shape)) for mode, found in scores.items()
    }
    answers = [s for s in scores["default"] if s.item.interface == interface]
    lost = [s.gaps for s in answers if s.gaps is not None]
    mean_gaps = tuple(float(x) for x in np.mean(lost, axis=0)) if lost else None
    value, low, high = mean_interval(means["default"])
    return Row(
        manifest.name,
        interface,
        Interval(100 * value, 100 * low, 100 * high),
        means["default"],
        len(answers),
        len(lost),
        sum(s.feasible == 1 for s in answers),
        float(np.mean([s.feasible for s in answers])),
        {mode: 100 * float(found.mean()) for mode, found in means.items()},
        None if mean_gaps is None else (mean_gaps[0], mean_gaps[1], mean_gaps[2]),
        sum(gap.resolution < -1e-10 for gap in lost),
    )


def _problem(scored: Scored) -> str:
    item = scored.item
    where = f"{scored.setting} {item.interface} state {item.state} repetition {item.repetition}"
    return f"{where}: {scored.problem}"


def _families(manifests: Sequence[Manifest]) -> dict[str, list[str]]:
    families: dict[str, list[str]] = {}
    for manifest in manifests:
        families.setdefault(manifest.family, []).append(manifest.name)
    return families


def _pooled(
    names: Sequence[str],
    interface: str,
    means: Mapping[tuple[str, Any], NDArray[np.float64]],
) -> NDArray[np.float64] | None:
    """Return the state means averaged over a family's settings, `None` if one lacks them."""
    found = [means[name, interface] for name in names if (name, interface) in means]
    return np.mean(found, axis=0) if len(found) == len(names) else None


def _planned(
    families: Mapping[str, Sequence[str]],
    means: Mapping[tuple[str, Any], NDArray[np.float64]],
) -> Iterator[tuple[str, NDArray[np.float64], NDArray[np.float64]]]:
    """Yield the planned contrasts: four for each family, and four between settings.

    The last four compare the two settings of the first family that has exactly two.
    """
    for family, names in families.items():
        for first, second in _PLANNED:
            a, b = _pooled(names, first, means), _pooled(names, second, means)
            if a is not None and b is not None:
                yield f"{family}: {first} to {second}", a, b
    for names in families.values():
        if len(names) == 2:
            for level in LEVELS:
                a, b = (means.get((name, level)) for name in names)
                if a is not None and b is not None:
                    yield f"{level}: {names[0]} to {names[1]}", a, b
            return


def _strategies(
    manifests: Sequence[Manifest], means: Mapping[tuple[str, Any], NDArray[np.float64]]
) -> Iterator[tuple[str, NDArray[np.float64], NDArray[np.float64]]]:
    for manifest in manifests:
        for strategy in STRATEGIES:
            a, b = means.get((manifest.name, "L3")), means.get((manifest.name, strategy))
            if a is not None and b is not None:
                yield f"{manifest.name}: L3 to {strategy}", a, b


def _increases(
    families: Mapping[str, Sequence[str]],
    means: Mapping[tuple[str, Any], NDArray[np.float64]],
) -> Iterator[tuple[str, Interval]]:
    for family, names in families.items():
        base, other = _pooled(names, "L1", means), _pooled(names, "L3", means)
        if base is not None and other is not None and base.mean() > 0:
            yield family, relative_increase(base, other)


def _retained(
    manifests: Sequence[Manifest], means: Mapping[tuple[str, Any], NDArray[np.float64]]
) -> Iterator[tuple[str, Interval]]:
    for manifest in manifests:
        name_only, complete = means.get((manifest.name, "L1")), means.get((manifest.name, "L3"))
        for control in _CONTROLS:
            short = means.get((manifest.name, control))
            if short is not None and name_only is not None and complete is not None:
                yield f"{manifest.name}: {control}", retention(short, name_only, complete)
