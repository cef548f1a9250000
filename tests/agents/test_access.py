"""Who carries plans out and who drafts them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from outlay.agents.access import Access, executor, metered, reflector
from outlay.task import Agent, Search
from tests.driving import task


def with_agents(agent: Agent, drafts: Agent = Agent(), policy: str = "adaptive"):  # noqa: B008
    return replace(task(levers=0), agent=agent, reflector=drafts, search=Search(policy=policy))


def test_levers_need_no_model() -> None:
    found = with_agents(Agent(model="m"), Agent(client="model"))
    assert executor(found, "levers") is None
    assert reflector(found, "levers") is None


def test_a_coding_agent_drafts_its_own_plans_unless_told_otherwise() -> None:
    found = with_agents(Agent(model="big", url="http://a", key="K"), Agent(model="small"))
    assert executor(found, "codex:/opt/codex -x") == Access(
        "codex", ("/opt/codex", "-x"), "big", "http://a", "K"
    )
    assert reflector(found, "codex") == Access("codex", (), "small", "http://a", "K")
    other = with_agents(Agent(model="big"), Agent(client="model", model="small", url="http://b"))
    assert reflector(other, "codex") == Access("model", (), "small", "http://b", "")


@pytest.mark.parametrize("policy", ["linear", "single", "best-of-n"])
def test_policies_that_never_reflect_have_no_reflector(policy: str) -> None:
    assert reflector(with_agents(Agent(), Agent(client="model"), policy), "codex") is None


@pytest.mark.parametrize("client", ["command:x", "acp:x"])
def test_plain_commands_draft_nothing_unless_a_model_is_named(client: str) -> None:
    assert reflector(with_agents(Agent(model="m", url="http://a")), client) is None
    found = reflector(with_agents(Agent(), Agent(model="small", url="http://b")), client)
    assert found == Access("model", (), "small", "http://b")


def test_a_key_at_hand_is_metered_at_the_usual_provider() -> None:
    assert metered(Access("claude"), {"ANTHROPIC_API_KEY"}) == Access(
        "claude", url="https://api.anthropic.com", key="ANTHROPIC_API_KEY"
    )
    assert metered(Access("codex"), {"ANTHROPIC_API_KEY"}) == Access("codex")
    assert metered(Access("codex", key="MINE"), ()).url == "https://api.openai.com"
    local = Access("codex", url="http://127.0.0.1:8080")
    assert metered(local, {"OPENAI_API_KEY"}) == local
    assert metered(Access("command", ("x",)), {"OPENAI_API_KEY"}).url == ""
