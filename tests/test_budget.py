from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay.budget import NOTHING, Charge, Ledger, Recent, Remaining
from outlay.task import Budget
from outlay.tokens import CACHED_TOKEN_RATE

charges = st.builds(
    Charge,
    attempts=st.integers(0, 3),
    tokens_in=st.integers(0, 10**6),
    tokens_cached=st.integers(0, 10**6),
    tokens_out=st.integers(0, 10**6),
    usd=st.integers(0, 1000).map(lambda n: n / 64),
    seconds=st.integers(0, 1000).map(lambda n: n / 64),
)


def test_cached_tokens_count_at_their_own_rate() -> None:
    assert Charge(tokens_in=100, tokens_cached=1000, tokens_out=10).tokens == 210
    assert CACHED_TOKEN_RATE == 0.1


@given(st.lists(charges, max_size=5))
def test_charges_add_up_field_by_field(found) -> None:
    total = sum(found, NOTHING)
    for name in Charge.__struct_fields__:
        assert getattr(total, name) == sum(getattr(charge, name) for charge in found)


@given(st.lists(st.tuples(charges, charges, st.booleans()), max_size=6))
def test_a_reservation_is_held_until_its_work_is_settled(works) -> None:
    ledger = Ledger()
    for number, (reserve, _, _) in enumerate(works):
        ledger.reserve(f"a{number}", reserve)
    assert ledger.held == sum((reserve for reserve, _, _ in works), NOTHING)
    for number, (_, used, is_settled) in enumerate(works):
        if is_settled:
            ledger.settle(f"a{number}", "execution", used)
    assert ledger.held == sum((r for r, _, settled in works if not settled), NOTHING)
    assert ledger.spent == sum((used for _, used, settled in works if settled), NOTHING)
    assert sum(ledger.by_kind.values(), NOTHING) == ledger.spent


def test_work_holds_one_reservation_at_a_time() -> None:
    ledger = Ledger()
    ledger.reserve("a1", Charge(attempts=1))
    with pytest.raises(ValueError, match="a1 already holds"):
        ledger.reserve("a1", Charge(attempts=1))
    ledger.settle("a1", "execution", NOTHING)
    with pytest.raises(KeyError):
        ledger.settle("a1", "execution", NOTHING)
    ledger.reserve("a1", Charge(attempts=1))
    assert ledger.held == Charge(attempts=1)


def test_charges_are_kept_by_kind() -> None:
    ledger = Ledger()
    ledger.record("planning", Charge(tokens_in=1))
    ledger.record("planning", Charge(tokens_in=2))
    ledger.record("measurement", Charge(seconds=3.0))
    assert ledger.by_kind == {
        "planning": Charge(tokens_in=3),
        "measurement": Charge(seconds=3.0),
    }
    assert ledger.spent == Charge(tokens_in=3, seconds=3.0)


def test_what_is_left_counts_what_is_spent_and_what_is_held() -> None:
    ledger = Ledger()
    ledger.record("execution", Charge(attempts=2, tokens_in=100, usd=0.25, seconds=50.0))
    ledger.reserve("a3", Charge(attempts=1, tokens_out=30, usd=0.5, seconds=20.0))
    budget = Budget(attempts=10, tokens=1000, usd=2.0, seconds=100.0)
    left = ledger.remaining(budget, elapsed=40.0)
    assert left == Remaining(attempts=7, tokens=870, usd=1.25, seconds=60.0)
    assert ledger.remaining(Budget(attempts=10), elapsed=40.0) == Remaining(attempts=7)


@pytest.mark.parametrize(
    ("cost", "lacking"),
    [
        (Charge(attempts=3, tokens_in=5, usd=0.1, seconds=1.0), ""),
        (Charge(attempts=4), "attempts"),
        (Charge(tokens_in=6), "tokens"),
        (Charge(usd=0.2), "usd"),
        (Charge(seconds=1.5), "seconds"),
        (Charge(attempts=4, seconds=1.5), "attempts"),
    ],
)
def test_the_first_limit_that_a_cost_does_not_fit_under_is_named(cost, lacking) -> None:
    left = Remaining(attempts=3, tokens=5, usd=0.1, seconds=1.0)
    assert left.lacking(cost) == lacking
    assert Remaining().lacking(cost) == ""


def test_a_limit_that_is_passed_keeps_from_nothing_that_takes_none_of_it() -> None:
    passed = Remaining(attempts=0, tokens=-157, usd=-0.1, seconds=10.0)
    assert passed.lacking(Charge(seconds=9.0)) == ""
    assert passed.lacking(Charge(tokens_in=1)) == "tokens"
    assert Remaining(seconds=-1.0).lacking(Charge()) == "seconds"


def test_sums_of_floats_do_not_make_a_limit_one_cent_short() -> None:
    ledger = Ledger()
    for _ in range(9):
        ledger.record("execution", Charge(usd=0.1))
    assert ledger.remaining(Budget(usd=1.0), 0.0).lacking(Charge(usd=0.1)) == ""


@pytest.mark.parametrize(
    ("budget", "elapsed", "ratio"),
    [
        (Budget(attempts=4), 0.0, 0.5),
        (Budget(attempts=4, usd=1.0), 0.0, 0.25),
        (Budget(attempts=4, seconds=10.0), 9.0, 0.1),
        (Budget(seconds=10.0), 12.0, 0.0),
        (Budget(tokens=0, attempts=2), 0.0, 0.0),
        (Budget(), 5.0, 1.0),
    ],
)
def test_the_remaining_ratio_is_the_smallest_of_all_limits(budget, elapsed, ratio) -> None:
    ledger = Ledger()
    ledger.record("execution", Charge(attempts=1, usd=0.5))
    ledger.reserve("a2", Charge(attempts=1, usd=0.25))
    assert ledger.remaining_ratio(budget, elapsed) == pytest.approx(ratio)


@given(values=st.lists(st.floats(0, 100), min_size=1, max_size=60), window=st.integers(1, 20))
def test_the_percentile_is_that_of_the_sorted_latest_values(
    values: list[float], window: int
) -> None:
    recent = Recent(window)
    assert recent.high() is None
    for count, value in enumerate(values, 1):
        recent.add(value)
        latest = sorted(values[max(0, count - window) : count])
        assert recent.high() == latest[int(0.9 * (len(latest) - 1))]
