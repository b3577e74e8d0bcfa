"""Clusters that random walks seldom leave: a spectral cut of the graph of walks between k-means cells."""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from ebse._stages import stage
from ebse.semi_supervised._knn_graph import random_walk
from ebse.semi_supervised._propagation import kmeans

Array = npt.NDArray[Any]
Index = npt.NDArray[np.intp]

N_CELLS, ROWS_PER_CELL = 600, 5
"""Cells of k-means at most, and rows in each at least."""
N_STEPS, N_WALKS = 20, 4
"""Steps of the walks that are counted, and walks from each row."""
SMOOTHED = 1e-3
"""Walks added between every two cells: no cell is cut off."""
N_STARTS = 20
"""Starts of k-means among the eigenvectors."""
STAYING = (0.9, 0.85, 0.8, 0.77, 0.74)
"""A clustering for each: as many clusters as walks of N_STEPS have eigenvalues of at least this."""
FEWEST, MOST = 2, 60
"""Clusters of a clustering."""


def walk_clusters(z: Array, neighbors: npt.NDArray[np.int64], *, seed: int) -> list[Index]:
    """Several clusterings of the rows z (N, r): for each the cluster of every row (N,).

    Rows are gathered in cells by k-means, and walks between cells are counted, W symmetric. The leading
    eigenvectors of D^−½ W D^−½, scaled to the walk's own, are nearly constant on groups of cells that walks
    seldom leave; k-means of their normalized rows finds these. How many there are is read off the
    eigenvalues, so that no label is needed: an eigenvalue λ belongs to a group that a walk of N_STEPS leaves
    at about the rate 1 − λ. Each clustering has cells of its own.

    References
    ----------
    A. Ng, M. Jordan and Y. Weiss, "On spectral clustering: analysis and an algorithm", 2001.
    M. Meila and J. Shi, "A random walks view of spectral segmentation", 2001.
    """
    n_cells = max(min(N_CELLS, len(z) // ROWS_PER_CELL), 1)
    found = []
    with stage("clusters", len(STAYING)) as done:
        for i, staying in enumerate(STAYING):
            rng = np.random.default_rng([seed, i])
            cells = kmeans(z, n_cells, seed=seed + i, levels=1)
            W = _walks_between(cells.labels, n_cells, neighbors, rng)
            degree = W.sum(1)
            root = 1 / np.sqrt(degree)
            values, vectors = np.linalg.eigh(root[:, np.newaxis] * W * root)
            k = int(np.clip((values >= staying).sum(), min(FEWEST, n_cells), min(MOST, n_cells)))
            coordinates = vectors[:, ::-1][:, :k] * root[:, np.newaxis]
            coordinates /= np.linalg.norm(coordinates, axis=1, keepdims=True)
            with warnings.catch_warnings():
                # There may be fewer distinct cells than clusters.
                warnings.simplefilter("ignore", ConvergenceWarning)
                groups = KMeans(k, n_init=N_STARTS, random_state=seed + i).fit(
                    coordinates, sample_weight=degree
                )
            # Without clusters that have no row.
            found.append(np.unique(groups.labels_[cells.labels], return_inverse=True)[1].astype(np.intp))
            done(1)
    return found


def stability(some: list[Index], others: list[Index]) -> float:
    """Mean adjusted Rand index of clusterings of the same rows from two seeds: 1 if they agree, 0 by chance.

    References
    ----------
    L. Hubert and P. Arabie, "Comparing partitions", 1985.
    """
    return float(np.mean([adjusted_rand_score(a, b) for a, b in zip(some, others, strict=True)]))


def _walks_between(
    cells: Index, n_cells: int, neighbors: npt.NDArray[np.int64], rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Numbers of walks between cells, in either direction (n_cells, n_cells)."""
    W = np.zeros(n_cells**2)
    for _ in range(N_WALKS):
        ends = random_walk(neighbors, N_STEPS, np.arange(len(cells)), rng=rng)
        W += np.bincount(cells * n_cells + cells[ends], minlength=n_cells**2)
    square = W.reshape(n_cells, n_cells)
    found: npt.NDArray[np.float64] = square + square.T + SMOOTHED
    return found
