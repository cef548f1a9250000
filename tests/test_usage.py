from __future__ import annotations

import msgspec

from outlay import events
from outlay.budget import Charge
from outlay.report import View, markdown
from outlay.report.agent_cards import agents
from outlay.report.blocks import Table, Text
from outlay.report.history import history
from outlay.report.words import tokens
from outlay.state import State
from outlay.summary import summarise
from outlay.task import Agent
from tests.report.samples import NASTY, log, started, task

CODEX = events.AgentUse(
    client="codex", version="0.171.0", model="m1", requests=2, reasoning=16, source="proxy"
)
GUESSED = events.AgentUse(client="codex", model="m1", source="estimate", complete=False)
CHARGE = Charge(attempts=1, tokens_in=350, tokens_cached=2150, tokens_out=52, usd=0.25)


def run(*settled: events.AnyEvent) -> tuple[State, list[events.Entry]]:
    entries = started(task(levers=(), agent=Agent(client="codex", model="m1")), agent="codex")
    baseline = events.MeasurementLaunched(work="m1", trial=1, purpose="baseline", runs=((-1, 1),))
    values = (events.Evaluation(node=-1, seed=1, value=0.5),)
    entries += log(
        baseline,
        events.MeasurementSettled(work="m1", trial=1, outcome="scored", evaluations=values),
        events.ScaleFixed(center=0.5, scale=1.0),
        events.ReflectionLaunched(work="r1", trial=1, node=events.ROOT_DRAFT, asked=1),
        *settled,
        after=len(entries),
    )
    return State.of(entries), entries


def drafted(agent: events.AgentUse | None = CODEX) -> events.ReflectionSettled:
    plan = events.Child(node=0, plan="Raise it.", hypothesis="h")
    return events.ReflectionSettled(
        work="r1", trial=1, outcome="scored", children=(plan,), charge=CHARGE, agent=agent
    )


def attempted(outcome: str, trial: int, agent: events.AgentUse | None) -> list[events.AnyEvent]:
    launched = events.AttemptLaunched(attempt=1, trial=trial, node=0)
    settled = events.AttemptSettled(
        attempt=1,
        trial=trial,
        outcome=outcome,  # type: ignore[arg-type]
        reason="agent",
        charge=CHARGE,
        agent=agent,
    )
    return [launched, settled]


def test_each_role_has_its_own_sum() -> None:
    state, _ = run(drafted(), *attempted("failed", 1, CODEX))
    reflector, executor = summarise(state, "six").agents
    assert (reflector.role, executor.role) == ("reflector", "executor")
    assert (executor.who, executor.tries, executor.requests) == ("codex 0.171.0, m1", 1, 2)
    assert (executor.input, executor.cached, executor.output) == (2500, 2150, 52)
    assert (executor.reasoning, executor.usd, executor.known) == (16, 0.25, "proxy")
    said = "2,500 tokens in (2,150 cached), 52 out (16 reasoning), 0.25 USD; counted by the proxy"
    assert tokens(executor) == said


def test_what_is_not_surely_known_says_so() -> None:
    state, _ = run(drafted(), *attempted("failed", 1, GUESSED))
    assert tokens(summarise(state, "six").agents[1]).endswith("; an estimate")


def test_a_process_that_died_leaves_a_count_that_is_incomplete() -> None:
    died = attempted("interrupted", 1, None)
    state, _ = run(drafted(), *died, *attempted("failed", 2, CODEX))
    _, lost, whole = summarise(state, "six").agents
    assert (lost.who, lost.known, lost.input) == ("codex, m1", "unknown, incomplete", 2500)
    assert whole.tries == 1
    assert state.ledger.spent.tokens_in == 3 * 350


def test_a_try_whose_process_died_is_named_as_its_fellows() -> None:
    state, _ = run(*attempted("failed", 1, CODEX), *attempted("interrupted", 2, None))
    whole, lost = summarise(state, "six").agents
    assert (lost.who, lost.known) == ("codex 0.171.0, m1", "unknown, incomplete")
    assert (whole.who, whole.known) == (lost.who, "proxy")


def test_a_model_without_a_price_has_no_money() -> None:
    free = Charge(attempts=1, tokens_in=9)
    launched, paid = attempted("failed", 1, CODEX)
    unpaid = msgspec.structs.replace(paid, charge=free)
    state, entries = run(launched, unpaid)
    (used,) = summarise(state, "six").agents
    assert (used.usd, used.priced) == (0.0, False)
    assert "no price known; counted" in tokens(used)
    text = markdown(View(run="six", state=state, history=history(entries)))
    assert text.count("no price known") >= 2
    state, entries = run(drafted(), launched, unpaid)
    text = markdown(View(run="six", state=state, history=history(entries)))
    assert text.count("at least 0.25 USD") == 2


def test_the_report_has_a_row_for_each_and_the_total() -> None:
    odd = events.AgentUse(client="codex", model=NASTY, source="stream", complete=False)
    state, entries = run(drafted(), *attempted("failed", 1, odd))
    view = View(run="six", state=state, history=history(entries))
    table, note = agents(view)
    assert isinstance(table, Table)
    assert isinstance(note, Text)
    assert [row[0] for row in table.rows] == ["reflector", "executor", "in all"]
    assert table.rows[1][-1] == "stream, incomplete"
    assert table.rows[2][2:] == (
        *("2", "2", "5,000", "4,300", "104", "16", "0.50 USD"),
        "proxy, stream, incomplete",
    )
    text = markdown(view)
    assert "Plan drafted by codex (r1)." in text.replace("\\", "")
    assert NASTY not in text


def test_a_run_without_agents_has_no_such_card() -> None:
    entries = started()
    state = State.of(entries)
    assert "Agents and models" not in markdown(View(run="six", state=state))
    assert summarise(state, "six").agents == []
