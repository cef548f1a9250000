"""Train a small network on 400 handwritten digits and print its accuracy on the other 1,397.

The seed decides which images are trained on, the starting weights and the order of the batches.
"""

from __future__ import annotations

import os

# One thread: the matrices are tiny, and sums come out the same on every run.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

TRAINING_IMAGES = 400
EPOCHS = 30
BATCH = 32
ORIENTATIONS = 8


@dataclass(frozen=True, kw_only=True)
class Options:
    """Everything about the training that can be switched; the defaults are the plain program."""

    features: str = "pixels"
    optimizer: str = "sgd"
    rate: float = 0.01
    width: int = 32
    mirror: bool = False
    shuffle: bool = True
    patience: int = 10


def accuracy(options: Options, seed: int) -> float:
    """Return the share of held-out digits that are recognised, in [0, 1]."""
    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 8, 8) / 16
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(images))
    train, held_out = order[:TRAINING_IMAGES], order[TRAINING_IMAGES:]

    network = MLPClassifier(
        (options.width,),
        solver=options.optimizer,
        learning_rate_init=options.rate,
        batch_size=BATCH,
        shuffle=options.shuffle,
        n_iter_no_change=options.patience,
        random_state=seed,
    )
    digits = np.arange(10)
    for _ in range(EPOCHS):
        shown = mirrored(images[train], rng) if options.mirror else images[train]
        network.partial_fit(described(shown, options.features), labels[train], classes=digits)
    return float(network.score(described(images[held_out], options.features), labels[held_out]))


def mirrored(images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the images with a random half of them flipped left to right."""
    flip = rng.random(len(images)) < 0.5
    return np.where(flip[:, None, None], images[:, :, ::-1], images)


def described(images: np.ndarray, features: str) -> np.ndarray:
    """Return one row a picture: its 64 pixels, and with "strokes" the edges of 4 by 4 zones."""
    pixels = images.reshape(len(images), -1)
    return pixels if features == "pixels" else np.hstack([pixels, strokes(images)])


def strokes(images: np.ndarray) -> np.ndarray:
    """Return how strong the edges of each orientation are in each 2 by 2 pixel zone."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    across = padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2]
    down = padded[:, 2:, 1:-1] - padded[:, :-2, 1:-1]
    zones = []
    for angle in 2 * np.pi * np.arange(ORIENTATIONS) / ORIENTATIONS:
        edge = np.maximum(across * np.cos(angle) + down * np.sin(angle), 0)
        zones.append(edge.reshape(-1, 4, 2, 4, 2).sum((2, 4)).reshape(len(images), -1) / 2)
    return np.hstack(zones)


def parse(arguments: list[str] | None = None) -> tuple[Options, int]:
    """Return the options and the seed of a command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--features", choices=["pixels", "strokes"], default="pixels")
    parser.add_argument("--optimizer", choices=["sgd", "adam"], default="sgd")
    parser.add_argument("--rate", type=float, default=0.01, help="learning rate")
    parser.add_argument("--width", type=int, default=32, help="hidden units")
    parser.add_argument("--mirror", action="store_true", help="flip half of the training images")
    parser.add_argument("--no-shuffle", dest="shuffle", action="store_false", default=True)
    parser.add_argument("--patience", type=int, default=10, help="epochs without change")
    found = vars(parser.parse_args(arguments))
    seed = found.pop("seed")
    return Options(**found), seed


def main() -> None:
    """Print the accuracy as a JSON object."""
    print(json.dumps({"accuracy": round(accuracy(*parse()), 5)}))


if __name__ == "__main__":
    main()
