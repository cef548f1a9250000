"""Print the reward of a round trip as JSON: 0 at the baseline's length, 1 at the reference's."""

from __future__ import annotations

import csv
import json
import math
import sys
from pathlib import Path

BASELINE, REFERENCE = 15.399, 4.44


def length(stops: dict[int, tuple[float, float]], trip: list[int]) -> float:
    """Return the length of the round trip."""
    return sum(
        math.dist(stops[a], stops[b]) for a, b in zip(trip, [*trip[1:], trip[0]], strict=True)
    )


def main(stops_file: str, trip_file: str) -> None:
    with open(stops_file, newline="") as file:
        stops = {int(number): (float(x), float(y)) for number, x, y in csv.reader(file)}
    trip = [int(line) for line in Path(trip_file).read_text().split()]
    if sorted(trip) != sorted(stops):
        print(json.dumps({"reward": 0.0, "correctness": False, "metric": None}))
        return
    found = length(stops, trip)
    reward = min(1.0, max(0.0, (BASELINE - found) / (BASELINE - REFERENCE)))
    print(json.dumps({"reward": round(reward, 4), "correctness": True, "metric": round(found, 4)}))


main(*sys.argv[1:])
