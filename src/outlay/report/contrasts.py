"""What levers do, two ways: a model of all scores, and pairs that differ in one lever only."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from outlay.coordination.estimates import paired_difference, t_upper
from outlay.report.words import off_baseline

if TYPE_CHECKING:
    from outlay.agents._shrinkage import Estimate
    from outlay.state import State


class Effect(NamedTuple):
    """What changing one lever does; positive is better, metric units.

    Attributes:
        lever: The lever.
        before: Option it is changed from.
        option: Option it is changed to.
        mean: Estimate.
        low: Lower end of the 95 % interval.
        high: Upper end.
        basis: What it rests on: attempts that set this lever alone to one of the two options, or
            pairs of evaluations.
    """

    lever: str
    before: str
    option: str
    mean: float
    low: float
    high: float
    basis: int

    @property
    def verdict(self) -> str:
        """`helped`, `hurt`, or `unknown` where the interval holds 0 or rests on nothing."""
        if not self.basis:
            return "unknown"
        return "helped" if self.low > 0 else "hurt" if self.high < 0 else "unknown"


def untried(state: State) -> list[tuple[str, str]]:
    """Return every (lever, option) that no scored configuration has."""
    scored = (node for node in state.tree.nodes if node.status == "scored")
    seen = {item for node in scored for item in state.configuration(node).items()}
    options = [(lever.name, o.name) for lever in state.task.levers for o in lever.options]
    return [option for option in options if option not in seen]


def modelled(state: State) -> list[Effect]:
    """Return the effect of every option with a score, set alone in the program as it stands."""
    default = {lever.name: lever.options[0].name for lever in state.task.levers}
    moves = [(lever.name, o.name) for lever in state.task.levers for o in lever.options[1:]]
    left_out = set(untried(state))
    return _modelled(state, default, [move for move in moves if move not in left_out])


def undone(state: State) -> list[Effect]:
    """Return the effect of taking back each change of the champion, everything else kept."""
    champion = max(state.contest.champion, 0)
    default = {lever.name: lever.options[0].name for lever in state.task.levers}
    moves = [(lever, default[lever]) for lever in off_baseline(state, champion)]
    return _modelled(state, state.configuration(state.tree.nodes[champion]), moves)


def _modelled(state: State, base: dict[str, str], moves: list[tuple[str, str]]) -> list[Effect]:
    found = state.effects.differences(base, [{**base, lever: to} for lever, to in moves])
    return [
        _effect(state, lever, base[lever], option, estimate)
        for (lever, option), estimate in zip(moves, found, strict=True)
    ]


def _effect(state: State, lever: str, before: str, option: str, found: Estimate) -> Effect:
    half = t_upper(0.025, found.df) * found.scale
    tried = sum(state.effects.direction(lever, name).tried for name in (before, option))
    return Effect(lever, before, option, found.mean, found.mean - half, found.mean + half, tried)


def measured(state: State) -> list[Effect]:
    """Return the effects seen on fresh seeds that two programs shared which differ in one lever.

    These are the comparisons of challengers with champions, and the final one. Comparisons of the
    same change within different settings of the other levers stay apart.
    """
    couples = [(found.node, found.incumbent) for found in state.judgements]
    reigns = [state.baseline, *(j.node for j in state.judgements if j.event.promoted)]
    couples += [(after, before) for before, after in pairwise(reigns)]
    couples.append((state.contest.champion, state.baseline))
    by_node: dict[int, dict[int, float]] = {node: {} for couple in couples for node in couple}
    for (node, seed), value in state.values.items():
        if node in by_node and seed not in state.task.seeds.selection:
            by_node[node][seed] = value
    found = [_measured(state, by_node, *couple) for couple in dict.fromkeys(couples)]
    return [effect for effect in found if effect is not None]


def _measured(
    state: State, values: dict[int, dict[int, float]], node: int, other: int
) -> Effect | None:
    after, before = (state.configuration(state.tree.nodes[n]) for n in (node, other))
    changed = [lever for lever in after if after[lever] != before[lever]]
    shared = sorted(values[node].keys() & values[other].keys())
    if len(changed) != 1 or len(shared) < 2:
        return None
    sides = [[state.oriented(values[n][seed]) for seed in shared] for n in (node, other)]
    found = paired_difference(sides[0], sides[1])
    if found.low is None or found.high is None:
        return None
    lever = changed[0]
    return Effect(
        lever, before[lever], after[lever], found.mean, found.low, found.high, len(shared)
    )
