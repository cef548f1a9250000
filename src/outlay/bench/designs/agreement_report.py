"""The agreement of archived rankings with the metric, model by model and for the panel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from outlay.bench.designs.agreement import Agreement, agreement, panel_ranks
from outlay.bench.designs.archive import read_archive
from outlay.bench.designs.candidates import with_candidates
from outlay.bench.designs.collection import Setting
from outlay.bench.designs.ranking import mean_ranks
from outlay.bench.designs.scenarios import scenarios
from outlay.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


class RankingPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which model ranked.

    Attributes:
        name: Name of the setting.
        family: Its model family.
        model: Model as the endpoint calls it.
        parameters: Added to each request.
    """

    name: str
    family: str
    model: str
    parameters: dict[str, Any]

    @property
    def setting(self) -> Setting:
        """The model with its parameters."""
        return Setting(
            name=self.name, family=self.family, model=self.model, parameters=self.parameters
        )


def agreement_report(folder: Path) -> dict[str, Agreement]:
    """Return the agreement of each model in a folder, and of the panel of several.

    Args:
        folder: Holds `NAME.json` and `NAME.jsonl` of each model.

    Raises:
        InputError: There is none, or a ranking is missing or invalid.
    """
    pairs = with_candidates(scenarios())
    values = np.array([[candidate.value for candidate in four] for _, four in pairs])
    ranks = {}
    for path in sorted(folder.glob("*.json")):
        plan = msgspec.json.decode(path.read_bytes(), type=RankingPlan)
        archive = read_archive(folder / f"{plan.name}.jsonl")
        found = {s.name: mean_ranks(plan.setting, s, archive) for s, _ in pairs}
        lacking = [name for name, four in found.items() if four is None]
        if lacking:
            raise InputError(f"{plan.name}: {lacking[0]}: a ranking is missing or invalid")
        ranks[plan.name] = np.array(list(found.values()), dtype=np.float64)
    if not ranks:
        raise InputError(f"{folder}: found no rankings there; run `outlay bench designs rank`")
    report = {name: agreement(each, values) for name, each in ranks.items()}
    if len(ranks) > 1:
        report["panel"] = agreement(panel_ranks(list(ranks.values())), values)
    return report
