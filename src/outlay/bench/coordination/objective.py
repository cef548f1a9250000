"""What is maximised: the seam to a landscape, and the published one."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Protocol

Point = tuple[float, ...]

SIGNS = ("+", "-")
"""Directions of a numeric axis."""


class Objective(Protocol):
    """Something to maximise by moves along axes. Pure: equal arguments give equal values."""

    @property
    def start(self) -> Point:
        """Where the search begins, one coordinate an axis."""

    @property
    def directions(self) -> tuple[str, ...]:
        """The directions of every axis: `SIGNS`, or the names of its options."""

    def clean(self, point: Point, time: int = 0) -> float:
        """Return the noise-free value at a point, at experiment `time`; the optimum has 0."""

    def observe(self, point: Point, seed: int, time: int = 0) -> float:
        """Return one noisy observation."""

    def moved(self, point: Point, axis: int, direction: str) -> Point:
        """Return the point one move further along an axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """Section 3.1 of Friedman 2026: a bowl with ripples and uniform noise; optimum at 0.

    Attributes:
        ripple: Amplitude of the ripples.
        scale: Half-range of the noise.
    """

    start: Point = (1.5, 1.5, 1.5, 1.5)
    directions: tuple[str, ...] = SIGNS
    ripple: float = 0.15
    scale: float = 0.02

    def clean(self, point: Point, time: int = 0) -> float:
        """Return the noise-free value."""
        return 0.0 - sum(g * g + self.ripple * (1.0 - math.cos(2.0 * math.pi * g)) for g in point)

    def observe(self, point: Point, seed: int, time: int = 0) -> float:
        """Return the value plus noise that is uniform within `scale` on either side."""
        return self.clean(point) + (unit_draw(point, seed) - 0.5) * 2 * self.scale

    def moved(self, point: Point, axis: int, direction: str) -> Point:
        """Return the point a step of 0.5 further along an axis."""
        return stepped(point, axis, 0.5 if direction == "+" else -0.5)


def unit_draw(point: Point, seed: int) -> float:
    """Return a number in [0, 1) that a hash of the seed and the rounded point decides."""
    coordinates = ",".join(f"{x:.6f}" for x in point)
    digest = hashlib.sha256(f"{seed}:{coordinates}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def stepped(point: Point, axis: int, by: float) -> Point:
    """Return the point with one coordinate changed."""
    return (*point[:axis], point[axis] + by, *point[axis + 1 :])
