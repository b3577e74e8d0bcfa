"""Labels that spread: clusters of all rows, a graph of their centres, and what flows along it."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import linalg
from sklearn.cluster import MiniBatchKMeans
from sklearn.neighbors import NearestNeighbors

Array = npt.NDArray[np.floating[Any]]
Index = npt.NDArray[np.intp]

N_NEIGHBOURS, ALPHA = 4, 0.99
"""Of a centre in the graph, and the share of a label that is passed on at every step."""
ROUNDS, SINKHORN, N_SIZED = 5, 50, 10_000
"""Of class sizes: how often labels are assigned anew, scalings in each, and rows that are asked."""


class Clustering(NamedTuple):
    """Centres (k, r) of the rows, and G = (I − α S)⁻¹ (k, k), what each receives from each."""

    centres: Array
    flow: Array

    def places(self, Z: Array) -> Index:
        """The centre that is nearest to each row of Z (N, r)."""
        # |z − c|² but for |z|², which decides nothing.
        closeness = Z @ self.centres.T - 0.5 * (self.centres**2).sum(1)
        found: Index = closeness.argmax(1)
        return found


def clustered(Z: Array, n_clusters: int, *, seed: int) -> Clustering:
    """Clusters of the rows Z (N, r) by k-means, and the graph of their centres."""
    means = MiniBatchKMeans(n_clusters, batch_size=max(4096, n_clusters), n_init=1, random_state=seed)
    centres: Array = means.fit(Z).cluster_centers_
    return Clustering(centres, flow_between(centres))


def flow_between(centres: Array) -> Array:
    """G = (I − α S)⁻¹, S = D^−½ A D^−½ with A_ij = 1 where i or j is among the other's nearest (k, k)."""
    k = len(centres)
    A = np.zeros((k, k))
    if k > 1:
        near = NearestNeighbors(n_neighbors=min(N_NEIGHBOURS, k - 1)).fit(centres)
        for i, others in enumerate(near.kneighbors(return_distance=False)):
            A[i, others] = A[others, i] = 1
    root = 1 / np.sqrt(np.maximum(A.sum(1), 1))
    S = root[:, np.newaxis] * A * root
    found: Array = linalg.inv(np.eye(k) - ALPHA * S)
    return found


def scores(flow: Array, places: Index, labels: Index, n_classes: int) -> Array:
    """What every centre receives from the labels of each class, as shares (k, n_classes).

    Each class sends the same amount, however many labels it has; where nothing arrives, all are equal.
    """
    sent = np.zeros((len(flow), n_classes))
    counts = np.bincount(labels, minlength=n_classes)
    np.add.at(sent, (places, labels), 1 / counts[labels])
    received = flow @ sent
    total = received.sum(1, keepdims=True)
    return np.where(total > 1e-12, received / np.maximum(total, 1e-12), 1 / n_classes)


def scales_for(p: Array, sizes: Array) -> Array:
    """Factors of the classes with which shares p (N, n_classes) sum to ``sizes``, by Sinkhorn's rounds."""
    scale = np.ones(p.shape[1])
    for _ in range(SINKHORN):
        q = p * scale
        q /= np.maximum(q.sum(1, keepdims=True), 1e-300)
        scale *= sizes / np.maximum(q.mean(0), 1e-12)
        scale /= scale.mean()
    return scale
