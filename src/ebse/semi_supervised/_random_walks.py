"""Pairs of rows that belong together, the two ends of a walk; and what learns from them has in common."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from ebse._estimators import as_rows
from ebse._validation import option
from ebse.semi_supervised._knn_graph import graph, walked
from ebse.semi_supervised._standardize import BLOCK, View, view_of

Array = npt.NDArray[Any]
Index = npt.NDArray[np.int64]
Ends = Callable[[Index], npt.NDArray[np.float32]]
"""From numbers of rows to the representations (n, K) where walks from them end."""

WALKS = ("neighbors", "ensemble")


class WalkFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer that learns from walks: which rows it takes, and what scikit-learn is told of it."""

    def _checked(self, X: Any, *, reset: bool) -> Array:
        found: Array = validate_data(
            self,
            as_rows(X),
            reset=reset,
            dtype=[np.float64, np.float32],
            ensure_min_samples=2 if reset else 1,
        )
        return found

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def row_blocks(n: int) -> Iterator[Index]:
    """Numbers of n rows, so many at a time."""
    for start in range(0, n, BLOCK):
        yield np.arange(start, min(start + BLOCK, n))


def require_walk(walk: str, representation: Any) -> None:
    """Refuse a walk that the representation cannot take."""
    option("walk", walk, WALKS)
    if walk == "ensemble" and not hasattr(representation, "sample_transform"):
        raise TypeError(
            f"representation must be an RBSE for walk='ensemble', got {representation!r}; pass one, or "
            "walk='neighbors'"
        )


def ends_of_walks(
    walk: str, view: View, X: Array, *, n_sweeps: int, n_steps: int, n_neighbors: int, metric: str, seed: int
) -> Ends:
    """One walk from every row of X (N, D), of the kind asked for.

    The ensemble's own chain ends at a state, which is read; neighbors' at another row of X. An ensemble
    draws by what is in a row: equal rows take the same walk.
    """
    if walk == "ensemble":
        draw = view.representation.sample_transform
        return lambda rows: view.on_scale(
            draw(X[rows], 1, n_sweeps=n_sweeps, read="state", random_state=seed)[:, 0]
        )
    _, inputs = view_of(None, X)
    neighbors = graph(inputs, n_neighbors, metric=metric, seed=seed)
    at = walked(neighbors, n_steps, np.arange(len(X)), rng=np.random.default_rng([seed, 1]))
    return lambda rows: view(X[at[rows]])
