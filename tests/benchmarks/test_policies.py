from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from types import ModuleType

FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "policies.py"


def _module() -> ModuleType:
    import sys

    spec = importlib.util.spec_from_file_location("policies_benchmark", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


POLICIES = _module()


@pytest.fixture(scope="module")
def simulation() -> Any:
    return POLICIES.load()


@pytest.fixture(scope="module")
def default(simulation: Any) -> dict[str, str]:
    return dict(zip(simulation.levers, next(iter(simulation.rows)), strict=True))


def test_the_simulation_keeps_the_mean_and_the_paired_spread(
    simulation: Any, default: dict[str, str]
) -> None:
    other = default | {"features": "strokes"}
    seeds = range(4000)
    first = np.array([simulation.value(default, s) for s in seeds])
    paired = np.array([simulation.value(other, s) for s in seeds]) - first
    rows = [simulation.values[simulation._row(c)] for c in (default, other)]
    for drawn, measured in ((first, rows[0]), (paired, rows[1] - rows[0])):
        spread = measured.std(ddof=1)
        assert abs(drawn.mean() - measured.mean()) < 4 * spread / np.sqrt(len(seeds))
        assert drawn.std(ddof=1) == pytest.approx(spread, rel=0.06)


def test_a_seed_gives_one_value_and_seeds_differ(simulation: Any, default: dict[str, str]) -> None:
    values = [simulation.value(default, seed) for seed in (1, 1, 2, 1_000_000)]
    assert values[0] == values[1]
    assert len(set(values)) == 3


def test_ranks_start_at_one_and_count_the_better_ones(
    simulation: Any, default: dict[str, str]
) -> None:
    means = simulation.values.mean(axis=1)
    configs = [dict(zip(simulation.levers, names, strict=True)) for names in simulation.rows]
    best = max(configs, key=simulation.mean)
    assert simulation.rank(best) == 1
    assert simulation.rank(default) == 1 + sum(means > simulation.mean(default) + 1e-12)
    # An option without any effect shares the rank.
    assert simulation.rank(best | {"patience": "short"}) == 1
    assert simulation.rank(best | {"patience": "long"}) == 1
