from dataclasses import replace

import pytest

from outlay.ablations.running import ablation_of
from outlay.agents.refusals import refuse_agent
from outlay.errors import BudgetError, InputError
from outlay.task import Budget
from tests.driving import task

GIVEN = task(levers=0, model=True, hypotheses=True)


def test_hypotheses_need_a_model_that_drafts_plans() -> None:
    refuse_agent(GIVEN, "command:agent")
    with pytest.raises(InputError, match="hypotheses: found with 'levers'"):
        refuse_agent(task(hypotheses=True), "levers")
    linear = replace(GIVEN, search=replace(GIVEN.search, policy="linear"))
    with pytest.raises(InputError, match="and the policy 'linear', where no model drafts plans"):
        refuse_agent(linear, "command:agent")


def test_hypotheses_whose_designs_nobody_can_pay() -> None:
    poor = replace(GIVEN, hypotheses={**GIVEN.hypotheses, "budget": 1.0})
    with pytest.raises(BudgetError, match="no design is affordable: the cheapest costs"):
        refuse_agent(poor, "command:agent")


def test_an_ablation_leaves_hypotheses_out() -> None:
    assert ablation_of(task(hypotheses=True), Budget(attempts=4)).hypotheses == {}
