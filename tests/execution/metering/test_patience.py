from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay.execution.metering.patience import Pace, Spell, asked_for, pause

PACE = Pace(first=1.0, most=60.0)


def test_pauses_double_up_to_the_longest() -> None:
    assert [pause(PACE, n, 0.0) for n in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]


@given(st.integers(0, 10**9), st.floats(allow_nan=True))
def test_no_pause_is_longer_than_the_longest(number: int, asked: float) -> None:
    assert 0 < pause(PACE, number, asked) <= PACE.most


def test_the_provider_may_ask_for_more_but_not_for_less() -> None:
    assert pause(PACE, 0, 20.0) == 20
    assert pause(PACE, 4, 3.0) == 16
    assert pause(PACE, 0, 86400.0) == 60


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Mon, 30 Nov 2026 12:00:30 GMT"}, 30),
        ({"retry-after": "Mon, 30 Nov 2026 11:00:00 GMT"}, 0),
        ({"retry-after": "soon"}, 0),
        ({"retry-after": "soon, maybe"}, 0),
        ({"retry-after": "-5"}, 0),
        ({}, 0),
    ],
)
def test_what_a_provider_asks_for(headers: dict[str, str], seconds: float) -> None:
    noon = 1796040000.0  # 30 Nov 2026, 12:00 UTC
    assert asked_for(headers, noon) == pytest.approx(seconds)


def test_a_spell_is_one_patience_for_all_requests_until_an_answer() -> None:
    spell = Spell(100.0)
    assert spell.failed(now=1000.0) == 1100
    assert spell.failed(now=1090.0) == 1100  # another request, or the client's own next try
    assert spell.failed(now=5000.0) == 1100
    spell.answered()
    assert spell.failed(now=6000.0) == 6100
