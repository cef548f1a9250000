"""The real clients behind the metering proxy: counted to the token, and stopped at a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from outlay.execution.metering.provider import Upstream
from outlay.execution.metering.proxy import Proxy
from tests.agents.clients.real import WRITE, Lab, installed
from tests.model_server import ModelServer, Turn, turns

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.real_client, pytest.mark.xdist_group("clients")]
WROTE = turns(Turn(shell=WRITE), Turn(text="I wrote it."))


@pytest.mark.parametrize("client", ["codex", "claude", "opencode"])
def test_a_limit_that_is_reached_is_no_fault_of_the_agent(
    client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(client, monkeypatch)
    lab = Lab(client, tmp_path)
    with ModelServer(WROTE, keys=("sk-real",)) as server:
        upstream = Upstream(server.url, "sk-real")
        proxy = Proxy(upstream, secret="k1", told=lambda _: None, patience=1, tokens=100)
        with proxy:
            ran = lab.run(f"http://127.0.0.1:{proxy.port}")
            usage, told = proxy.usage, server.told("sk-real")
    assert (ran.ending.ok, ran.ending.reason, ran.ended.stop) == (False, "budget", "")
    assert (usage.input, usage.output, usage.requests) == (told.input, told.output, 1)
    assert (lab.work / "hello.txt").exists()  # what was done until then stays
    assert "sk-real" not in ran.ended.out.text() + ran.ended.err.text()
