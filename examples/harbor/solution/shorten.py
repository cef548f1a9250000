"""Write a shorter round trip: nearest stop first, then reversals of parts as long as they help."""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path


def nearest_first(stops: dict[int, tuple[float, float]]) -> list[int]:
    trip, left = [min(stops)], set(stops) - {min(stops)}
    while left:
        trip.append(min(left, key=lambda stop: math.dist(stops[stop], stops[trip[-1]])))
        left.remove(trip[-1])
    return trip


def reversed_parts(stops: dict[int, tuple[float, float]], trip: list[int]) -> list[int]:
    improved = True
    while improved:
        improved = False
        for i in range(1, len(trip) - 1):
            for j in range(i + 1, len(trip)):
                a, b, c, d = trip[i - 1], trip[i], trip[j], trip[(j + 1) % len(trip)]
                before = math.dist(stops[a], stops[b]) + math.dist(stops[c], stops[d])
                after = math.dist(stops[a], stops[c]) + math.dist(stops[b], stops[d])
                if after < before - 1e-12:
                    trip[i : j + 1] = reversed(trip[i : j + 1])
                    improved = True
    return trip


def main(stops_file: str, trip_file: str) -> None:
    with open(stops_file, newline="") as file:
        stops = {int(number): (float(x), float(y)) for number, x, y in csv.reader(file)}
    trip = reversed_parts(stops, nearest_first(stops))
    Path(trip_file).write_text("".join(f"{stop}\n" for stop in trip))


main(*sys.argv[1:])
