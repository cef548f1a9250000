"""What holds for all real clients alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from outlay.execution.metering.provider import Upstream
from outlay.execution.metering.proxy import Proxy
from tests.agents.clients.real import CLIENTS, REAL, WROTE, Lab, installed
from tests.model_server import ModelServer, Turn, turns

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = REAL


@pytest.fixture(params=CLIENTS)
def lab(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    installed(request.param, monkeypatch)
    return Lab(request.param, tmp_path)


def test_a_prompt_too_long_for_a_command_line(lab: Lab) -> None:
    prompts: list[str] = []
    plan = f"{lab.home}/PLAN.md"
    count = f"if [ -f {plan} ]; then wc -c < {plan}; fi > hello.txt"
    read = turns(Turn(shell=count), Turn(text="read"))
    with ModelServer(lambda asked: prompts.append(asked.prompt) or read(asked)) as server:
        ran = lab.run(server.url, prompt="é " * 100_000)
    assert ran.ending.ok
    in_file = (lab.work / "hello.txt").read_text().strip() == "300000"
    assert in_file == (plan in prompts[0]) != ("é " * 100_000 in prompts[0])


def test_a_refused_key(lab: Lab) -> None:
    with ModelServer(WROTE, keys=("another",)) as server:
        ran = lab.run(server.url)
    assert (ran.ending.ok, ran.ending.reason, ran.ended.code) == (False, "key", 1)
    assert "Incorrect API key" in ran.ending.detail
    assert (ran.ending.usage.input, ran.ending.usage.output) == (0, 0)


def test_a_limit_that_is_reached_is_no_fault_of_the_agent(lab: Lab) -> None:
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
