"""Label propagation over clusters: k-means, the graph of centers, pseudo-labeling, and rows to label next."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors

from ebse._stages import stage
from ebse.semi_supervised._class_prior import class_sums, class_weights

Array = npt.NDArray[np.floating[Any]]
Index = npt.NDArray[np.intp]
Assignments: TypeAlias = sparse.csr_matrix
"""Soft cluster assignments of rows (N, n · k): the same number of entries in every row."""

N_NEIGHBORS = 4
"""Neighbors of a center in the graph."""
N_ASSIGNED = 10
"""Centers that a row is assigned to in each clustering: a label at the edge of its class is not lost."""
N_LLOYD, N_JOINT = 10, 2
"""Iterations of k-means; iterations with all centers after two levels of it."""
MANY_ROWS, ROWS_PER_CENTER, N_COARSE = 10_000, 10, 32
"""Rows above which k-means has two levels, rows for each center that this takes at least, and clusters of the
first level."""
LABEL_WEIGHT = 0.3
"""Weight of one label against all pseudo-labels of its class, which have 1 − LABEL_WEIGHT."""
NEGLIGIBLE = 1e-3
"""Assignments below this part of the largest are dropped; classes closer than this in score are tied."""
SOFTNESS = 0.1
"""Of the class prior in the final probabilities: rows of a class that are a tenth too many weigh 0.4."""
BLOCK = 4_096
"""Rows whose distances to all centers are held at once."""


@dataclass(eq=False)
class Clusterings:
    """Several k-means clusterings of the same rows: n of them, k centers each."""

    centers: Array
    """(n, k, r)"""
    widths: Array
    """Median squared distance of a row from its nearest center (n,)."""
    alpha: float
    """Part of a label that is passed on at every step (α of Zhou et al.)."""

    @cached_property
    def kernels(self) -> Array:
        """G = (I − α S)⁻¹ of each clustering (n, k, k), computed on first use.

        In single precision: a product with G takes as long as reading G.
        """
        return np.stack(
            [propagation_kernel(centers, self.alpha).astype(np.float32) for centers in self.centers]
        )

    def assign(self, Z: Array) -> Assignments:
        """Soft assignments of each row of Z (N, r) to its nearest centers, ∝ exp(−|z − c|² / width).

        Rows sum to 1 over all clusterings. Single precision, 32-bit indices.
        """
        n, k, r = self.centers.shape
        m = min(N_ASSIGNED, k)
        flat = self.centers.reshape(n * k, r)
        offsets = (np.arange(n) * k)[:, np.newaxis]
        at, weights = [], []
        for start in range(0, len(Z), BLOCK):
            squares = _squares(Z[start : start + BLOCK], flat).reshape(-1, n, k)
            near = np.argpartition(squares, m - 1, axis=2)[:, :, :m]
            far = np.take_along_axis(squares, near, 2).astype(np.float64)
            weight = np.exp(-(far - far.min(2, keepdims=True)) / self.widths[:, np.newaxis])
            # Where no other label arrives, any trace of one would decide alone.
            weight[weight < NEGLIGIBLE] = 0
            at.append((near + offsets).ravel().astype(np.int32))
            weights.append((weight / weight.sum(2, keepdims=True) / n).ravel().astype(np.float32))
        return assignments(np.concatenate(at), np.concatenate(weights), n_rows=len(Z), n_centers=n * k)

    def first(self, assigned: Assignments) -> Assignments:
        """The assignments of rows in the first clustering alone (N, k), summing to 1."""
        n, k, _ = self.centers.shape
        at, weights = self._of_first(assigned)
        return assignments(at, weights * np.float32(n), n_rows=assigned.shape[0], n_centers=k)

    def nearest(self, assigned: Assignments) -> Index:
        """The nearest center of each row in the first clustering (N,)."""
        at, weights = self._of_first(assigned)
        found: Index = at[np.arange(len(at)), weights.argmax(1)].astype(np.intp)
        return found

    def _of_first(self, assigned: Assignments) -> tuple[Any, Any]:
        """Centers of the first clustering that each row is assigned to, and weights (N, m)."""
        shape = (assigned.shape[0], len(self.centers), -1)
        return assigned.indices.reshape(shape)[:, 0], assigned.data.reshape(shape)[:, 0]

    def similarity(self) -> Array:
        """G_ij / √(G_ii G_jj) of the first clustering (k, k): 1 for i = j, 0 if no path joins them."""
        root = 1 / np.sqrt(np.diag(self.kernels[0]))
        found: Array = root[:, np.newaxis] * self.kernels[0] * root
        return found

    def propagated(
        self, assigned: Assignments, target: Index, n_classes: int, used: npt.NDArray[np.bool_] | None = None
    ) -> Array:
        """Labels of the ``used`` rows (default: all), propagated by G to every center (n · k, C).

        Every class has total weight 1, however many rows it has; 0 if it has none.
        """
        n, k, _ = self.centers.shape
        rows = np.arange(len(target)) if used is None else np.flatnonzero(used)
        target = target[rows]
        # In the precision of the assignments: products with another one would copy them.
        y = np.zeros((assigned.shape[0], n_classes), dtype=assigned.dtype)
        y[rows, target] = 1 / np.bincount(target, minlength=n_classes)[target]
        sources = (assigned.T @ y).reshape(n, k, n_classes)
        found: Array = (self.kernels @ sources.astype(self.kernels.dtype)).reshape(n * k, n_classes)
        return found.astype(np.float64)


def assignments(at: Any, weights: Any, *, n_rows: int, n_centers: int) -> Assignments:
    """Assignments of n_rows rows as a csr matrix, of the same number of centers and weights for each row."""
    begins = np.linspace(0, at.size, n_rows + 1, dtype=np.int64)
    return sparse.csr_matrix((weights.ravel(), at.ravel(), begins), shape=(n_rows, n_centers))


def cluster(Z: Array, n_clusters: int, *, n_clusterings: int, alpha: float, seed: int) -> Clusterings:
    """k-means clusterings of the rows Z (N, r) from several starts."""
    some = Z[np.random.default_rng(seed).permutation(len(Z))[:BLOCK]]
    found = []
    with stage("clustering", n_clusterings) as done:
        for i in range(n_clusterings):
            found.append(kmeans(Z, n_clusters, seed=seed + i).centers)
            done(1)
    centers = np.stack(found)
    widths = np.array([np.median(_squares(some, c).min(1)) for c in centers], dtype=np.float64)
    return Clusterings(centers, np.maximum(widths, float(np.finfo(np.float32).tiny)), alpha)


class Cells(NamedTuple):
    """k-means clusters of rows."""

    centers: Array
    """(k, r)"""
    labels: Index
    """The cluster of each row (N,)."""


def kmeans(Z: Array, k: int, *, seed: int, levels: int = 2) -> Cells:
    """k-means of the rows Z (N, r), a few iterations from one start.

    Many rows are divided into 32 clusters first, and each of these into a part of the k clusters in
    proportion to its rows, where a row is compared with k / 32 centers; two iterations with all k centers
    follow, as the parts alone were up to 1 point less accurate on raw pixels. With ``levels=1`` many rows are
    compared with all centers from the start.
    """
    if len(Z) <= MANY_ROWS:
        return _lloyd(Z, far_apart(Z, k, seed=seed))
    rng = np.random.default_rng(seed)
    if levels == 1 or len(Z) < ROWS_PER_CENTER * k or k <= N_COARSE:
        return _lloyd(Z, _random_rows(Z, k, rng))
    coarse = _lloyd(Z, _random_rows(Z, N_COARSE, rng)).labels
    centers = []
    for part, n in enumerate(_clusters_of_parts(np.bincount(coarse, minlength=N_COARSE), k)):
        rows = Z[coarse == part]
        if len(rows):
            centers.append(_lloyd(rows, far_apart(rows, int(n), seed=seed)).centers)
    return _lloyd(Z, np.concatenate(centers), n_iterations=N_JOINT)


def _clusters_of_parts(sizes: Index, k: int) -> Index:
    """How many of k clusters each part gets: at least 1 if it has rows, at most one a row, the sum is k."""
    occupied = sizes > 0
    bounds = np.rint((k - occupied.sum()) * np.cumsum(sizes) / sizes.sum())
    found: Index = np.minimum(occupied + np.diff(bounds, prepend=0).astype(np.intp), sizes)
    found[sizes.argmax()] += k - found.sum()
    return found


def _random_rows(Z: Array, k: int, rng: np.random.Generator) -> Array:
    """k distinct rows of Z (N, r)."""
    return Z[rng.choice(len(Z), k, replace=False)]


def _lloyd(Z: Array, start: Array, *, n_iterations: int = N_LLOYD) -> Cells:
    """k-means of one level from the centers `start` (k, r)."""
    with warnings.catch_warnings():
        # So few iterations need not converge, and there may be as many clusters as distinct rows.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # The start is given, so the random state only decides which row an empty cluster gets.
        found = KMeans(len(start), init=start, n_init=1, max_iter=n_iterations, random_state=0).fit(Z)
    return Cells(found.cluster_centers_, found.labels_.astype(np.intp))


def far_apart(Z: Array, k: int, *, seed: int) -> Array:
    """k rows of Z (N, r) that are far apart, to start k-means with (greedy k-means++).

    Each next row is drawn with a probability proportional to its squared distance from the nearest one so
    far; of 2 + log k draws that which leaves the smallest sum of these distances is taken. scikit-learn's own
    takes three times as long for the same.

    References
    ----------
    D. Arthur and S. Vassilvitskii, "k-means++: the advantages of careful seeding", 2007.
    """
    rng = np.random.default_rng(seed)
    squares = (Z * Z).sum(1)
    taken = [int(rng.integers(len(Z)))]
    nearest = _squares(Z, Z[taken])[:, 0]
    n_draws = 2 + int(np.log(k))
    for _ in range(k - 1):
        total = np.cumsum(nearest, dtype=np.float64)
        drawn = np.searchsorted(total, rng.random(n_draws) * total[-1], side="right")
        drawn = np.minimum(drawn, len(Z) - 1)
        distances = np.maximum(squares + squares[drawn, np.newaxis] - 2 * (Z[drawn] @ Z.T), 0)
        distances[np.arange(n_draws), drawn] = 0
        np.minimum(distances, nearest, out=distances)
        best = int(distances.sum(1).argmin())
        nearest = distances[best]
        taken.append(int(drawn[best]))
    return Z[taken]


def propagation_kernel(centers: Array, alpha: float) -> Array:
    """G = (I − α S)⁻¹, S = D^−½ A D^−½ with A_ij = 1 if i or j is among the other's nearest (k, k).

    References
    ----------
    D. Zhou et al., "Learning with local and global consistency", 2004.
    """
    k = len(centers)
    A = np.zeros((k, k))
    if k > 1:
        near = NearestNeighbors(n_neighbors=min(N_NEIGHBORS, k - 1)).fit(centers)
        for i, others in enumerate(near.kneighbors(return_distance=False)):
            A[i, others] = A[others, i] = 1
    root = 1 / np.sqrt(np.maximum(A.sum(1), 1))
    S = root[:, np.newaxis] * A * root
    found: Array = linalg.inv(np.eye(k) - alpha * S)
    return found


class Propagation(NamedTuple):
    """Result of label propagation."""

    scores: list[Array]
    """Class scores of all centers (n · k, C), for each representation."""
    class_weights: Array
    """(C,): 1 without a class prior."""
    label_scores: list[Array]
    """Scores before pseudo-labeling: pseudo-labels that repeat a mistake do not make it more certain."""


def propagate(
    clusterings: list[Clusterings],
    labeled: list[Assignments],
    target: Index,
    n_classes: int,
    unlabeled: list[Assignments],
    *,
    prior: Array | None = None,
    n_rounds: int,
) -> Propagation:
    """Propagate the labels ``target`` of the labeled rows; then pseudo-label the unlabeled ones, in rounds.

    In each round every unlabeled row has its most probable class as pseudo-label, and labels and
    pseudo-labels propagate together: a label at the edge of its class is outvoted by the rows in the middle.
    The more labels a class has, the larger their weight. The prior is that of the unlabeled rows.

    References
    ----------
    D.-H. Lee, "Pseudo-label: the simple and efficient semi-supervised learning method", 2013.
    """
    own = [c.propagated(at, target, n_classes) for c, at in zip(clusterings, labeled, strict=True)]
    label_scores = scores = [normalized(x) for x in own]
    weights: Array = np.ones(n_classes)
    with stage("propagation", n_rounds) as done:
        for _ in range(n_rounds):
            q = row_scores(unlabeled, scores)
            # Rows that no label reaches have equal scores: a pseudo-label of theirs would be arbitrary.
            # Along rows of few columns, max and min take eight times as long.
            columns = np.ascontiguousarray(q.T)
            decided = columns.max(0) > (1 + NEGLIGIBLE) * columns.min(0)
            p = probabilities(q)
            if prior is not None:
                weights = class_weights(p, prior)
            pseudo = (p * weights).argmax(1)
            mix = label_weights(target, pseudo[decided], n_classes)
            scores = [
                normalized(mix * x + (1 - mix) * c.propagated(at, pseudo, n_classes, decided))
                for c, x, at in zip(clusterings, own, unlabeled, strict=True)
            ]
            done(1)
    if prior is not None:
        weights = class_weights(probabilities(row_scores(unlabeled, scores)), prior, softness=SOFTNESS)
    return Propagation(scores, weights, label_scores)


def label_weights(target: Index, pseudo: Index, n_classes: int) -> Array:
    """Weight of the labels of each class against its pseudo-labels (C,): n w / (n w + 1 − w) for n labels.

    1 for a class without pseudo-labels.
    """
    weight = LABEL_WEIGHT * np.bincount(target, minlength=n_classes)
    present = np.bincount(pseudo, minlength=n_classes) > 0
    found: Array = weight / (weight + (1 - LABEL_WEIGHT) * present)
    return found


def normalized(propagated: Array) -> Array:
    """Scores that sum to 1 over the classes (n · k, C); equal ones at centers that no label reaches."""
    total = class_sums(propagated)
    found: Array = np.where(total > 1e-12, propagated / np.maximum(total, 1e-12), 1 / propagated.shape[1])
    return found


def row_scores(assigned: list[Assignments], scores: list[Array]) -> Array:
    """Scores q of rows (N, C): those of their centers, averaged over clusterings and representations."""
    parts = [at @ held.astype(at.dtype) for at, held in zip(assigned, scores, strict=True)]
    found: Array = parts[0] if len(parts) == 1 else np.mean(parts, axis=0)
    return found.astype(np.float64)


def probabilities(q: Array) -> Array:
    """p ∝ q⁴, class probabilities of rows (N, C): a row has one class, and a class prior counts rows."""
    squares = q * q
    powers = squares * squares
    found: Array = powers / class_sums(powers)
    return found


def representatives(nearest: Index, distance: Array, allowed: npt.NDArray[np.bool_], n_centers: int) -> Index:
    """For each center the closest of the ``allowed`` rows whose nearest center it is; −1 if none (k,)."""
    found = np.full(n_centers, -1, dtype=np.intp)
    # From the farthest to the closest, which is written last.
    order = np.argsort(-distance, kind="stable")
    order = order[allowed[order]]
    found[nearest[order]] = order
    return found


def most_covering(similarity: Array, weights: Array, covered_by: Index, allowed: Index, n: int) -> Index:
    """n of the ``allowed`` centers by greedy facility location (coverage).

    Each is the one that adds most to Σ_j weight_j max_i similarity_ij; the maximum is over the centers
    ``covered_by``, which have a label, and those chosen before.

    References
    ----------
    G. Nemhauser, L. Wolsey and M. Fisher, "An analysis of approximations for maximizing submodular set
    functions", 1978. K. Wei, R. Iyer and J. Bilmes, "Submodularity in data subset selection and active
    learning", 2015.
    """
    weights = weights.astype(similarity.dtype)
    covered = similarity[covered_by].max(0, initial=0)
    order: list[int] = []
    left = np.zeros(len(similarity), dtype=bool)
    left[allowed] = True
    added = np.empty_like(similarity)
    while len(order) < n and left.any():
        np.maximum(np.subtract(similarity, covered, out=added), 0, out=added)
        gains = added @ weights
        best = int(np.where(left, gains, -1).argmax())
        order.append(best)
        left[best] = False
        covered = np.maximum(covered, similarity[best])
    return np.array(order, dtype=np.intp)


def _squares(Z: Array, centers: Array) -> Array:
    """|z − c|² (N, k)."""
    # Without a copy of the centers: for a single row this is a tenth of the time of a prediction.
    lengths = np.einsum("kr,kr->k", centers, centers)
    found: Array = (Z**2).sum(1)[:, np.newaxis] + lengths - 2 * Z @ centers.T
    return np.maximum(found, 0)
