"""Slow, obvious computations of the information gain, each written from the definition."""

from __future__ import annotations

from itertools import product
from math import exp, log, sqrt

import numpy as np

GRID = (0.0, 0.25, 0.5, 0.75, 1.0)
SD_OF_FIVE_SEEDS = 0.55


def kernel(mean, seeds):
    sd = SD_OF_FIVE_SEEDS * sqrt(5 / seeds)
    weights = [exp(-((y - mean) ** 2) / (2 * sd * sd)) for y in GRID]
    return [weight / sum(weights) for weight in weights]


def entropy(probabilities):
    return -sum(p * log(p) for p in probabilities if p > 0)


def literal(prior, signatures, arms, seeds):
    """H(prior) minus the mean entropy of the posterior, outcome by outcome, in log space."""
    logs = [[log(p) for p in kernel(mean, seeds)] for mean in (0.0, 1.0)]
    columns = [[int(row[j]) for j in arms] for row in signatures]
    log_prior = [log(p) if p > 0 else -np.inf for p in prior]
    kept = 0.0
    for outcome in product(range(5), repeat=len(arms)):
        joint = [
            lp + sum(logs[mean][y] for mean, y in zip(column, outcome, strict=True))
            for lp, column in zip(log_prior, columns, strict=True)
        ]
        top = max(joint)
        weights = [exp(value - top) for value in joint]
        total = sum(weights)
        kept += exp(top) * total * entropy([weight / total for weight in weights])
    return entropy(prior) - kept


def array_sum(prior, signatures, arms, seeds):
    """The mutual information H(outcome) - H(outcome | hypothesis) from the joint array."""
    prior, signatures = np.asarray(prior), np.asarray(signatures)
    kernels = np.array([kernel(0.0, seeds), kernel(1.0, seeds)])
    marginal = np.zeros((5,) * len(arms))
    conditional = 0.0
    for p, row in zip(prior, signatures, strict=True):
        joint = np.ones(())
        for j in arms:
            one = kernels[int(row[j])]
            joint = np.multiply.outer(joint, one)
            conditional -= p * float(one @ np.log(one))
        marginal += p * joint
    return float(-(marginal * np.log(marginal)).sum() - conditional)


def zeta_grid(prior, signatures, seeds):
    """Information of all arm sets from one grid; 0.5 stands for an arm that is not run."""
    prior, signatures = np.asarray(prior), np.asarray(signatures)
    arms = signatures.shape[1]
    base, raised = np.array(kernel(0.0, seeds)), np.array(kernel(1.0, seeds))
    ratio = raised / base
    s = np.zeros((5,) * arms)
    for p, row in zip(prior, signatures, strict=True):
        term = np.full((), p)
        for j in range(arms):
            term = np.multiply.outer(term, ratio if row[j] else np.ones(5))
        s += term
    spread = s * np.log(s)
    for axis in range(arms):
        moved = np.moveaxis(spread, axis, -1)
        spread = np.moveaxis(np.stack([moved[..., 2], moved @ base], axis=-1), -1, axis)
    divergence = float(raised @ np.log(ratio))
    touched = prior @ signatures
    gains = np.empty(2**arms)
    for mask in range(2**arms):
        bits = tuple(mask >> j & 1 for j in range(arms))
        gains[mask] = divergence * sum(touched[j] for j in range(arms) if bits[j]) - spread[bits]
    return gains


def random_state(rng, arms, overlap, concentration):
    """Draw (prior, signatures): the identity, or the identity with extra ones."""
    prior = rng.dirichlet(np.full(arms, concentration))
    signatures = np.eye(arms)
    if overlap:
        signatures = np.maximum(signatures, rng.random((arms, arms)) < overlap)
    return prior, signatures


def sampled_designs(rng, arms, lowest=2, highest=12, most=20):
    """All designs up to five arms, `most` random ones above."""
    masks, seeds = range(1, 2**arms), range(lowest, highest + 1)
    if arms <= 5:
        return [(mask, n) for mask in masks for n in seeds]
    return [
        (int(rng.integers(1, 2**arms)), int(rng.integers(lowest, highest + 1)))
        for _ in range(most)
    ]


def bits(mask):
    return tuple(j for j in range(mask.bit_length()) if mask >> j & 1)
