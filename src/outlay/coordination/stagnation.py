"""When a search has gone without improvement for too long."""

from __future__ import annotations


class Stagnation:
    """Counts outcomes since the last improvement; O(1) a call.

    Attributes:
        window: Outcomes without improvement after which it is time to reorganise; 0 is never.
    """

    def __init__(self, window: int) -> None:
        if window < 0:
            raise ValueError(f"window: found {window}, allowed: 0 or more")
        self.window = window
        self._since = 0

    def record(self, improved: bool) -> bool:
        """Count one outcome; return whether the last `window` outcomes all failed to improve."""
        self._since = 0 if improved else self._since + 1
        return 0 < self.window <= self._since
