"""Pairs of rows that belong together, the two ends of a walk; and what learns from them has in common."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from ebse.arguments import option
from ebse.estimators.inputs import at_the_door
from ebse.estimators.neighbours import graph, walked

Array = npt.NDArray[Any]
Index = npt.NDArray[np.int64]
Ends = Callable[[Index], npt.NDArray[np.float32]]
"""From numbers of rows to the representations (n, K) where walks from them end."""

WALKS = ("neighbours", "ensemble")
BLOCK = 4_096
"""Rows that are looked at at once: memory for what is made of them does not grow with N."""


class WalkFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer that learns from walks: which rows it takes, and what scikit-learn is told of it."""

    def _checked(self, X: Any, *, reset: bool) -> Array:
        found: Array = validate_data(
            self,
            at_the_door(X),
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
            "walk='neighbours'"
        )


def represented(representation: Any, X: Array) -> npt.NDArray[np.float32]:
    """Rows (N, D) as the representation has them; as they are where it is None."""
    return np.asarray(X if representation is None else representation.transform(X), dtype=np.float32)


def ends_of_walks(
    walk: str, representation: Any, X: Array, *, n_sweeps: int, n_steps: int, n_neighbors: int, seed: int
) -> Ends:
    """One walk from every row of X (N, D), of the kind asked for.

    The ensemble's own chain ends at a state, which is read; neighbours' at another row of X.
    """
    if walk == "ensemble":
        return lambda rows: np.asarray(
            representation.sample_transform(X[rows], 1, n_sweeps=n_sweeps, read="state", random_state=seed)[
                :, 0
            ],
            dtype=np.float32,
        )
    neighbours = graph(np.asarray(X, dtype=np.float32), n_neighbors, seed=seed)
    at = walked(neighbours, n_steps, np.arange(len(X)), rng=np.random.default_rng(seed))
    return lambda rows: represented(representation, X[at[rows]])
