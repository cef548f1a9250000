"""The built-in reflector: which levers to change next, and how likely each change is to help.

Pure: the same arguments give the same proposals. Untried directions come first, in the order of
the axes; then everything that has evidence, by the improvement that it promises over the best so
far. Where there are more untried directions than children, the last child is the most promising
change with evidence, if it promises more than the untried direction whose place it takes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from outlay.agents._shrinkage import Estimate
    from outlay.agents.effects import Effects
    from outlay.task import Lever

    Configuration = tuple[str, ...]
    Changes = tuple[tuple[str, str], ...]

_PAIRED = 8
"""Promising directions that are combined with each other, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One child of a node.

    Attributes:
        config: Lever to option, complete.
        changes: (lever, option) that differ from the parent, in lever order.
        axis: The lever that changes; `None` for a combination, which no registry entry counts.
        direction: Its new option; `None` for a combination.
        prior: Probability that the child is better than its parent, in (0, 1).
        hypothesis: What is expected, one sentence.
        rationale: What it rests on, one sentence.
        risks: What may go wrong, one sentence.
    """

    config: dict[str, str]
    changes: tuple[tuple[str, str], ...]
    axis: str | None
    direction: str | None
    prior: float
    hypothesis: str
    rationale: str
    risks: str


def configuration(levers: Sequence[Lever], config: Mapping[str, str]) -> Configuration:
    """Return the names of the chosen options in the order of the levers."""
    return tuple(config[lever.name] for lever in levers)


def defaults(levers: Sequence[Lever]) -> dict[str, str]:
    """Return the configuration of the program as it stands."""
    return {lever.name: lever.options[0].name for lever in levers}


def propose(
    effects: Effects,
    config: Mapping[str, str],
    count: int,
    *,
    known: Container[Configuration],
    retired: Container[tuple[str, str]] = (),
    axes: Sequence[str] | None = None,
) -> list[Proposal]:
    """Return up to `count` children of a node; fewer mean that nothing else is left here.

    Args:
        effects: What was recorded so far; it holds the levers.
        config: The node's configuration, lever to option.
        count: Children asked for.
        known: Configurations in the tree, as `configuration` gives them; never proposed again.
        retired: (lever, option) that are left out.
        axes: Names of the levers that may change, best first; `None` for all in their order.
    """
    singles = _singles(effects.levers, config, retired, axes)
    candidates: list[Changes] = [*singles, *_combinations(effects, config, singles)]
    gains = _gains(effects, config, candidates, known)
    untried = [c for c in singles if c in gains and effects.direction(*c[0]).tried == 0]
    ranked = sorted((c for c in gains if c not in untried), key=lambda c: -gains[c])
    if ranked and 1 < count <= len(untried) and gains[ranked[0]] > gains[untried[count - 1]]:
        untried[count - 1] = ranked.pop(0)
    chosen = [*untried, *ranked][:count]
    estimates = effects.differences(config, [{**config, **dict(c)} for c in chosen])
    return [_proposal(effects, config, c, e) for c, e in zip(chosen, estimates, strict=True)]


def _singles(
    levers: Sequence[Lever],
    config: Mapping[str, str],
    retired: Container[tuple[str, str]],
    axes: Sequence[str] | None,
) -> list[Changes]:
    named = {lever.name: lever for lever in levers}
    return [
        ((name, option.name),)
        for name in (named if axes is None else axes)
        for option in named[name].options
        if option.name != config[name] and (name, option.name) not in retired
    ]


def _combinations(
    effects: Effects, config: Mapping[str, str], singles: Sequence[Changes]
) -> list[Changes]:
    """Return pairs that have evidence, and the most promising changes taken together."""
    seen = [c for c in singles if effects.direction(*c[0]).mean > 0]
    estimates = effects.differences(config, [{**config, **dict(c)} for c in seen])
    order = sorted(range(len(seen)), key=lambda i: -estimates[i].mean)
    promising = [seen[i][0] for i in order[:_PAIRED]]
    pairs: list[Changes] = list(combinations(promising, 2))
    pairs += [pair for pair in _interacting(effects, singles) if pair not in pairs]
    together = [tuple(promising[:k]) for k in range(3, len(promising) + 1)]
    place = {lever.name: i for i, lever in enumerate(effects.levers)}
    ordered = [tuple(sorted(c, key=lambda change: place[change[0]])) for c in (*pairs, *together)]
    return [c for c in dict.fromkeys(ordered) if len({name for name, _ in c}) == len(c)]


def _interacting(effects: Effects, singles: Sequence[Changes]) -> list[Changes]:
    pairs = combinations([c[0] for c in singles], 2)
    found = [(pair, effects.interaction(*pair)) for pair in pairs if pair[0][0] != pair[1][0]]
    return [pair for pair, estimate in found if estimate is not None and estimate.excludes_zero()]


def _gains(
    effects: Effects,
    config: Mapping[str, str],
    candidates: Sequence[Changes],
    known: Container[Configuration],
) -> dict[Changes, float]:
    """Return what each candidate outside the tree promises over the best configuration so far."""
    children = {c: {**config, **dict(c)} for c in candidates}
    open_ = {c: v for c, v in children.items() if configuration(effects.levers, v) not in known}
    estimates = effects.differences(effects.best() or config, list(open_.values()))
    return {c: _expected_improvement(e) for c, e in zip(open_, estimates, strict=True)}


def _expected_improvement(gain: Estimate) -> float:
    """Return E[max(gain, 0)], the t distribution taken as normal (Mockus, 1978)."""
    z = gain.mean / gain.scale
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    expected = gain.mean * math.erfc(-z / math.sqrt(2)) / 2 + gain.scale * density
    # Rounded, so that the last bits of a linear algebra library never decide an order.
    return float(f"{expected:.8e}")


def _proposal(
    effects: Effects, config: Mapping[str, str], changes: Changes, estimate: Estimate
) -> Proposal:
    single = changes[0] if len(changes) == 1 else (None, None)
    what = " and ".join(f"`{lever}` to `{option}`" for lever, option in changes)
    return Proposal(
        config={**config, **dict(changes)},
        changes=changes,
        axis=single[0],
        direction=single[1],
        prior=round(min(max(estimate.probability_better(), 0.01), 0.99), 6),
        hypothesis=f"Setting {what} improves the metric.",
        rationale=_rationale(effects, changes, estimate),
        risks=_risks(changes),
    )


def _rationale(effects: Effects, changes: Changes, estimate: Estimate) -> str:
    if len(changes) == 1:
        seen = effects.direction(*changes[0])
        if seen.tried == 0:
            return "This option was not tried yet."
        if seen.scored == 0:
            return f"Tried {seen.tried} times, without a score so far."
        record = f"Its mean change over {seen.scored} scored trials is {seen.mean:+.4g}"
    else:
        record = "Each of them, or their interaction, has evidence of its own"
    return f"{record}; here the model expects {estimate.mean:+.4g} (scale {estimate.scale:.3g})."


def _risks(changes: Changes) -> str:
    if len(changes) == 1:
        return "The effect may be noise of one evaluation, or depend on other levers."
    return "The levers may cancel each other, and a failure does not tell which one is at fault."
