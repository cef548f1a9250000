"""The plan tree and the walk written from the specification alone, slow and obvious.

Every quantity is computed from scratch from a list of plain records.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt


@dataclass
class Record:
    id: int
    parent: int | None
    prior: float = 0.5
    status: str = "open"  # open, running, scored, failed, lost
    reward: float | None = None
    pruned: bool = False
    exhausted: bool = False
    kind: str = "plan"


class SlowTree:
    def __init__(self, m: int, delta: float) -> None:
        self.m, self.delta = m, delta
        self.records = [Record(0, None, prior=1.0)]

    def children(self, v: int) -> list[Record]:
        return [r for r in self.records if r.parent == v]

    def visible(self, v: int) -> list[Record]:
        return [r for r in self.children(v) if r.status in ("open", "scored") and not r.pruned]

    def subtree(self, v: int) -> list[Record]:
        found = [self.records[v]]
        for child in self.children(v):
            found += self.subtree(child.id)
        return found

    def retained(self, v: int) -> list[float]:
        return [
            r.reward
            for r in self.subtree(v)
            if r.status == "scored" and not r.pruned and r.reward is not None
        ]

    def q(self, v: int) -> float:
        rewards = self.retained(v)
        return sum(rewards) / len(rewards) if rewards else 0.0

    def load(self, v: int) -> int:
        return sum(r.status == "running" for r in self.subtree(v))

    def score(self, v: int, reward: float) -> None:
        record = self.records[v]
        if record.parent is not None:
            q = self.q(record.parent)
            record.pruned = self.delta > 0 and q > 0 and reward < q - self.delta
        record.status, record.reward = "scored", reward

    def can_reflect(self, v: int) -> bool:
        r = self.records[v]
        plans = [c for c in self.visible(v) if c.kind == "plan"]
        return r.status == "scored" and not r.pruned and not r.exhausted and len(plans) < self.m

    def something_open(self, v: int) -> bool:
        return any(r.status == "open" or self.can_reflect(r.id) for r in self.subtree(v))

    def base(self, u: int, v: int) -> float:
        record = self.records[v]
        if record.status == "scored":
            return max(self.q(v), 1e-6)
        q = self.q(u)
        return max(q * sqrt(record.prior) if q > 0 else sqrt(record.prior), 1e-6)

    def weights(self, u: int, vs: list[Record], power: float) -> list[float]:
        return [self.base(u, v.id) ** power / (1 + self.load(v.id)) for v in vs]

    def uct(self, u: int, v: int) -> tuple[float, float]:
        n = len(self.retained(v))
        if n == 0:
            return (float("inf"), self.records[v].prior)
        bound = self.q(v) + sqrt(2) * sqrt(log(max(len(self.retained(u)), 1)) / n)
        return (bound / (1 + self.load(v)), 0.0)

    def walk(self, choose) -> tuple[str, int] | None:
        u = 0
        if not self.something_open(0):
            return None
        while True:
            record = self.records[u]
            if record.status == "open":
                return ("execute", u)
            unsettled = any(r.status == "open" for r in self.subtree(u))
            if self.can_reflect(u) and (not self.visible(u) or not unsettled):
                return ("reflect", u)
            candidates = [v for v in self.visible(u) if self.something_open(v.id)]
            if not candidates:
                return None
            u = choose(u, candidates)
