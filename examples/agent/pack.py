"""Puts items into as few bins of size 1 as it can. The plan: say where each item goes."""

import json
import sys


def pack(sizes: list[float]) -> list[int]:
    """Return the bin of each item, counted from 0; what is in a bin must not exceed 1."""
    bins, room, last = [], 1.0, 0
    for size in sizes:
        if size > room:
            last, room = last + 1, 1.0
        room -= size
        bins.append(last)
    return bins


if __name__ == "__main__":
    json.dump(pack(json.load(sys.stdin)), sys.stdout)
