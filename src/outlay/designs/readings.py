"""What an instruction leaves open: the designs that an executor may read into an action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from outlay.designs.catalogue import cost
from outlay.designs.costs import Design

if TYPE_CHECKING:
    from outlay.designs.states import ResearchState

Mode = Literal["conservative", "default", "permissive"]
MODES: tuple[Mode, ...] = ("conservative", "default", "permissive")

TARGET_MASS = 0.8
SHARPNESS = 0.75
_SCAN_ARMS = (1, 2, 4)
_SCAN_SEEDS = 2
_REPEATED_SEEDS = 4
_TARGET_SEEDS = (2, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What a reply asks for; fields that it leaves out are `None`.

    Attributes:
        name: Kind of action.
        target: Index of the arm in focus.
        arms: Indices of the arms to run, ascending.
        seeds: Seeds for each condition.
        criterion: What would count as success. Recorded, never scored.
        prediction: What is expected. Recorded, never scored.
    """

    name: str = "ablate"
    target: int | None = None
    arms: tuple[int, ...] | None = None
    seeds: int | None = None
    criterion: str | None = None
    prediction: str | None = None


def readings(state: ResearchState, action: Action, mode: Mode = "default") -> tuple[Design, ...]:
    """Return the reading set of an action: the designs that a fixed executor may run.

    Arms and seeds together are one reading. A target alone gets the target-focus rule: its arm
    and the next most probable one under the focused distribution, at two numbers of seeds. Neither
    gives the component scan. Arms without seeds, and seeds without arms, which the paper's
    interfaces never ask for, keep what is stated and complete the rest by the same two rules.
    Numbers that a state does not have are replaced by the nearest that it has.

    Args:
        state: The state in which the action is taken.
        action: Its arms and seeds exist in the state.
        mode: `conservative` keeps the cheaper half, `permissive` the dearer half.
    """
    return executed(state, _completed(state, action), mode)


def executed(
    state: ResearchState, candidates: tuple[Design, ...], mode: Mode
) -> tuple[Design, ...]:
    """Return the half of the candidates that a mode keeps; one candidate stays as it is."""
    if mode == "default" or len(candidates) == 1:
        return candidates
    ordered = sorted(candidates, key=lambda design: cost(state, design))
    half = (len(ordered) + 1) // 2
    return tuple(ordered[:half] if mode == "conservative" else ordered[-half:])


def ambiguity(reading_set: tuple[Design, ...]) -> float:
    """Return the ambiguity index 1 - 1/|R|: 0 for one reading, towards 1 for many."""
    return 1.0 - 1.0 / len(reading_set)


def _completed(state: ResearchState, action: Action) -> tuple[Design, ...]:
    if action.arms is not None and action.seeds is not None:
        return (Design(action.arms, action.seeds),)
    arms = action.arms
    if arms is None and action.target is not None:
        arms = focused_arms(len(state.arms), action.target)
    if arms is None:
        pairs = _scan(len(state.arms), action.seeds)
    elif action.seeds is None:
        pairs = [(arms, seeds) for seeds in _TARGET_SEEDS]
    else:
        pairs = [(arms, action.seeds)]
    low, high = state.seeds
    designs = [Design(arms, min(max(seeds, low), high)) for arms, seeds in pairs]
    return tuple(dict.fromkeys(designs))


def _scan(arms: int, seeds: int | None) -> list[tuple[tuple[int, ...], int]]:
    """Return the component scan: one, two and four arms, and one arm with more seeds."""
    first = [(tuple(range(min(k, arms))), seeds or _SCAN_SEEDS) for k in _SCAN_ARMS]
    return [*first, ((0,), seeds or _REPEATED_SEEDS)]


def focused_arms(arms: int, target: int) -> tuple[int, ...]:
    """Return the two arms with the most mass under the target-focused mixture, ascending.

    The mixture is 0.75 of (0.8 on the target, the rest shared by the others) and 0.25 uniform;
    ties go to the lower index.
    """
    others = max(arms - 1, 1)
    mass = [
        SHARPNESS * (TARGET_MASS if j == target else (1 - TARGET_MASS) / others)
        + (1 - SHARPNESS) / arms
        for j in range(arms)
    ]
    ranked = sorted(range(arms), key=lambda j: (-mass[j], j))
    return tuple(sorted(ranked[:2]))
