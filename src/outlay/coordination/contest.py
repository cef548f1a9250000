"""The champion, those who want its place, and the evidence between them.

Values in here are oriented: higher is better.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from outlay.coordination.challenge import Standing, is_challenger
from outlay.coordination.confirmation import Band, Evidence, Judgement, Sequential, judge
from outlay.coordination.noise import Noise

if TYPE_CHECKING:
    from outlay.task import Coordination

PAIRS = 12
"""Fresh seeds set aside for each challenger, and the most pairs it may take."""

BAND_PAIRS = 3


@dataclass(slots=True, kw_only=True)
class Challenge:
    """One challenger under way: its node, its place in the seed stream, and its pairs so far.

    Attributes:
        node: The challenger.
        place: Number of challenges begun before it, from 0.
        pairs: Oriented values (challenger, incumbent) on the same seed; `None` is a fault.
    """

    node: int
    place: int
    pairs: list[tuple[float | None, float | None]] = field(default_factory=list)

    @property
    def complete(self) -> list[tuple[float, float]]:
        """The pairs in which both sides have a value."""
        return [(a, b) for a, b in self.pairs if a is not None and b is not None]

    @property
    def broke(self) -> bool:
        """Whether the challenger failed on a seed."""
        return any(challenger is None for challenger, _ in self.pairs)


class Contest:
    """Who is champion, and who is being or will be compared with it, in log order.

    Attributes:
        champion: Its node.
        selected: Its score on the selection seeds, metric units, oriented.
        queue: Nodes waiting to be compared.
        challenge: The comparison under way.
        begun: Challenges begun so far.
        spent: Challenges that were rejected, which uses up shares of the error rate.
        noise: Pooled noise of everything measured more than once.
    """

    def __init__(self, settings: Coordination, *, seeds_decide: bool = True) -> None:
        """Begin without a champion.

        Args:
            settings: Which rule confirms.
            seeds_decide: Whether two evaluations on one seed share their noise.
        """
        self._seeds_decide = seeds_decide
        self.settings = settings
        self.champion = 0
        self.selected = 0.0
        self.queue: deque[int] = deque()
        self.challenge: Challenge | None = None
        self.begun = 0
        self.spent = 0
        self.noise = Noise()
        self._known_sum = 0.0
        self._known_count = 0

    @property
    def standing(self) -> Standing:
        """What is known of the champion."""
        mean = self._known_sum / self._known_count if self._known_count else self.selected
        return Standing(mean=mean, selection=self.selected if self._seeds_decide else None)

    def crown(self, node: int, selected: float, fresh: list[float]) -> None:
        """Make the node champion, with its values on seeds other than the selection seeds."""
        self.champion, self.selected = node, selected
        self._known_sum, self._known_count = sum(fresh), len(fresh)

    def is_challenger(self, score: float) -> bool:
        """Whether an oriented selection score is worth a comparison with the champion."""
        if self.settings.confirmation == "none":
            return score > self.selected
        return is_challenger(score, self.standing, self.noise)

    def begin(self, node: int) -> Challenge:
        """Start to compare the node, which is taken from the queue."""
        self.queue.remove(node)
        self.challenge = Challenge(node=node, place=self.begun)
        self.begun += 1
        return self.challenge

    def add_pair(self, challenger: float | None, incumbent: float | None) -> None:
        """Add one pair of oriented values on a fresh seed; `None` for a fault."""
        if self.challenge is None:
            raise ValueError("a pair came without a challenge under way")
        self.challenge.pairs.append((challenger, incumbent))

    def judgement(self) -> Judgement | None:
        """Return what follows from the pairs so far; `None` while there is no complete pair."""
        if self.challenge is None or not self.challenge.complete:
            return None
        challenger, incumbent = zip(*self.challenge.complete, strict=True)
        evidence = Evidence(
            challenger=challenger, incumbent=incumbent, noise=self.noise, index=self.spent
        )
        return judge(evidence, self._rule())

    def close(self, *, promoted: bool) -> None:
        """End the challenge: its pairs become part of what is known of noise and champion."""
        if self.challenge is None:
            raise ValueError("there is no challenge to close")
        pairs = self.challenge.complete
        if pairs:
            challenger, incumbent = zip(*pairs, strict=True)
            self.noise = self.noise.with_pairs(challenger, incumbent)
            self._known_sum += sum(incumbent)
            self._known_count += len(incumbent)
        self.spent += not promoted
        self.challenge = None

    @property
    def pairs_allowed(self) -> int:
        """Fresh seeds that a challenger may use up, faults included."""
        return BAND_PAIRS if self.settings.confirmation == "band" else PAIRS

    def _rule(self) -> Band | Sequential:
        if self.settings.confirmation == "band":
            return Band(seeds=BAND_PAIRS)
        return Sequential(error_rate=self.settings.error_rate, max_pairs=PAIRS)
