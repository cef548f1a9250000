"""Which directions were given up, and how often a given-up direction was tried anyway."""

from __future__ import annotations


class DeadEnds:
    """Registry of (axis, direction) pairs that failed several times in a row; O(1) a call.

    An improvement clears the count of failures but not a retirement; only `reopen` does that.
    A registry that nobody consults still counts: `redundant` is then the waste it would save.

    Attributes:
        limit: Non-improving outcomes in a row that retire a direction, at least 1.
        redundant: Outcomes recorded for a direction that was retired at that moment.
    """

    def __init__(self, limit: int = 3) -> None:
        if limit < 1:
            raise ValueError(f"limit: found {limit}, allowed: 1 or more")
        self.limit = limit
        self.redundant = 0
        self._failures: dict[tuple[str, str], int] = {}
        self._retired: set[tuple[str, str]] = set()

    @property
    def retired(self) -> frozenset[tuple[str, str]]:
        """All retired (axis, direction) pairs."""
        return frozenset(self._retired)

    def record(self, axis: str, direction: str, improved: bool) -> None:
        """Count one outcome of a direction."""
        key = (axis, direction)
        self.redundant += key in self._retired
        self._failures[key] = 0 if improved else self._failures.get(key, 0) + 1
        if self._failures[key] >= self.limit:
            self._retired.add(key)

    def is_retired(self, axis: str, direction: str) -> bool:
        """Whether the direction is given up."""
        return (axis, direction) in self._retired

    def reopen(self, axis: str, direction: str) -> None:
        """Take a retirement back and forget the failures behind it."""
        self._retired.discard((axis, direction))
        self._failures.pop((axis, direction), None)
