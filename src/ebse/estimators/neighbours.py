"""Nearest neighbours of every row, and walks from neighbour to neighbour."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.neighbors import NearestNeighbors

Array = npt.NDArray[Any]

EXACT = 10_000
"""Rows up to which all are compared; above, pynndescent finds 93 of 100 neighbours (50,000 MNIST digits).

It took 7 seconds there, and 40 more to compile the first time; comparing all took about 150, on one core.
"""


def nearest(X: Array, n_neighbors: int, *, seed: int) -> npt.NDArray[np.int64]:
    """Numbers of the n_neighbors nearest other rows of each row of X (N, D), nearest first."""
    n = min(n_neighbors, len(X) - 1)
    if len(X) <= EXACT:
        index = NearestNeighbors(n_neighbors=n).fit(X)
        found: npt.NDArray[np.int64] = index.kneighbors(return_distance=False)
        return found
    # It compiles for seconds when it is imported.
    from pynndescent import NNDescent

    graph, _ = NNDescent(X, n_neighbors=n + 1, random_state=seed).neighbor_graph
    own = graph == np.arange(len(X))[:, np.newaxis]
    # A row is its own nearest neighbour, or, among equal rows, one of them.
    own[~own.any(1), -1] = True
    others: npt.NDArray[np.int64] = graph[~own].reshape(len(X), n).astype(np.int64)
    return others


def walked(neighbours: npt.NDArray[np.int64], n_steps: int, *, seed: int) -> npt.NDArray[np.int64]:
    """Where a walk of n_steps from each row ends, a random one of its neighbours at every step (N,)."""
    rng = np.random.default_rng(seed)
    at = np.arange(len(neighbours))
    for _ in range(n_steps):
        at = neighbours[at, rng.integers(neighbours.shape[1], size=len(at))]
    return at
