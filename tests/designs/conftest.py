import pytest

from outlay.bench.designs.panel import panel


@pytest.fixture(scope="session")
def state():
    """State 0 of the panel: six arms, budget 8."""
    return panel(11)[0].state
