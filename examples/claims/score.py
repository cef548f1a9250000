"""The evaluator: how well `claims.json` agrees with the hidden `reference.json`."""

from __future__ import annotations

from outlay.evaluators.claims import agreement, read_claims
from outlay.evaluators.judges import same_words


def score(config: dict[str, str], seed: int) -> dict[str, float]:
    """Return precision, recall and f1."""
    claims, reference = read_claims("claims.json"), read_claims("reference.json")
    return agreement(claims, reference, same_words)._asdict()
