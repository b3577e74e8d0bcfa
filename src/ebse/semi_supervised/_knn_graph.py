"""Nearest-neighbor graphs, random walks on them, and the base class of transformers that learn from these."""

from pathlib import Path
from typing import Any, Self

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

EXACT = 10_000
"""Rows up to which all pairs are compared; above, pynndescent finds 93 of 100 neighbors (MNIST).

It took 7 seconds for 50,000 digits, and 40 more to compile the first time; comparing all 150, on one core.
"""
CANDIDATES = 15
"""Nearest rows, of which those are kept that share most neighbors."""
METRICS, MANY_COLUMNS = ("auto", "cosine", "euclidean"), 100
"""Distances, and the number of columns from which "auto" is "cosine"."""
BLOCK = 1_000
"""Rows whose neighbors are compared at once."""


def nearest(X: Array, n_neighbors: int, *, seed: int) -> npt.NDArray[np.int64]:
    """Indices of the n_neighbors nearest other rows of each row of X (N, D), nearest first."""
    n = min(n_neighbors, len(X) - 1)
    if len(X) <= EXACT:
        index = NearestNeighbors(n_neighbors=n).fit(X)
        found: npt.NDArray[np.int64] = index.kneighbors(return_distance=False)
        return found
    # It compiles for seconds when it is imported.
    from pynndescent import NNDescent

    graph, _ = NNDescent(X, n_neighbors=n + 1, random_state=seed).neighbor_graph
    own = graph == np.arange(len(X))[:, np.newaxis]
    # A row is its own nearest neighbor, or, among equal rows, one of them is.
    own[~own.any(1), -1] = True
    others: npt.NDArray[np.int64] = graph[~own].reshape(len(X), n).astype(np.int64)
    return others


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


def neighbor_graph(X: Array, n_neighbors: int, *, metric: str, seed: int) -> npt.NDArray[np.int64]:
    """Shared nearest neighbors (N, n_neighbors) of each row of X (N, D), which has mean 0.

    "cosine" compares directions from the mean, "euclidean" positions; "auto" is "cosine" from 100 columns on:
    what distinguishes images is less how bright they are than where.
    """
    with stage("neighbor graph"):
        if metric == "cosine" or (metric == "auto" and X.shape[1] >= MANY_COLUMNS):
            lengths = np.linalg.norm(X, axis=1, keepdims=True)
            X = X / np.where(lengths > 0, lengths, 1)
        candidates = nearest(X, max(CANDIDATES, n_neighbors), seed=seed)
        return most_shared(candidates, n_neighbors)


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
        array (N, n_components)
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
