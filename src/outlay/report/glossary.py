"""The words of a report, for those who meet them first."""

from __future__ import annotations

WORDS = (
    ("node", "One plan in the tree: its parent's program with one more change."),
    ("executor", "Who carries a plan out, such as a coding agent."),
    ("reflector", "Who drafts and revises plans, such as a model."),
    ("reflect", "To propose new plans below a node, from everything that was seen so far."),
    (
        "selection seeds",
        "The seeds that every attempt is scored on, which choose what is compared.",
    ),
    ("fresh seeds", "Seeds that chose nothing, so that their scores do not flatter a winner."),
    ("paired", "Both programs run on the same seeds; only their differences count."),
    (
        "champion",
        "The program that beat the one before it in a paired comparison, or the baseline.",
    ),
    ("pruned", "Scored so far below its parent's branch that the search leaves it alone."),
    ("axis", "What a change is about, such as one lever; its direction is the option chosen."),
    ("95 % interval", "The range that holds the true value in 95 of 100 such measurements."),
)
"""Pairs (word, meaning)."""
