"""Nearest-neighbor graphs, random walks on them, and the base class of transformers that learn from these."""

from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ebse import _archive
from ebse._estimators import Inputs, as_rows, require_moderate, scale_of, warn_of_scale
from ebse._stages import stage

Array = npt.NDArray[Any]

FEW_ROWS = 10_000
"""Rows up to which scikit-learn compares all pairs, in double precision."""
MOST_WORK, OTHER_WORK = 1.6e12, 180
"""All pairs are compared, in single precision, while rows² · (columns + OTHER_WORK) is at most MOST_WORK:
40,000 rows of 784 columns, 72,000 of 128, a minute on one core. Above, pynndescent finds 93 of 100 neighbors
(MNIST); it takes 48 seconds to compile in every process, and ten for 100,000 rows."""
CANDIDATES = 15
"""Nearest rows, of which those are kept that share most neighbors."""
METRICS, MANY_COLUMNS = ("auto", "cosine", "euclidean"), 100
"""Distances, and the number of columns from which "auto" is "cosine"."""
BLOCK = 1_000
"""Rows whose neighbors are compared at once."""
PAIRS, GROUP = 512, 64
"""Rows that are compared with all rows at once, and columns of a group."""


def nearest(X: Array, n_neighbors: int, *, seed: int) -> npt.NDArray[np.int64]:
    """Indices of the n_neighbors nearest other rows of each row of X (N, D), nearest first."""
    n = min(n_neighbors, len(X) - 1)
    if len(X) <= FEW_ROWS:
        index = NearestNeighbors(n_neighbors=n).fit(X)
        found: npt.NDArray[np.int64] = index.kneighbors(return_distance=False)
        return found
    if len(X) ** 2 * (X.shape[1] + OTHER_WORK) <= MOST_WORK:
        return _nearest_of_all(X.astype(np.float32, copy=False), n)
    # It compiles for seconds when it is imported.
    from pynndescent import NNDescent

    graph, _ = NNDescent(X, n_neighbors=n + 1, random_state=seed).neighbor_graph
    own = graph == np.arange(len(X))[:, np.newaxis]
    # A row is its own nearest neighbor, or, among equal rows, one of them is.
    own[~own.any(1), -1] = True
    others: npt.NDArray[np.int64] = graph[~own].reshape(len(X), n).astype(np.int64)
    return others


def _nearest_of_all(X: npt.NDArray[np.float32], n: int) -> npt.NDArray[np.int64]:
    """The n nearest other rows of each row, by products of blocks of rows with all rows.

    The largest n of the similarities x · y − |y|² / 2 are in the n groups of columns whose maxima are
    largest: one pass for the maxima is all that is done with most pairs.
    """
    N = len(X)
    half_squares = np.einsum("nd,nd->n", X, X) / 2
    n_groups = max(-(-N // GROUP), n)
    similarity = np.full((min(PAIRS, N), n_groups * GROUP), -np.inf, dtype=np.float32)
    found = np.empty((N, n), dtype=np.int64)
    for start in range(0, N, PAIRS):
        some = X[start : start + PAIRS]
        block = similarity[: len(some)]
        np.matmul(some, X.T, out=block[:, :N])
        block[:, :N] -= half_squares
        own = np.arange(len(some))
        block[own, start + own] = -np.inf
        groups = block.reshape(len(some), n_groups, GROUP)
        best = np.argpartition(-groups.max(2), n - 1, axis=1)[:, :n]
        candidates = np.take_along_axis(groups, best[:, :, np.newaxis], 1).reshape(len(some), -1)
        columns = (best[:, :, np.newaxis] * GROUP + np.arange(GROUP)).reshape(len(some), -1)
        order = np.argpartition(-candidates, n - 1, axis=1)[:, :n]
        sorted_by = np.argsort(-np.take_along_axis(candidates, order, 1), axis=1)
        taken = np.take_along_axis(order, sorted_by, 1)
        found[start : start + PAIRS] = np.take_along_axis(columns, taken, 1)
    return found


def most_shared(neighbors: npt.NDArray[np.int64], n: int) -> npt.NDArray[np.int64]:
    """Shared nearest neighbors: of the neighbors (N, m) of each row the n that share most of theirs with it.

    Most first (N, n); ties go to the nearer row. A neighbor in a cluster of its own is near by chance: its
    neighbors are others.

    References
    ----------
    R. A. Jarvis and E. A. Patrick, "Clustering using a similarity measure based on shared near neighbors",
    1973.
    """
    kept = []
    for start in range(0, len(neighbors), BLOCK):
        of_row = neighbors[start : start + BLOCK]
        of_neighbors = neighbors[of_row]
        n_shared = sum(
            (of_neighbors == of_row[:, np.newaxis, [j]]).any(2).astype(np.int64)
            for j in range(of_row.shape[1])
        )
        order = np.argsort(-n_shared, axis=1, kind="stable")[:, :n]
        kept.append(np.take_along_axis(of_row, order, axis=1))
    return np.concatenate(kept)


class NeighborGraph(NamedTuple):
    """Neighbors of each row."""

    neighbors: npt.NDArray[np.int64]
    """Those that share most neighbors with the row (N, n_neighbors)."""
    nearest: npt.NDArray[np.int64]
    """The nearest rows, nearest first (N, 15 or more)."""


def neighbor_graph(X: Array, n_neighbors: int, *, metric: str, seed: int) -> NeighborGraph:
    """Shared nearest neighbors of each row of X (N, D), which has mean 0.

    "cosine" compares directions from the mean, "euclidean" positions; "auto" is "cosine" from 100 columns on:
    what distinguishes images is less how bright they are than where.
    """
    with stage("neighbor graph"):
        if metric == "cosine" or (metric == "auto" and X.shape[1] >= MANY_COLUMNS):
            lengths = np.linalg.norm(X, axis=1, keepdims=True)
            X = X / np.where(lengths > 0, lengths, 1)
        candidates = nearest(X, max(CANDIDATES, n_neighbors), seed=seed)
        return NeighborGraph(most_shared(candidates, n_neighbors), candidates)


def random_walk(
    neighbors: npt.NDArray[np.int64], n_steps: int, start: Array, *, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Last rows of random walks of n_steps from the rows ``start``: every step goes to a random neighbor."""
    at = start
    for _ in range(n_steps):
        at = neighbors[at, rng.integers(neighbors.shape[1], size=len(at))]
    return at


class WalkFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of transformers that learn from random walks: input validation, tags, and files."""

    def transform(self, X: Any) -> Array:
        """Features of the rows X.

        Parameters
        ----------
        X : array-like (N, D)

        Returns
        -------
        array (N, n_features_out)
            Rows of length 1.
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        warn_of_scale(self._scale, X)
        return self._transform_validated(X)

    def save(self, path: str | Path) -> None:
        """Write the fitted transformer to one file, atomically.

        Parameters
        ----------
        path : str or Path
            A ``.safetensors`` file. It holds arrays and JSON, no code.
        """
        check_is_fitted(self)
        _archive.save(path, self)

    def _transform_validated(self, X: Array) -> Array:
        raise NotImplementedError

    def _validated(self, X: Any, *, reset: bool) -> Array:
        found: Array = validate_data(
            self,
            as_rows(X),
            reset=reset,
            dtype=[np.float64, np.float32],
            ensure_min_samples=2 if reset else 1,
        )
        require_moderate(found)
        if reset:
            self._scale = scale_of(found)
        return found

    def _input_facts(self) -> dict[str, Any]:
        """What a file holds of the rows of ``fit``: number and names of columns, and their scale."""
        names = getattr(self, "feature_names_in_", None)
        return {
            "n_features": self.n_features_in_,
            "feature_names": None if names is None else list(names),
            "scale": self._scale,
        }

    def _with_input_facts(self, facts: dict[str, Any]) -> Self:
        Inputs.from_facts(facts).apply_to(self)
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
