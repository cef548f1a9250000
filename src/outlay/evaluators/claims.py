"""How well claims that an agent wrote agree with those of a reference, claim by claim.

As in FIRE-Bench (Wang et al., 2026, arXiv:2602.02905): precision is the share of the agent's
claims that the reference holds, recall the share of the reference's claims that the agent's hold,
and the score is their F1. Who decides whether two claims match is an argument; see `judges`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from outlay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

Judge = Callable[[str, str], bool]
"""Answers whether a claim (first) says what a claim of the reference (second) says."""


class Agreement(NamedTuple):
    """Shares in [0, 1]; precision is 0 where nothing is claimed, F1 where the other two are 0."""

    precision: float
    recall: float
    f1: float


def agreement(claims: Sequence[str], reference: Sequence[str], judge: Judge) -> Agreement:
    """Return how far the claims agree with the reference.

    A claim counts once, however many of the reference it matches, and the other way round. A pair
    is judged only while it can still change the result.

    Args:
        claims: What was found, maybe nothing.
        reference: What is there to be found, at least one claim.
        judge: Decides about one pair.
    """
    held: set[int] = set()
    found: set[int] = set()
    for i, claim in enumerate(claims):
        for k, expected in enumerate(reference):
            if not (i in held and k in found) and judge(claim, expected):
                held.add(i)
                found.add(k)
    precision = len(held) / len(claims) if claims else 0.0
    recall = len(found) / len(reference)
    both = precision + recall
    return Agreement(precision, recall, 2 * precision * recall / both if both else 0.0)


def read_claims(file: str | Path) -> list[str]:
    """Return the claims in a JSON file: a list of texts, or an object with one under `claims`.

    A claim that differs from an earlier one in nothing but case and spaces is left out.

    Raises:
        InputError: If the file is absent or holds anything else.
    """
    where = str(file)
    allowed = 'a JSON list of texts, or {"claims": [...]}'
    try:
        held: Any = json.loads(Path(file).read_bytes())
    except FileNotFoundError:
        raise InputError(f"{where}: found no such file, allowed: {allowed}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: found no JSON: {error}, allowed: {allowed}") from None
    listed = held.get("claims") if isinstance(held, dict) else held
    if not isinstance(listed, list):
        raise InputError(f"{where}: found no list of claims, allowed: {allowed}")
    first: dict[str, str] = {}
    for claim in listed:
        if not isinstance(claim, str) or not claim.strip():
            raise InputError(f"{where}: found the claim {claim!r}, allowed: {allowed}")
        first.setdefault(" ".join(claim.split()).casefold(), claim)
    return list(first.values())
