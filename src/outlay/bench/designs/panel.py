"""The 30 research states of the benchmark, drawn from one seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from outlay.designs.states import ResearchState, paper_limit

if TYPE_CHECKING:
    from collections.abc import Iterator

SEED = 11
COMPONENTS = (
    "attention",
    "feed_forward",
    "residual",
    "layer_norm",
    "position_code",
    "dropout",
)
_BUDGETS = (4,) * 11 + (6,) * 10 + (8,) * 9
_WORD = 2**64 - 1


class PanelState(NamedTuple):
    """One synthetic state and the observations that its prior comes from.

    Attributes:
        state: Hypothesis h says that component h carries the improvement; arm h removes it.
        effects: Observed change on each data set, in points.
        improved: Data sets that improved, as a bitmask.
        signatures: Data sets that each mechanism would improve, as bitmasks.
        weights: Unnormalised prior: 1 + overlap of signature and improved data sets.
    """

    state: ResearchState
    effects: tuple[float, ...]
    improved: int
    signatures: tuple[int, ...]
    weights: tuple[int, ...]


@dataclass(slots=True)
class SplitMix64:
    """The SplitMix64 generator (Steele, Lea and Flood 2014); `state` is the seed."""

    state: int

    def next(self) -> int:
        """Return the next 64-bit word."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & _WORD
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _WORD
        return z ^ (z >> 31)

    def below(self, n: int) -> int:
        """Return an integer from 0 to n - 1, from the upper 32 bits of one word."""
        return ((self.next() >> 32) * n) >> 32


def panel(seed: int = SEED) -> tuple[PanelState, ...]:
    """Return the 30 states of a seed; 11, 10 and 9 of them have a budget of 4, 6 and 8."""
    stream = SplitMix64(seed)
    budgets = list(_BUDGETS)
    for i in range(len(budgets) - 1, 0, -1):
        j = stream.below(i + 1)
        budgets[i], budgets[j] = budgets[j], budgets[i]
    return tuple(_draw(stream, budget) for budget in budgets)


def _draw(stream: SplitMix64, budget: int) -> PanelState:
    datasets = 3 + stream.below(2)
    improved = _improved(stream, datasets)
    tenths = [
        10 + stream.below(31) if improved >> d & 1 else stream.below(11) - 5
        for d in range(datasets)
    ]
    signatures = tuple(1 + stream.below(2**datasets - 1) for _ in COMPONENTS)
    weights = tuple(1 + (signature & improved).bit_count() for signature in signatures)
    effects = tuple(tenth / 10 for tenth in tenths)
    state = ResearchState(
        hypotheses=tuple(f"the gain comes from {name}" for name in COMPONENTS),
        prior=tuple(weight / sum(weights) for weight in weights),
        arms=COMPONENTS,
        signatures=identity(len(COMPONENTS)),
        limits=(paper_limit(budget),),
        question="Which component of the Transformer carries the improvement?",
        observations=tuple(_described(effects, signatures)),
    )
    return PanelState(state, effects, improved, signatures, weights)


def _improved(stream: SplitMix64, datasets: int) -> int:
    """Return a bitmask of improved data sets: at least one, and not all."""
    while True:
        flags = sum((stream.below(5) < 3) << d for d in range(datasets))
        if 0 < flags < 2**datasets - 1:
            return flags


def _described(effects: tuple[float, ...], signatures: tuple[int, ...]) -> Iterator[str]:
    for d, effect in enumerate(effects):
        yield f"data set {d}: {effect:+.1f} points"
    for name, signature in zip(COMPONENTS, signatures, strict=True):
        sets = ", ".join(str(d) for d in range(len(effects)) if signature >> d & 1)
        yield f"{name} would improve data sets {sets}"


def identity(size: int) -> tuple[tuple[float, ...], ...]:
    """Return the signatures of the paper: arm j removes mechanism j and nothing else."""
    return tuple(tuple(float(h == j) for j in range(size)) for h in range(size))
