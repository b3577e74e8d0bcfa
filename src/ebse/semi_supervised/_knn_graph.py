"""Nearest neighbors of every row, and walks from neighbor to neighbor."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.neighbors import NearestNeighbors

Array = npt.NDArray[Any]

EXACT = 10_000
"""Rows up to which all are compared; above, pynndescent finds 93 of 100 neighbors (50,000 MNIST digits).

It took 7 seconds there, and 40 more to compile the first time; comparing all took about 150, on one core.
"""
CANDIDATES = 15
"""Nearest rows, of which those are kept that share most neighbors."""
METRICS, MANY_COLUMNS = ("auto", "cosine", "euclidean"), 100
"""How near rows are, and from how many columns on directions are compared by themselves."""
BLOCK = 1_000
"""Rows whose neighbors are compared at once."""


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
    # A row is its own nearest neighbor, or, among equal rows, one of them.
    own[~own.any(1), -1] = True
    others: npt.NDArray[np.int64] = graph[~own].reshape(len(X), n).astype(np.int64)
    return others


def shared(neighbors: npt.NDArray[np.int64], n: int) -> npt.NDArray[np.int64]:
    """Of the neighbors (N, m) of each row the n that share most of theirs with it, most first (N, n).

    A neighbor in a cluster of its own is near by chance: its neighbors are others. Of equals the nearer.
    """
    held = []
    for start in range(0, len(neighbors), BLOCK):
        of_row = neighbors[start : start + BLOCK]
        of_neighbors = neighbors[of_row]
        both = sum(
            (of_neighbors == of_row[:, np.newaxis, [j]]).any(2).astype(np.int64)
            for j in range(of_row.shape[1])
        )
        order = np.argsort(-both, axis=1, kind="stable")[:, :n]
        held.append(np.take_along_axis(of_row, order, axis=1))
    return np.concatenate(held)


def graph(X: Array, n_neighbors: int, *, metric: str, seed: int) -> npt.NDArray[np.int64]:
    """The neighbors (N, n_neighbors) that a walk from each row of X (N, D) chooses from; X has mean 0.

    "cosine" compares directions from the mean, "euclidean" places; "auto" takes the first where columns are
    many: what tells images apart is less how bright they are than where.
    """
    if metric == "cosine" or (metric == "auto" and X.shape[1] >= MANY_COLUMNS):
        lengths = np.linalg.norm(X, axis=1, keepdims=True)
        X = X / np.where(lengths > 0, lengths, 1)
    candidates = nearest(X, max(CANDIDATES, n_neighbors), seed=seed)
    return shared(candidates, n_neighbors)


def walked(
    neighbors: npt.NDArray[np.int64], n_steps: int, start: Array, *, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Where walks of n_steps from the rows ``start`` end: at every step to a random neighbor."""
    at = start
    for _ in range(n_steps):
        at = neighbors[at, rng.integers(neighbors.shape[1], size=len(at))]
    return at
