from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outlay.replay import verify

if TYPE_CHECKING:
    from types import ModuleType

FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "noop.py"


def _module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("noop_benchmark", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_measured_run_goes_on_in_blocks_and_its_log_reproduces_every_decision(
    tmp_path: Path,
) -> None:
    noop: Any = _module()
    run = noop.Run(tmp_path / "run", attempts=40)
    run.build(10)
    for total in (15, 30):
        run.go(total - run.state.attempts)
        assert run.state.attempts == total
        assert not run.state.works
    entries = list(run.store.read(noop.RUN))
    run.store.close()
    assert verify(entries, noop.ThreeChildren()) == []
    assert run.depth[1] > 1
    assert run.state.ledger.spent.attempts == 30
