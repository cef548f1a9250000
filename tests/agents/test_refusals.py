from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from outlay.ablations.running import ablation_of
from outlay.agents.access import suited
from outlay.agents.refusals import refuse_agent, refuse_key
from outlay.errors import BudgetError, InputError
from outlay.execution import sandbox
from outlay.task import Agent, Budget, Sandbox, Search, Task, Workspace
from tests import driving
from tests.model_server import ModelServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOCAL = "http://127.0.0.1:9"


def task(**changes: Any) -> Task:
    return replace(driving.task(levers=0), **changes)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put programs of these names on a `PATH` that has nothing else, and take all keys away."""

    def put(*names: str) -> None:
        for name in names:
            (tmp_path / name).write_text("#!/bin/sh\n")
            (tmp_path / name).chmod(0o755)

    sandbox.best()  # asked once, while the real programs are there
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return put


@pytest.mark.parametrize(
    ("agent", "changes", "words"),
    [
        ("opencode", {}, "found no such program on PATH"),
        ("codex", {"agent": Agent(key="NO_SUCH")}, "found no variable NO_SUCH"),
        ("codex", {"budget": Budget(usd=1.0)}, "agent.model: found nothing, and usd is limited"),
        (
            "claude",
            {"agent": Agent(model="unknown", url=LOCAL), "budget": Budget(usd=1.0)},
            'prices."unknown": found nothing, and usd is limited',
        ),
        ("model", {"agent": Agent(model="m", url=LOCAL)}, "edits no files"),
        ("opencode:present", {"agent": Agent(url=LOCAL)}, "model: found none"),
        ("command", {}, "found no command line"),
        ("command:absent --fast", {}, "found the program 'absent', which is not on PATH"),
        ("command:./absent", {}, "'./absent', which is not in the workspace"),
        ("command:/nowhere/absent", {}, "'/nowhere/absent', which is not there"),
        ("command:present --with {foo}", {}, "found {foo} in '{foo}', allowed: {prompt}, {plan}"),
        ("acp:present --with={foo}", {}, "found {foo} in '--with={foo}', allowed: {prompt}"),
        ("command:'", {}, "No closing quotation"),
        ("nobody", {}, "found 'nobody'"),
        ("command:present", {"reflector": Agent(client="model", model="m")}, "OPENAI_API_KEY"),
        ("command:present", {"reflector": Agent(client="model", url=LOCAL)}, "found no name"),
    ],
)
def test_what_cannot_work_is_one_line_before_anything_is_spent(
    program: Callable[..., None], agent: str, changes: dict[str, Any], words: str
) -> None:
    program("present", "codex", "claude")
    with pytest.raises(InputError) as raised:
        refuse_agent(suited(task(**changes), agent), agent)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.skipif(sandbox.best() != "bwrap", reason="opencode needs bubblewrap")
def test_what_can_work_is_let_through(program: Callable[..., None], tmp_path: Path) -> None:
    program("present", "codex", "claude", "opencode")
    local, here = Agent(model="m", url=LOCAL), Workspace(path=str(tmp_path))
    for agent in ("codex", "claude", "opencode", "command:present {prompt}", "command:./present"):
        refuse_agent(suited(task(agent=local, workspace=here), agent), agent)
    refuse_agent(task(agent=Agent(model="gpt-6.2-sol"), budget=Budget(usd=1.0)), "codex")


@pytest.mark.parametrize("agent", ["command:./agent.sh {plan}", "command:{place}"])
def test_a_script_that_may_not_be_executed_is_said_to_be_that(tmp_path: Path, agent: str) -> None:
    script = tmp_path / "agent.sh"
    script.write_text("#!/bin/sh\n")
    given = task(workspace=Workspace(path=str(tmp_path)), sandbox=Sandbox(read=(str(tmp_path),)))
    agent = agent.replace("{place}", str(script))
    with pytest.raises(InputError, match=r"agent.sh', which is not executable \(chmod \+x\)"):
        refuse_agent(suited(given, agent), agent)
    script.chmod(0o755)
    refuse_agent(suited(given, agent), agent)


@pytest.mark.skipif(sandbox.best() != "bwrap", reason="bubblewrap does not start")
@pytest.mark.parametrize("words", ["{0}", "--script={0}", "-x {0} {{plan}}"])
def test_a_script_that_the_sandbox_hides_is_refused(tmp_path: Path, words: str) -> None:
    folder = tmp_path / "task"
    folder.mkdir()
    given = task(workspace=Workspace(path=str(folder)))
    for script in (folder / "agent.py", tmp_path / "agent.py"):
        script.write_text("")
        agent = f"command:{sys.executable} {words.format(script)}"
        with pytest.raises(InputError) as raised:
            refuse_agent(suited(given, agent), agent)
        assert f"agent: found {script}, which the sandbox hides" in str(raised.value)
        assert f"a relative path to a file of the workspace, or [sandbox] read = ['{script}']" in (
            str(raised.value)
        )
        opened = replace(given, sandbox=Sandbox(read=(str(script),)))
        refuse_agent(suited(opened, agent), agent)
    agent = f"command:{sys.executable} agent.py --other /usr/bin/env"
    refuse_agent(suited(given, agent), agent)


@pytest.mark.parametrize("client", ["opencode", "acp", "claude"])
def test_without_a_sandbox_clients_that_need_one_are_refused(
    program: Callable[..., None], monkeypatch: pytest.MonkeyPatch, client: str
) -> None:
    program("present", "claude", "opencode")
    monkeypatch.setattr(sandbox, "best", lambda: "subreaper")
    agent = f"{client}:present"
    with pytest.raises(InputError, match="bubblewrap"):
        refuse_agent(suited(task(agent=Agent(model="m", url=LOCAL)), agent), agent)


def test_a_policy_is_replaced_only_where_nobody_drafts() -> None:
    assert suited(task(), "command:x").search.policy == "linear"
    assert suited(task(), "codex").search.policy == "adaptive"
    assert suited(task(), "levers").search.policy == "adaptive"
    drafted = task(reflector=Agent(client="model", model="m"))
    assert suited(drafted, "command:x").search.policy == "adaptive"
    assert suited(task(search=Search(policy="single")), "command:x").search.policy == "single"


def test_a_model_of_anthropic_goes_to_anthropic(monkeypatch: pytest.MonkeyPatch) -> None:
    from outlay.agents.access import Access, metered

    names = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
    assert metered(Access("model", model="anthropic:m"), names).key == "ANTHROPIC_API_KEY"
    assert metered(Access("model", model="m"), names).url == "https://api.openai.com"


def test_hypotheses_need_a_model_that_drafts_plans(program: Callable[..., None]) -> None:
    program("present")
    given = with_hypotheses()
    refuse_agent(given, "command:present")
    with pytest.raises(InputError, match="hypotheses: found with 'levers'"):
        refuse_agent(driving.task(hypotheses=True), "levers")
    linear = replace(given, search=Search(policy="linear"))
    with pytest.raises(InputError, match="and the policy 'linear', where no model drafts plans"):
        refuse_agent(linear, "command:present")


def test_hypotheses_whose_designs_nobody_can_pay(program: Callable[..., None]) -> None:
    program("present")
    given = with_hypotheses()
    poor = replace(given, hypotheses={**given.hypotheses, "budget": 1.0})
    with pytest.raises(BudgetError, match="no design is affordable: the cheapest costs"):
        refuse_agent(poor, "command:present")


def with_hypotheses() -> Task:
    made = driving.task(levers=0, model=True, hypotheses=True)
    return replace(made, reflector=Agent(client="model", model="m", url=LOCAL))


def test_an_ablation_leaves_hypotheses_out() -> None:
    assert ablation_of(driving.task(hypotheses=True), Budget(attempts=4)).hypotheses == {}


@pytest.mark.parametrize("agent", ["codex", "command:present"])
def test_a_server_that_asks_for_a_key_where_none_is_named(
    monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with ModelServer(keys=("sk-secret",)) as server:
        with pytest.raises(InputError, match=r"agent.key: found none, .* as in --key NAME"):
            refuse_key(task(agent=Agent(model="m", url=server.url)), agent)
        refuse_key(task(agent=Agent(model="m", url=server.url, key="OPENAI_API_KEY")), agent)
    with ModelServer(keys=("",)) as server:
        refuse_key(task(agent=Agent(model="m", url=server.url)), agent)
