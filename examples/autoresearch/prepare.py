"""The fixed part: the text, its two halves, and the measure. Not to be changed."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import math
import random
import resource
import sys
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 400
CONTEXT = 4  # bytes that the model sees before the one it predicts
TRAINING_SENTENCES = 1000
VALIDATION_SENTENCES = 200

_WHO = ("the miller", "a heron", "my neighbour", "the old ferry", "every lamp", "one grey goat")
_DOES = ("waits for", "mends", "carries", "forgets", "circles", "counts", "finds")
_WHAT = ("the river", "two brass keys", "a letter", "the north field", "some warm bread")
_WHEN = ("at dusk", "before the rain", "in winter", "when the bell rings", "without a word")


def _sentences(count: int, rng: random.Random) -> bytes:
    """Return made-up sentences, one a line."""
    lines = []
    for _ in range(count):
        words = [rng.choice(_WHO), rng.choice(_DOES), rng.choice(_WHAT)]
        if rng.random() < 0.6:
            words.append(rng.choice(_WHEN))
        lines.append(" ".join(words) + ".\n")
    return "".join(lines).encode("ascii")


def load() -> tuple[np.ndarray, np.ndarray]:
    """Return training and validation bytes, each an array of integers below 128."""
    rng = random.Random(20)
    texts = _sentences(TRAINING_SENTENCES, rng), _sentences(VALIDATION_SENTENCES, rng)
    first, second = (np.frombuffer(text, dtype=np.uint8).astype(np.int64) for text in texts)
    return first, second


def windows(text: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the contexts, shape (n, CONTEXT), and the byte after each, shape (n,)."""
    seen = np.lib.stride_tricks.sliding_window_view(text, CONTEXT + 1)
    return seen[:, :-1], seen[:, -1]


def report(log_probabilities: Callable[[np.ndarray], np.ndarray], validation: np.ndarray) -> None:
    """Print the measure of a model.

    Args:
        log_probabilities: Contexts, shape (n, CONTEXT), to natural logarithms of the
            probabilities of the next byte, shape (n, 128).
        validation: The validation bytes.
    """
    contexts, following = windows(validation)
    scores = log_probabilities(contexts)
    total = np.exp(scores).sum(axis=1)
    if not np.allclose(total, 1, atol=1e-6):
        sys.exit("the probabilities of a byte do not sum to 1")
    bits = -scores[np.arange(len(following)), following].mean() / math.log(2)
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"val_bpb: {bits:.6f}")
    print(f"peak_vram_mb: {kilobytes / 1024:.1f}")
