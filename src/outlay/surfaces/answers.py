"""What a surface answers: a value, the best configuration, what to measure next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from outlay.surfaces.factors import Config, Factors
    from outlay.surfaces.proposal import Proposal
    from outlay.surfaces.readout import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value with its 90 % interval; `measured` when it is a measurement itself."""

    mean: float
    low: float
    high: float
    measured: bool

    @classmethod
    def at(cls, found: Reading, place: int) -> Estimate:
        """Return the value that was read at a place."""
        mean, width = float(found.mean[place]), float(found.width[place])
        return cls(
            mean=mean, low=mean - width, high=mean + width, measured=bool(found.measured[place])
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The configuration with the best predicted value.

    Attributes:
        config: The configuration.
        estimate: Its value.
        probability: Posterior probability that it is the best of those considered.
    """

    config: Config
    estimate: Estimate
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """What to measure next, and why.

    Attributes:
        config: The configuration.
        reason: Why, in words.
        gain: Share of the effects' summed uncertainty that it is expected to remove, 0 to 1;
            `None` for a starting point.
        usd: What it costs; 0 where nothing was said of costs.
    """

    config: Config
    reason: str
    gain: float | None = None
    usd: float = 0.0

    @classmethod
    def of(cls, proposal: Proposal, factors: Factors, usd: float = 0.0) -> Suggestion:
        """Return the proposal for whoever measures it."""
        gain = None if np.isnan(proposal.gain) else proposal.gain
        reason = "a starting point"
        if gain is not None:
            reason = f"leaves the effects {gain:.0%} less uncertain in sum"
        return cls(config=factors.config(proposal.cell), reason=reason, gain=gain, usd=usd)
