"""Outlay spends research effort where it pays.

    run = outlay.search("examples/digits")
    print(run.champion, run.difference)

Public names load when they are first used, so that importing the package is cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outlay.ablations.api import ablate_run, ablate_task
    from outlay.api import Ask, Study, search
    from outlay.designs.planning import Plan, design
    from outlay.designs.states import ResearchState
    from outlay.errors import (
        BudgetError,
        InputError,
        NothingUsableError,
        OutlayError,
        StoreError,
    )
    from outlay.run import Run
    from outlay.surfaces.ablation import Ablation
    from outlay.surfaces.calling import ablate
    from outlay.surfaces.surface import Surface
    from outlay.task import (
        Agent,
        Budget,
        Coordination,
        Evaluator,
        Lever,
        Limits,
        Metric,
        Option,
        Price,
        Sandbox,
        Search,
        Seeds,
        Task,
        Workspace,
    )
    from outlay.taskfile import load

__all__ = [
    "Ablation",
    "Agent",
    "Ask",
    "Budget",
    "BudgetError",
    "Coordination",
    "Evaluator",
    "InputError",
    "Lever",
    "Limits",
    "Metric",
    "NothingUsableError",
    "Option",
    "OutlayError",
    "Plan",
    "Price",
    "ResearchState",
    "Run",
    "Sandbox",
    "Search",
    "Seeds",
    "StoreError",
    "Study",
    "Surface",
    "Task",
    "Workspace",
    "ablate",
    "ablate_run",
    "ablate_task",
    "design",
    "load",
    "search",
]

_HOMES = {
    "outlay.ablations.api": ("ablate_run", "ablate_task"),
    "outlay.api": ("Ask", "Study", "search"),
    "outlay.designs.planning": ("Plan", "design"),
    "outlay.designs.states": ("ResearchState",),
    "outlay.errors": (
        "BudgetError",
        "InputError",
        "NothingUsableError",
        "OutlayError",
        "StoreError",
    ),
    "outlay.run": ("Run",),
    "outlay.surfaces.ablation": ("Ablation",),
    "outlay.surfaces.calling": ("ablate",),
    "outlay.surfaces.surface": ("Surface",),
    "outlay.taskfile": ("load",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'outlay' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME.get(name, "outlay.task")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
