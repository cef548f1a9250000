"""The proxy before a scripted model: what passes, what is counted, what is refused."""

from __future__ import annotations

import pytest

from outlay.agents.clients.contract import Usage
from tests.execution.metering.conftest import KEY, PATHS, asking, metered, send
from tests.model_server import ModelServer, Turn, turns

PROTOCOLS = tuple(PATHS)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("turn", [Turn(text="all is well with it"), Turn(shell="echo 1")])
def test_usage_is_what_the_server_told(protocol: str, stream: bool, turn: Turn) -> None:
    used = Usage(input=1234, cached=1000, cache_write=17, output=56, reasoning=7)
    with ModelServer(turns(turn._replace(usage=used)), keys=(KEY,)) as server:
        with metered(server) as proxy:
            for _ in range(2):
                got = send(proxy.port, PATHS[protocol], asking(protocol, stream=stream))
                assert got.status == 200
            assert proxy.usage == used.plus(used)._replace(requests=2, source="proxy")
        assert proxy.usage._replace(source="") == server.told(KEY)
        assert proxy.fault == ""
