"""Train a two-layer network that predicts the next byte, and print its bits per byte."""

from __future__ import annotations

from prepare import CONTEXT, STEPS, load, report, windows  # first: it keeps numpy to one thread

# isort: split
import numpy as np

SEED = 42
BATCH = 64
EMBEDDING = 8
HIDDEN = 48
RATE = 1.0
WARMDOWN = 0.3  # last share of the steps over which the rate falls to 0
INIT_SCALE = 1.0


def softmax_log(logits: np.ndarray) -> np.ndarray:
    """Return the logarithm of the softmax of each row."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


class Model:
    """Embedded context, one hidden layer, 128 logits."""

    def __init__(self, rng: np.random.Generator) -> None:
        width = CONTEXT * EMBEDDING
        self.embedding = rng.normal(size=(128, EMBEDDING))
        self.inward = INIT_SCALE * rng.normal(size=(width, HIDDEN)) / np.sqrt(width)
        self.outward = np.zeros((HIDDEN, 128))
        self.bias = np.zeros(128)

    def log_probabilities(self, contexts: np.ndarray) -> np.ndarray:
        """Return the logarithm of each next byte's probability, shape (n, 128)."""
        return self._forward(contexts)[2]

    def step(self, contexts: np.ndarray, following: np.ndarray, rate: float) -> None:
        """Move all weights once against the gradient of the mean loss."""
        embedded, hidden, scores = self._forward(contexts)
        error = np.exp(scores)
        error[np.arange(len(following)), following] -= 1
        error /= len(following)
        back = (error @ self.outward.T) * (1 - hidden**2)
        to_embedding = (back @ self.inward.T).reshape(-1, EMBEDDING)
        self.outward -= rate * hidden.T @ error
        self.bias -= rate * error.sum(axis=0)
        self.inward -= rate * embedded.T @ back
        np.add.at(self.embedding, contexts.ravel(), -rate * to_embedding)

    def _forward(self, contexts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        embedded = self.embedding[contexts].reshape(len(contexts), -1)
        hidden = np.tanh(embedded @ self.inward)
        return embedded, hidden, softmax_log(hidden @ self.outward + self.bias)


def rate_at(step: int) -> float:
    """Return the learning rate of a step."""
    left = (STEPS - step) / STEPS
    return RATE * min(1.0, left / WARMDOWN)


def main() -> None:
    rng = np.random.default_rng(SEED)
    training, validation = load()
    contexts, following = windows(training)
    model = Model(rng)
    for step in range(STEPS):
        chosen = rng.integers(len(following), size=BATCH)
        model.step(contexts[chosen], following[chosen], rate_at(step))
    report(model.log_probabilities, validation)


if __name__ == "__main__":
    main()
