from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from outlay.agents.prices import LISTED, price_of
from outlay.task import Price, Task
from tests import driving

PAGE = Path(__file__).resolve().parents[2] / "docs" / "agents.md"


def task(prices: dict[str, Price]) -> Task:
    return replace(driving.task(levers=0), prices=prices)


def test_every_price_has_its_source_on_the_page() -> None:
    rows = re.findall(r"^\| `([^`]+)` \|" + r" ([\d.]+) \|" * 4 + r" .*\w", PAGE.read_text(), re.M)
    assert {name: tuple(map(float, numbers)) for name, *numbers in rows} == {
        name: tuple(price_of(task({}), name) or ()) for name in LISTED
    }


def test_the_price_of_the_task_comes_first() -> None:
    own = task({"gpt-5-mini": Price(input=8.0, output=9.0)})
    assert price_of(own, "gpt-5-mini") == pytest.approx((8.0, 8.0, 8.0, 9.0))
    assert price_of(own, "nobody-knows-it") is None
