"""A small network as NumPy arrays: what `ContrastiveFeatures` leaves after training."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]


class Encoder(NamedTuple):
    """z = W_l ReLU(… ReLU(W_1 x + b_1) …) + b_l, scaled to length 1: weights and biases of every layer."""

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]

    def __call__(self, x: Array) -> Array:
        """Rows (N, D) as points (N, n_components) of the unit sphere."""
        for W, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = np.maximum(x @ W + b, 0)
        z = x @ self.weights[-1] + self.biases[-1]
        z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)
        return z
