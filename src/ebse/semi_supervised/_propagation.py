"""Labels that spread: clusters of all rows, a graph of their centers, and what flows along it."""

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors

from ebse.semi_supervised._labels import Labels

Array = npt.NDArray[np.floating[Any]]
Index = npt.NDArray[np.intp]

N_NEIGHBORS, ALPHA = 4, 0.99
"""Of a center in the graph, and the share of a label that is passed on at every step."""
N_PLACES = 10
"""Centers that a row belongs to, the near ones most: a label at the edge of its class is not lost."""
FEW, N_LLOYD = 10_000, 10
"""Rows whose first centers are spread out, which takes as long as clustering, and rounds of k-means."""
OWN = 0.3
"""Part of one label in what is said of its class, where other rows speak, too; n labels are heard n times."""
SHARPER = 4
"""Power of what reaches a row, in its shares: a row is of one class, and sizes count rows."""
LEAST = 1e-3
"""What is less counts as nothing: a row's part at a far center, or how much more one class reaches a row."""
YIELDING = 0.1
"""Of the sizes, at last: rows of a class that are a tenth too many weigh 0.4 as much, not nothing."""
SINKHORN, LARGEST = 50, 1e6
"""Scalings that class sizes are fitted by, and how far factors may differ."""
BLOCK = 4_096
"""Rows whose distances to all centers are held at once."""


class Clusterings(NamedTuple):
    """Several clusterings of the same rows: n of them, k centers each."""

    centers: Array
    """(n, k, r)"""
    widths: Array
    """Median squared distance of a row from its nearest center (n,)."""
    flows: Array
    """G = (I − α S)⁻¹, what each center receives from each (n, k, k)."""

    def places(self, Z: Array) -> sparse.csr_matrix:
        """Shares of each row of Z (N, r) at its nearest centers (N, n · k), by exp(−|z − c|² / width)."""
        n, k, r = self.centers.shape
        m = min(N_PLACES, k)
        flat = self.centers.reshape(n * k, r)
        offsets = (np.arange(n) * k)[:, np.newaxis]
        at, weights = [], []
        for start in range(0, len(Z), BLOCK):
            squares = _squares(Z[start : start + BLOCK], flat).reshape(-1, n, k)
            near = np.argpartition(squares, m - 1, axis=2)[:, :, :m]
            far = np.take_along_axis(squares, near, 2).astype(np.float64)
            weight = np.exp(-(far - far.min(2, keepdims=True)) / self.widths[:, np.newaxis])
            # Where nothing else arrives, any trace would decide alone.
            weight[weight < LEAST] = 0
            at.append((near + offsets).ravel())
            weights.append((weight / weight.sum(2, keepdims=True)).ravel() / n)
        begins = np.arange(0, n * m * len(Z) + 1, n * m)
        return sparse.csr_matrix((np.concatenate(weights), np.concatenate(at), begins), shape=(len(Z), n * k))

    def first(self) -> "Clusterings":
        """The first of them, alone."""
        return Clusterings(self.centers[:1], self.widths[:1], self.flows[:1])

    def likeness(self) -> Array:
        """G_ij / √(G_ii G_jj) of the first: 1 where i is j, 0 where nothing flows between them (k, k)."""
        root = 1 / np.sqrt(np.diag(self.flows[0]))
        found: Array = root[:, np.newaxis] * self.flows[0] * root
        return found

    def received(self, places: sparse.csr_matrix, classes: Index, n_classes: int) -> Array:
        """What every center receives of each class from rows at ``places`` (n · k, n_classes).

        Each class sends the same amount, however many rows it has; nothing, if it has none.
        """
        n, k, _ = self.centers.shape
        counts = np.bincount(classes, minlength=n_classes)
        sent = places.T @ (np.eye(n_classes)[classes] / counts[classes][:, np.newaxis])
        found: Array = (self.flows @ sent.reshape(n, k, n_classes)).reshape(n * k, n_classes)
        return found


def clustered(Z: Array, n_clusters: int, *, n_clusterings: int, seed: int) -> Clusterings:
    """Clusters of the rows Z (N, r) by k-means from several starts, and the graphs of their centers."""
    start = "k-means++" if len(Z) <= FEW else "random"
    some = Z[np.random.default_rng(seed).permutation(len(Z))[:BLOCK]]
    found = []
    for i in range(n_clusterings):
        means = KMeans(n_clusters, init=start, n_init=1, max_iter=N_LLOYD, random_state=seed + i)
        with warnings.catch_warnings():
            # So few rounds need not converge, and clusters may be as many as different rows.
            warnings.simplefilter("ignore", ConvergenceWarning)
            found.append(means.fit(Z).cluster_centers_)
    centers = np.stack(found)
    widths = np.array([np.median(_squares(some, c).min(1)) for c in centers], dtype=np.float64)
    smallest = float(np.finfo(np.float32).tiny)
    return Clusterings(centers, np.maximum(widths, smallest), np.stack([flow_between(c) for c in centers]))


def flow_between(centers: Array) -> Array:
    """G = (I − α S)⁻¹, S = D^−½ A D^−½ with A_ij = 1 where i or j is among the other's nearest (k, k)."""
    k = len(centers)
    A = np.zeros((k, k))
    if k > 1:
        near = NearestNeighbors(n_neighbors=min(N_NEIGHBORS, k - 1)).fit(centers)
        for i, others in enumerate(near.kneighbors(return_distance=False)):
            A[i, others] = A[others, i] = 1
    root = 1 / np.sqrt(np.maximum(A.sum(1), 1))
    S = root[:, np.newaxis] * A * root
    found: Array = linalg.inv(np.eye(k) - ALPHA * S)
    return found


class Told(NamedTuple):
    """What labels say: scores of all centers in every representation, and factors of the classes."""

    scores: list[Array]
    scales: Array
    alone: list[Array]
    """Scores before any other row has spoken: rows that repeat a mistake do not make it more certain."""
    labeled_at: Index
    """The first clustering's center of each label."""


def spread_labels(
    clusterings: list[Clusterings],
    places: list[sparse.csr_matrix],
    labels: Labels,
    others: list[sparse.csr_matrix],
    *,
    n_rounds: int,
) -> Told:
    """Labels of the rows at ``places``, spread; the rows at ``others`` have none, class sizes speak of them.

    In rounds: each of the others is taken for the class of its largest share, and these rows then speak, too.
    A label at the edge of its class is outvoted there, and the middle of the class speaks for the class; the
    more labels a class has, the more they are heard themselves.
    """
    n, sizes = len(labels.classes), labels.sizes
    own = [c.received(at, labels.target, n) for c, at in zip(clusterings, places, strict=True)]
    alone = scores = [as_shares(arrived) for arrived in own]
    scales: Array = np.ones(n)
    for _ in range(n_rounds):
        q = reached(others, scores)
        # Where no label can reach, all scores are equal, and whatever such rows said would be made up.
        speaks = np.flatnonzero(q.max(1) > (1 + LEAST) * q.min(1))
        p = shares(q)
        if sizes is not None:
            scales = scales_for(p, sizes)
        guess = (p[speaks] * scales).argmax(1)
        heard = own_part(labels.target, guess, n)
        scores = [
            as_shares(heard * arrived + (1 - heard) * c.received(at[speaks], guess, n))
            for c, arrived, at in zip(clusterings, own, others, strict=True)
        ]
    if sizes is not None:
        scales = scales_for(shares(reached(others, scores)), sizes, yielding=YIELDING)
    k = clusterings[0].centers.shape[1]
    return Told(scores, scales, alone, nearest_centers(places[0][:, :k]))


def own_part(target: Index, guess: Index, n_classes: int) -> Array:
    """Part of its labels in what is said of each class, n OWN / (n OWN + 1 − OWN) of n labels (n_classes,).

    A class that no other row is taken for has its labels alone.
    """
    weight = OWN * np.bincount(target, minlength=n_classes)
    spoken = np.bincount(guess, minlength=n_classes) > 0
    found: Array = weight / (weight + (1 - OWN) * spoken)
    return found


def as_shares(received: Array) -> Array:
    """What arrives of each class at a center as shares (n · k, n_classes); where nothing does, all equal."""
    total = received.sum(1, keepdims=True)
    found: Array = np.where(total > 1e-12, received / np.maximum(total, 1e-12), 1 / received.shape[1])
    return found


def reached(places: list[sparse.csr_matrix], scores: list[Array]) -> Array:
    """Scores q of the near centers, averaged over clusterings and representations (N, n_classes)."""
    found: Array = np.mean([at @ held for at, held in zip(places, scores, strict=True)], axis=0)
    return found


def shares(q: Array) -> Array:
    """p ∝ q⁴, shares of the classes in each row (N, n_classes)."""
    powers = q**SHARPER
    found: Array = powers / powers.sum(1, keepdims=True)
    return found


def scales_for(p: Array, sizes: Array, *, yielding: float = 0) -> Array:
    """Factors of the classes with which shares p (N, n_classes) sum to ``sizes``, by Sinkhorn's rounds.

    Where sizes yield, shares sum to m with factors ∝ (size / m)^(1 / yielding): the nearer, the less is done.
    Sizes that contradict shares altogether cannot be reached; factors then stay within LARGEST of each other.
    """
    scale = np.ones(p.shape[1])
    for _ in range(SINKHORN):
        of_rows = 1 / np.maximum(p @ scale, 1e-300)
        scale = (sizes * len(p) / np.maximum(p.T @ of_rows, 1e-300)) ** (1 / (1 + yielding))
        scale = np.maximum(scale / scale.max(), 1 / LARGEST)
    return scale


def nearest_centers(places: sparse.csr_matrix) -> Index:
    """The center at which most of each row is (N,)."""
    return np.asarray(places.argmax(1)).ravel()


def middles(Z: Array, places: sparse.csr_matrix, centers: Array) -> Index:
    """The row of Z (N, r) nearest to each center (k, r), among those that it is the nearest of; −1: none."""
    at = nearest_centers(places)
    far = ((Z - centers[at]) ** 2).sum(1)
    found = np.full(len(centers), -1, dtype=np.intp)
    # From the farthest to the nearest, which is written last.
    order = np.argsort(-far, kind="stable")
    found[at[order]] = order
    return found


def most_covering(likeness: Array, weights: Array, known: Index, allowed: Index, n: int) -> Index:
    """n of the ``allowed`` centers, each the one that adds most to Σ_j weight_j max_i likeness_ij.

    The maximum is over the ``known`` centers and those chosen before.
    """
    covered = likeness[known].max(0)
    order: list[int] = []
    left = np.zeros(len(likeness), dtype=bool)
    left[allowed] = True
    while len(order) < n and left.any():
        gains = np.maximum(likeness - covered, 0) @ weights
        best = int(np.where(left, gains, -1).argmax())
        order.append(best)
        left[best] = False
        covered = np.maximum(covered, likeness[best])
    return np.array(order, dtype=np.intp)


def _squares(Z: Array, centers: Array) -> Array:
    """|z − c|² (N, k)."""
    # Without a copy of the centers: a query alone spends a tenth of its time here.
    lengths = np.einsum("kr,kr->k", centers, centers)
    found: Array = (Z**2).sum(1)[:, np.newaxis] + lengths - 2 * Z @ centers.T
    return np.maximum(found, 0)
