from dataclasses import replace

import pytest

from outlay.bench.designs.gated_search import (
    ATTEMPT,
    BOUNCE,
    MOST_TOKENS,
    PROPOSAL,
    compare,
    proposals,
    simulate,
    world,
)
from outlay.designs.catalogue import cost, fits, paid
from outlay.designs.costs import Design, Limit, LinearCost, TableCost
from outlay.designs.gate import gate
from outlay.designs.information import information
from outlay.designs.searching import best_affordable
from outlay.errors import InputError


def test_the_best_design_passes(state):
    verdict = gate(state, best_affordable(state))
    assert verdict.passed
    assert verdict == (True, "passed", "", 0.0)


def test_what_costs_too_much_is_sent_back_with_an_alternative(state):
    verdict = gate(state, Design(tuple(range(6)), 12))
    assert verdict.kind == "unaffordable"
    assert "it costs 8.8 units, and 8 are left" in verdict.reason
    assert "fits" in verdict.reason
    assert verdict.saved == pytest.approx(8.8)


def test_what_tells_nothing_is_sent_back():
    start = world(0).state
    blank = Design((7,), 9)
    assert information(start, blank).value == pytest.approx(0, abs=1e-12)
    assert gate(start, blank, least_share=0).kind == "uninformative"
    assert gate(start, blank).saved == cost(start, blank)


def test_the_least_share_is_a_share_of_the_best(state):
    weak = Design((0,), 2)
    share = information(state, weak).value / cost(state, weak)
    best = best_affordable(state)
    share /= information(state, best).value / cost(state, best)
    assert gate(state, weak, least_share=share * 0.99).passed
    assert not gate(state, weak, least_share=share * 1.01).passed


def test_nothing_passes_once_all_is_known(state):
    settled = replace(state, prior=(1.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    assert gate(settled, Design((0,), 5)).kind == "uninformative"


def test_the_gate_raises_for_designs_that_do_not_exist(state):
    with pytest.raises(InputError):
        gate(state, Design((0,), 99))


def test_nothing_passes_once_the_budget_is_spent(state):
    spent = replace(state, limits=(replace(state.limits[0], budget=1),))
    verdict = gate(spent, Design((0,), 5))
    assert verdict.kind == "unaffordable"
    assert "it costs 3.35 units, and 1 are left; no design is affordable" in verdict.reason
    assert verdict.saved == pytest.approx(3.35)


def test_a_design_without_a_price_saves_nothing_that_is_known(state):
    priced = Limit(budget=8, cost=TableCost(prices={Design((0,), 5): 2.0}))
    verdict = gate(replace(state, limits=(priced,)), Design((1,), 5))
    assert (verdict.kind, verdict.saved) == ("unaffordable", 0.0)
    assert verdict.reason.startswith("it has no price; ")


def test_the_limit_that_a_design_breaks_is_named(state):
    second = Limit(unit="usd", budget=10, cost=LinearCost(setup=50.0))
    verdict = gate(replace(state, limits=(*state.limits, second)), Design((0,), 5))
    assert "it costs 3.35 units, and does not fit 10 usd" in verdict.reason


def test_what_is_paid_is_exact(state):
    left = paid(paid(state, Design((0,), 2)), Design((0, 1), 4))  # 2.3 and 3.6 of 8
    assert left.limits[0].budget == 2.1
    assert paid(left, Design((0,), 12)).limits[0].budget == 0.0


def test_proposals_have_their_shares():
    start = world(3).state
    drawn = [design for _, design in zip(range(2000), proposals(3), strict=False)]
    dear = sum(not fits(start, design) for design in drawn)
    blank = sum(all(arm >= 6 for arm in design.arms) for design in drawn)
    assert abs(dear / 2000 - 0.2) < 0.04
    assert abs(blank / 2000 - 0.3) < 0.04


def test_a_search_is_charged_by_the_rule_and_repeats():
    start = world(5)
    gated, bare = simulate(start, gated=True), simulate(start, gated=False)
    assert bare.bounced == 0
    assert bare.tokens == bare.attempts * (PROPOSAL + ATTEMPT)
    charged = gated.attempts * (PROPOSAL + ATTEMPT) + gated.bounced * (PROPOSAL + BOUNCE)
    assert gated.tokens == charged <= MOST_TOKENS
    assert gated.saved == gated.bounced * ATTEMPT
    assert simulate(start, gated=True) == gated


def test_the_gate_saves_tokens_and_keeps_answers():
    found = compare(24)
    assert found.high < 0
    assert found.low < found.difference < found.high
    assert found.right_gated >= found.right_open - 0.05


def test_the_gate_costs_little_where_nothing_is_wrong():
    found = compare(16, shares=(1.0, 0.0, 0.0))
    assert found.tokens_gated <= 1.05 * found.tokens_open
