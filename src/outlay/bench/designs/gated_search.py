"""A simulated search that tests whether the gate pays: six explanations, one true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from outlay.bench.designs.panel import identity
from outlay.designs.catalogue import fits
from outlay.designs.costs import Design
from outlay.designs.gate import gate
from outlay.designs.outcomes import GridOutcomes, grid_likelihood, noise_after
from outlay.designs.posteriors import updated
from outlay.designs.states import ResearchState, paper_limit

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal["good", "uninformative", "unaffordable"]
KINDS: tuple[Kind, ...] = ("good", "uninformative", "unaffordable")
SHARES = (0.5, 0.3, 0.2)

HYPOTHESES = 6
BLANK_ARMS = 2
"""Arms that no hypothesis touches: what runs only them tells nothing."""

PROPOSAL, ATTEMPT, BOUNCE = 1, 20, 1
"""Tokens for a proposal, an attempt, and for sending a proposal back."""

ENOUGH = 0.95
MOST_TOKENS = 600
BUDGET = 6.0


class Outcome(NamedTuple):
    """How one simulated search ended.

    Attributes:
        tokens: Spent in all.
        right: Whether the most probable explanation is the true one.
        attempts: Spent on experiments, those that could not be paid included.
        bounced: Proposals that the gate sent back.
        saved: Tokens of attempts that were not spent.
    """

    tokens: int
    right: bool
    attempts: int
    bounced: int
    saved: int


class Comparison(NamedTuple):
    """Paired searches with and without the gate.

    Attributes:
        pairs: Number of pairs.
        difference: Mean tokens with the gate minus without it.
        low: Lower end of its 95 % interval.
        high: Upper end.
        tokens_gated: Mean tokens with the gate.
        tokens_open: Mean tokens without it.
        right_gated: Share of right answers with the gate.
        right_open: Share of right answers without it.
    """

    pairs: int
    difference: float
    low: float
    high: float
    tokens_gated: float
    tokens_open: float
    right_gated: float
    right_open: float


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One seed's world: the state at the start, and which explanation is true."""

    state: ResearchState
    truth: int
    seed: int


def world(seed: int) -> World:
    """Return the world of a seed: a Dirichlet(5) prior, and a truth drawn from it."""
    rng = np.random.default_rng([seed, 0])
    prior = rng.dirichlet(np.full(HYPOTHESES, 5.0))
    arms = HYPOTHESES + BLANK_ARMS
    state = ResearchState(
        hypotheses=tuple(f"explanation {h}" for h in range(HYPOTHESES)),
        prior=tuple(float(p) for p in prior / prior.sum()),
        arms=tuple(f"arm {j}" for j in range(arms)),
        signatures=tuple(row + (0.0,) * BLANK_ARMS for row in identity(HYPOTHESES)),
        limits=(paper_limit(BUDGET),),
    )
    return World(state=state, truth=int(rng.choice(HYPOTHESES, p=prior)), seed=seed)


def proposals(seed: int, shares: tuple[float, ...] = SHARES) -> Iterator[Design]:
    """Yield the endless stream of proposals of a seed; it knows nothing of the beliefs."""
    rng = np.random.default_rng([seed, 1])
    while True:
        yield _drawn(KINDS[int(rng.choice(len(KINDS), p=shares))], rng)


def _drawn(kind: Kind, rng: np.random.Generator) -> Design:
    """Draw a design of a kind; with the paper's costs at a budget of 6."""
    if kind == "uninformative":
        return Design((HYPOTHESES + int(rng.integers(BLANK_ARMS)),), int(rng.integers(2, 13)))
    size = int(rng.integers(2, 4)) if kind == "good" else int(rng.integers(5, 7))
    arms = tuple(sorted(int(a) for a in rng.choice(HYPOTHESES, size=size, replace=False)))
    seeds = int(rng.integers(6, 10)) if kind == "good" else int(rng.integers(9, 13))
    return Design(arms, seeds)


def simulate(start: World, *, gated: bool, shares: tuple[float, ...] = SHARES) -> Outcome:
    """Run one search until the posterior reaches 0.95 or the tokens are used up.

    Both arms of a comparison get the same proposals, and the outcome of the i-th proposal is
    drawn with the same random numbers. An unaffordable proposal that is attempted costs the
    attempt and yields nothing.
    """
    state = start.state
    tokens = attempts = bounced = 0
    for number, design in enumerate(proposals(start.seed, shares)):
        if max(state.prior) >= ENOUGH:
            break
        passed = not gated or gate(state, design).passed
        price = PROPOSAL + (ATTEMPT if passed else BOUNCE)
        if tokens + price > MOST_TOKENS:
            break
        tokens, attempts, bounced = tokens + price, attempts + passed, bounced + (not passed)
        if passed and fits(state, design):
            state = updated(state, design, _observed(start, design, number))
    right = int(np.argmax(state.prior)) == start.truth
    return Outcome(tokens, right, attempts, bounced, bounced * ATTEMPT)


def _observed(start: World, design: Design, number: int) -> list[float]:
    """Draw what the arms show under the true explanation."""
    rng = np.random.default_rng([start.seed, 2, number])
    outcomes = start.state.outcomes
    values = GridOutcomes().values
    means = start.state.means[start.truth, list(design.arms)]
    likelihood = grid_likelihood(means, values, float(noise_after(outcomes.noise, design.seeds)))
    return [float(rng.choice(values, p=row)) for row in likelihood]


def compare(pairs: int = 200, seed: int = 0, shares: tuple[float, ...] = SHARES) -> Comparison:
    """Return paired differences over seeds `seed` to `seed + pairs - 1`.

    The interval is the mean plus and minus 1.96 standard errors.

    Args:
        pairs: At least 2.
        seed: First world.
        shares: Of good, uninformative and unaffordable proposals; they sum to 1.
    """
    worlds = [world(number) for number in range(seed, seed + pairs)]
    gated = [simulate(start, gated=True, shares=shares) for start in worlds]
    bare = [simulate(start, gated=False, shares=shares) for start in worlds]
    with_gate = np.array([outcome.tokens for outcome in gated], dtype=np.float64)
    without = np.array([outcome.tokens for outcome in bare], dtype=np.float64)
    difference = with_gate - without
    half = 1.96 * float(difference.std(ddof=1)) / pairs**0.5
    mean = float(difference.mean())
    return Comparison(
        pairs,
        mean,
        mean - half,
        mean + half,
        float(with_gate.mean()),
        float(without.mean()),
        float(np.mean([outcome.right for outcome in gated])),
        float(np.mean([outcome.right for outcome in bare])),
    )
