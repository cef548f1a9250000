from __future__ import annotations

from typing import get_args

from outlay import events
from outlay.store import MemoryStore
from outlay.testing import StoreContract, one_of_each


class TestMemoryStore(StoreContract):
    shared = False

    def open(self, folder, mode):
        return MemoryStore()


def test_the_contract_tries_every_kind_of_event() -> None:
    assert [type(event) for event in one_of_each()] == list(get_args(events.AnyEvent))
