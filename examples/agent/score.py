"""Scores pack.py: how full the bins are on 20 lists of items, drawn anew for each seed.

The program runs as a child process, so nothing that it prints is taken for the score.
"""

import json
import random
import subprocess
import sys

LISTS, ITEMS, SLACK = 20, 60, 1e-9


def main() -> None:
    """Draw the lists, have each one packed, check it, and print the mean fill."""
    draw = random.Random(int(sys.argv[sys.argv.index("--seed") + 1]))
    fills = [fill([round(draw.uniform(0.1, 0.7), 3) for _ in range(ITEMS)]) for _ in range(LISTS)]
    print(json.dumps({"fill": sum(fills) / len(fills)}))


def fill(sizes: list[float]) -> float:
    """Return what the items fill of the bins that they are put into."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "pack.py"],
        input=json.dumps(sizes),
        stdout=subprocess.PIPE,
        text=True,
        timeout=20,
        check=True,
    )
    bins = json.loads(done.stdout)
    if len(bins) != len(sizes):
        raise SystemExit(f"pack.py: found {len(bins)} bins for {len(sizes)} items")
    held: dict[int, float] = {}
    for size, place in zip(sizes, bins, strict=True):
        held[place] = held.get(place, 0.0) + size
    if max(held.values()) > 1 + SLACK:
        raise SystemExit(f"pack.py: found a bin that holds {max(held.values())}, allowed: 1")
    return sum(sizes) / len(held)


main()
