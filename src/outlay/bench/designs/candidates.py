"""Four candidate actions for each scenario, and what each is worth by the metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from outlay.designs.catalogue import Catalogue, catalogue, fits
from outlay.designs.costs import Design
from outlay.designs.readings import Action, readings
from outlay.designs.scores import utility

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlay.bench.designs.scenarios import Scenario

_LABELS = ("replicated", "moderate", "minimal")
_MIDDLE_SEEDS, _FEWEST_SEEDS = 5, 2


class Candidate(NamedTuple):
    """One proposal.

    Attributes:
        label: How it was built; never shown to a judge, and no statement about its quality.
        text: What a judge sees.
        action: What the text says.
        value: Its utility in the scenario: information per cost, gated reading by reading.
    """

    label: str
    text: str
    action: Action
    value: float


def with_candidates(
    found: Sequence[Scenario],
) -> tuple[tuple[Scenario, tuple[Candidate, ...]], ...]:
    """Return each scenario with its candidates, the variation numbered in the order given."""
    return tuple((scenario, candidates(scenario, n)) for n, scenario in enumerate(found))


def candidates(scenario: Scenario, variation: int) -> tuple[Candidate, ...]:
    """Return three parameterised proposals and one that only names the action.

    The mechanisms are ranked by prior, ties by index. The proposals take the arms ranked 1 and 2,
    3 and 4, and 5 and 6, with the first of each pair as target. One of them has as many seeds as
    the budget pays for (`replicated`), one 5 or as many as it pays for (`moderate`), one 2
    (`minimal`); which one has which moves on by one place with the variation. The fourth proposal
    is completed by the executor.
    """
    state = scenario.state
    table = catalogue(state)
    ranked = sorted(range(len(state.arms)), key=lambda j: -state.prior[j])
    most = max(n for n in state.seed_range if fits(state, Design((0, 1), n)))
    seeds = (most, min(_MIDDLE_SEEDS, most), _FEWEST_SEEDS)
    built = []
    for place in range(len(_LABELS)):
        pair = ranked[2 * place], ranked[2 * place + 1]
        kind = (place + variation) % len(_LABELS)
        action = Action(target=pair[0], arms=tuple(sorted(pair)), seeds=seeds[kind])
        text = _text(scenario, pair, seeds[kind])
        built.append(_candidate(_LABELS[kind], text, action, table))
    name_only = "Run an ablation of the components and see which of them matters."
    built.append(_candidate("name", name_only, Action(), table))
    return tuple(built)


def _candidate(label: str, text: str, action: Action, table: Catalogue) -> Candidate:
    return Candidate(label, text, action, utility(table, readings(table.state, action)))


def _text(scenario: Scenario, pair: tuple[int, int], seeds: int) -> str:
    first, second = (scenario.mechanisms[arm] for arm in pair)
    return (
        f"Focus on {first.arm}: {first.intervention}; beside it {second.intervention} "
        f"({second.arm}). Run each and the baseline with {seeds} seeds."
    )
