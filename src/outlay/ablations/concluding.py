"""The end of a sitting of an ablation: what was found, and the files that hold it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from outlay.ablations.components import patch_of
from outlay.ablations.running import reasons, surface_of
from outlay.ablations.summary import ablated
from outlay.doctor import refuse_baseline
from outlay.execution.folder import write_whole
from outlay.report.ablation import write_ablation
from outlay.report.programs import prefix_in_repository

if TYPE_CHECKING:
    from outlay.ablations.planning import Plan
    from outlay.ablations.summary import Ablated
    from outlay.driver import Driver
    from outlay.state import State
    from outlay.surfaces.surface import Surface


class Conclusion(NamedTuple):
    """What a sitting came to.

    Attributes:
        found: The findings, with the files that were written.
        surface: What is known; `None` before the baseline was measured.
        missing: Why there are no pictures; empty if there are.
    """

    found: Ablated
    surface: Surface | None
    missing: str


def conclude(driver: Driver, plan: Plan) -> Conclusion:
    """Write everything into the run's folder, and return what was found.

    Raises:
        OutlayError: If the program has no score as it stands.
    """
    state = driver.state
    refuse_baseline(state, f"run {plan.run!r}")
    if state.reward is None:
        return Conclusion(ablated(state, plan.run, None, plan.origin), None, "")
    surface = surface_of(state, reasons(driver.store.read(plan.run)), plan.origin)
    found = ablated(state, plan.run, surface, plan.origin)
    files, missing = write_ablation(found, surface, state.task.question, plan.folder)
    files |= _minimal_patch(found, state, plan.folder)
    return Conclusion(msgspec.structs.replace(found, files=files), surface, missing)


def _minimal_patch(found: Ablated, state: State, folder: Path) -> dict[str, str]:
    """Write the minimal champion as a patch, where its parts are patches."""
    started, origin, small = state.started, found.origin, found.minimal
    if started is None or small is None or origin is None or origin.by == "lever":
        return {}
    prefix = prefix_in_repository(Path(state.task.workspace.path))
    place = folder / "minimal.patch"
    text = patch_of(state.task, started.files, folder / "objects", small.config, prefix)
    write_whole(place, text)
    return {place.name: str(place)}
