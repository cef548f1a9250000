"""A short campaign of `benchmarks/crash.py`: kill the driver, resume, compare."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

CRASH = Path(__file__).resolve().parents[2] / "benchmarks" / "crash.py"


@pytest.mark.parametrize("workers", [1, 4])
def test_killed_and_resumed_runs_come_to_the_same_end(workers: int) -> None:
    campaign = runpy.run_path(str(CRASH))["campaign"]
    counts, bad = campaign(kills=3, workers=workers, seed=1, per_run=3)
    assert counts["uniform"] + counts["near a commit"] >= 3
    assert bad == 0
