from __future__ import annotations

from outlay.store import MemoryStore
from outlay.testing import StoreContract


class TestMemoryStore(StoreContract):
    shared = False

    def open(self, folder, mode):
        return MemoryStore()
