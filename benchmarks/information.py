"""Information of designs: agreement of independent computations, speed, search, and a peer.

    python benchmarks/information.py                      everything (about three minutes)
    python benchmarks/information.py agreement --json     one part, as JSON

Parts: `agreement` (200 random states, 1e-12), `speed`, `search` (30 states of 12 arms) and `peer`
(nested Monte Carlo of Pyro, `pip install pyro-ppl`, only if installed).
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.designs.twins import (
    array_sum,
    bits,
    kernel,
    literal,
    random_state,
    sampled_designs,
    zeta_grid,
)

from outlay.bench.designs.panel import identity, panel
from outlay.designs.catalogue import catalogue
from outlay.designs.costs import Design
from outlay.designs.information import information, information_table, panel_information
from outlay.designs.proving import prove
from outlay.designs.searching import search_designs
from outlay.designs.states import ResearchState, paper_limit

BUDGETS = (4,) * 11 + (6,) * 10 + (8,) * 9


def state_of(prior, signatures, budget=8):
    """Wrap a prior and signatures as a research state with the paper's costs."""
    return ResearchState(
        hypotheses=tuple(f"h{h}" for h in range(len(prior))),
        prior=tuple(float(p) for p in prior),
        arms=tuple(f"a{j}" for j in range(len(signatures[0]))),
        signatures=tuple(tuple(float(mean) for mean in row) for row in signatures),
        limits=(paper_limit(budget),),
    )


def least_seconds(run, repeats):
    """Return the shortest of some timed runs, after one that is not timed."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def agreement(states=200):
    """Compare literal sum, array sum, zeta grid and the method in use on random states."""
    rng = np.random.default_rng(17)
    largest = {}
    for number in range(states):
        overlap, concentration = 0.2 * (number % 2), (1.0, 5.0)[number // 2 % 2]
        prior, signatures = random_state(rng, 2 + number // 4 % 7, overlap, concentration)
        table = information_table(state_of(prior, signatures)).gain
        zeta = {n: zeta_grid(prior, signatures, n) for n in range(2, 13)}
        for mask, n in sampled_designs(rng, len(prior)):
            used, arms = table[mask, n - 2], bits(mask)
            for name, other in (
                ("literal", literal(prior, signatures, arms, n)),
                ("array sum", array_sum(prior, signatures, arms, n)),
                ("zeta grid", zeta[n][mask]),
            ):
                kind = "overlap" if overlap else "identity"
                key = f"{name}, {kind}"
                largest[key] = max(largest.get(key, 0.0), float(abs(other - used)))
    return {"states": states, "largest_difference": largest, "met": max(largest.values()) < 1e-12}


def speed():
    """Time the panel, 12 arms, and overlapping signatures against the literal loop."""
    states = [drawn.state for drawn in panel(11)]
    rng = np.random.default_rng(3)
    large = [state_of(rng.dirichlet(np.ones(12)), identity(12)) for _ in range(30)]
    prior, signatures = random_state(rng, 8, 0.2, 1.0)
    overlapping = state_of(prior, signatures)
    fast = least_seconds(lambda: panel_information(states), 20)
    start = time.perf_counter()
    for mask in range(1, 64):
        for n in range(2, 13):
            literal(states[0].prior, np.eye(6), bits(mask), n)
    loop = 30 * (time.perf_counter() - start)
    return {
        "panel_ms": 1e3 * fast,
        "literal_loop_s": loop,
        "times_faster": loop / fast,
        "twelve_arms_s": least_seconds(lambda: panel_information(large), 3),
        "overlap_eight_arms_s": least_seconds(lambda: information_table(overlapping), 3),
    }


def search():
    """Compare the search policy with the proven best on 12 arms, and on the panel with 6."""
    rng = np.random.default_rng(23)
    shares, evaluations, gaps = [], [], []
    for number, budget in enumerate(BUDGETS):
        prior, signatures = random_state(rng, 12, 0.2, (1.0, 5.0)[number % 2])
        state = state_of(prior, signatures, budget)
        found = search_designs(state)
        oracle = prove(state, start=found)
        shares.append(found.efficiency / oracle.efficiency)
        gaps.append(oracle.bound / oracle.efficiency - 1)
        evaluations.append(len(found.seen))
    six = [
        search_designs(drawn.state, evaluations=6).efficiency
        / catalogue(drawn.state).efficiency.max()
        for drawn in panel(11)
    ]
    return {
        "mean_percent": 100 * float(np.mean(shares)),
        "worst_percent": 100 * min(shares),
        "most_evaluations": max(evaluations),
        "share_of_45045_percent": 100 * max(evaluations) / 45045,
        "oracle_gap": max(gaps),
        "six_arms_mean_percent": 100 * float(np.mean(six)),
        "six_arms_evaluations": 6,
    }


def peer():
    """Run Pyro's nested Monte Carlo on one design and report its error and time beside ours."""
    try:
        import pyro
        import torch
        from pyro.contrib.oed.eig import nmc_eig
    except ImportError:
        return {"skipped": "pyro-ppl is not installed"}
    torch.set_num_threads(1)
    pyro.set_rng_seed(0)
    state = panel(11)[0].state
    design = Design(tuple(range(6)), 9)
    likelihood = torch.tensor([[kernel(mean, 9) for mean in row] for row in state.signatures])
    prior = torch.tensor(state.prior)

    def model(design):
        with pyro.plate_stack("samples", design.shape[:-1]):
            h = pyro.sample("h", pyro.distributions.Categorical(prior))
            probabilities = likelihood[h]
            pyro.sample("y", pyro.distributions.Categorical(probabilities).to_event(1))

    def estimate(outer, inner):
        return float(nmc_eig(model, torch.zeros(1, 1), "y", "h", N=outer, M=inner))

    exact = information(state, design).value
    ours = least_seconds(lambda: information(state, design), 20)
    whole = least_seconds(lambda: information_table(state), 20)
    rows = []
    for outer, inner in ((10, 3), (100, 10), (1_000, 32), (10_000, 100)):
        seconds = least_seconds(lambda n=outer, m=inner: estimate(n, m), 3)
        errors = [estimate(outer, inner) - exact for _ in range(10)]
        rows.append(
            {
                "outer": outer,
                "inner": inner,
                "ms": round(1e3 * seconds, 2),
                "times_ours": round(seconds / ours, 1),
                "rms_error": round(float(np.sqrt(np.mean(np.square(errors)))), 4),
            }
        )
    return {
        "peer": f"pyro {pyro.__version__} nmc_eig",
        "exact": exact,
        "ours_ms_one_design": 1e3 * ours,
        "ours_ms_all_693_designs": 1e3 * whole,
        "nested_monte_carlo": rows,
    }


PARTS = {"agreement": agreement, "speed": speed, "search": search, "peer": peer}


def main():
    """Print the chosen parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = {name: PARTS[name]() for name in options.parts or PARTS}
    if options.json:
        print(json.dumps(results))
        return
    for name, values in results.items():
        print(name)
        for key, value in values.items():
            for row in value if isinstance(value, list) else [value]:
                print(f"  {key}: {row:.6g}" if isinstance(row, float) else f"  {key}: {row}")


if __name__ == "__main__":
    main()
