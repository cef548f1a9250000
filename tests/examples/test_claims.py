"""The reference of the example says what its model does."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import NamedTuple

from outlay.evaluators.claims import read_claims

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "claims"


class Waits(NamedTuple):
    mean: float
    longest: float


def waits(counters: int = 1, order: str = "arrival", load: float = 0.9) -> list[Waits]:
    run = runpy.run_path(str(FOLDER / "queue_model.py"))["waits"]
    found = [run(counters, order, load, seed) for seed in (1, 2, 3)]
    return [Waits(sum(each) / len(each), max(each)) for each in found]


def test_every_claim_of_the_reference_holds_on_three_seeds() -> None:
    plain = waits()
    shortest = waits(order="shortest")
    holds = {
        "A second counter shortens the mean wait.": all(
            a.mean < b.mean for a, b in zip(waits(counters=2), plain, strict=True)
        ),
        "Serving the shortest job first shortens the mean wait.": all(
            a.mean < b.mean for a, b in zip(shortest, plain, strict=True)
        ),
        "Serving the shortest job first lengthens the longest wait.": all(
            a.longest > b.longest for a, b in zip(shortest, plain, strict=True)
        ),
        "A load of 0.5 shortens the mean wait.": all(
            a.mean < b.mean for a, b in zip(waits(load=0.5), plain, strict=True)
        ),
    }
    assert holds == dict.fromkeys(read_claims(FOLDER / "reference.json"), True)
