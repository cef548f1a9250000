"""How far judges agree with the metric: rank correlations with intervals over scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
import numpy as np

from outlay.bench.designs.statistics import RESAMPLES, SEED, Interval, resampled_states
from outlay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison of two candidates by a person.

    Attributes:
        participant: Pseudonym of the person.
        scenario: Name of the scenario.
        left: Candidate shown on the left, 0 to 3.
        right: Candidate shown on the right, 0 to 3, another one.
        choice: What was preferred.
        order: Place of this comparison in the person's sitting, from 0.
        seconds: From showing to choosing.
        check: Whether this was an attention check, which counts for no rank.
    """

    participant: str
    scenario: str
    left: int
    right: int
    choice: Literal["left", "right", "equal"]
    order: int
    seconds: float
    check: bool = False


class Agreement(NamedTuple):
    """Spearman correlations of preference and metric; positive means agreement.

    Attributes:
        pooled: Over all actions of all scenarios.
        within: Mean over scenarios of the correlation among their four actions.
        defined: Scenarios whose correlation is defined; a constant rank vector has none.
        scenarios: Scenarios in all.
    """

    pooled: Interval
    within: Interval
    defined: int
    scenarios: int


def ranks_from_pairs(judgements: Iterable[Judgement], candidates: int = 4) -> tuple[float, ...]:
    """Return the ranks (1 is best, ties averaged) by wins, one participant and scenario.

    An equal choice gives half a win to both; attention checks are left out.

    Raises:
        InputError: Candidates that do not exist or are compared with themselves.
    """
    wins = np.zeros(candidates)
    for judgement in judgements:
        left, right = judgement.left, judgement.right
        if left == right or not (0 <= left < candidates and 0 <= right < candidates):
            raise InputError(f"judgement: found {left} against {right}, allowed: two of 0 to 3")
        if not judgement.check:
            share = {"left": 1.0, "right": 0.0, "equal": 0.5}[judgement.choice]
            wins[left] += share
            wins[right] += 1 - share
    return tuple(float(rank) for rank in average_ranks(-wins[None])[0])


def average_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ranks along the last axis, 1 for the smallest, ties averaged."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(values, axis=-1))


def spearman(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Spearman correlations along the last axis; `nan` where a vector is constant."""
    a, b = average_ranks(first), average_ranks(second)
    a -= a.mean(axis=-1, keepdims=True)
    b -= b.mean(axis=-1, keepdims=True)
    scale = np.sqrt(np.square(a).sum(axis=-1) * np.square(b).sum(axis=-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((a * b).sum(axis=-1) / scale)


def agreement(
    ranks: NDArray[np.float64],
    values: NDArray[np.float64],
    indices: NDArray[np.intp] | None = None,
) -> Agreement:
    """Return how far ranks (1 is best) agree with values (more is better).

    Args:
        ranks: Shape (scenarios, 4), averaged over whoever ranked.
        values: The metric, shape (scenarios, 4).
        indices: Bootstrap over scenarios; by default 5,000 resamples of seed 3. Scenarios without
            a defined correlation stay in the pooled figure and are left out of the mean within.
    """
    if indices is None:
        indices = resampled_states(len(ranks), RESAMPLES, SEED)
    within = spearman(-ranks, values)
    pooled = spearman(-ranks.reshape(1, -1), values.reshape(1, -1))
    resampled = spearman(
        -ranks[indices].reshape(len(indices), -1), values[indices].reshape(len(indices), -1)
    )
    return Agreement(
        _interval(float(pooled[0]), resampled),
        _interval(_mean(within[None])[0], _mean(within[indices])),
        int(np.isfinite(within).sum()),
        len(ranks),
    )


def _mean(correlations: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean over the defined correlations of each row; `nan` if none is."""
    defined = np.isfinite(correlations)
    total = np.where(defined, correlations, 0.0).sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray(total / defined.sum(axis=1))


def _interval(value: float, resampled: NDArray[np.float64]) -> Interval:
    """Return a value with its percentile interval over the resamples that define it."""
    kept = resampled[np.isfinite(resampled)]
    if kept.size == 0:
        return Interval(float(value), float("nan"), float("nan"))
    low, high = np.percentile(kept, [2.5, 97.5])
    return Interval(float(value), float(low), float(high))


def panel_ranks(ranks: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the panel's ranks: the mean over models, each averaged over positions before."""
    return np.asarray(np.mean(np.stack(ranks), axis=0))
