"""Programs to be ablated."""

from __future__ import annotations

NAMES = ["a", "b", "c", "d"]


def program(config):
    return 1 + 2 * config["a"] - config["b"] + 0.5 * config["c"] * config["a"]
