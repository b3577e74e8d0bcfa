"""``SpreadingClassifier``: a few labels that spread over all rows; queries are asked one at a time."""

import warnings
from collections.abc import Mapping
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ebse.arguments import count
from ebse.estimators.inputs import at_the_door, seed_of
from ebse.estimators.learned import learned
from ebse.estimators.spreading import (
    Clusterings,
    clustered,
    middles,
    most_covering,
    nearest_centres,
    scales_for,
)

Array = npt.NDArray[np.floating[Any]]
Index = npt.NDArray[np.intp]
Places = list[sparse.csr_matrix]
"""Of the same rows, in every representation."""

MOST_CLUSTERS, ROWS_PER_CLUSTER = 1_000, 2
ROUNDS, N_SIZED = 5, 10_000
"""Of class sizes: how often labels are assigned anew, and rows that are asked."""


@final
class SpreadingClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Shares of the classes that flow to a row from a few labels, along a graph of clusters of all rows.

    Rows are clustered several times in the representation; centres that are near each other are joined, and
    labels spread between them by (I − α S)⁻¹. A query takes the shares of the centres near it, averaged
    over clusterings: it is classified on its own.

    Parameters
    ----------
    representation
        A transformer, which learns from all rows, or a fitted one in a ``FrozenEstimator``, or a list of
        such, averaged like clusterings; None: the inputs.
    n_clusterings
        Of each representation.
    n_clusters
        "auto": half of the different rows, 1,000 at most.
    class_sizes
        What is known of the classes among the unlabelled rows: None (nothing), "equal", or a mapping from
        class to share.
    unlabeled_label
        The value in y that says that a row has no label: −1 for one, ``np.nan`` for missing values of any
        kind.
    random_state
        A seed, for results that repeat.

    Attributes
    ----------
    classes_
        The labels.
    n_clusters_
        Clusters of each clustering.
    clusterings_, scores_, scales_
        For each representation centres and what flows between them, and shares of the classes at each; and
        factors of the classes, 1 where sizes are not known.
    labelled_at_
        The cluster of each labelled row, in the first clustering.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> few = [int((y == digit).argmax()) for digit in range(10)]
    >>> spread = SpreadingClassifier(random_state=0).fit(X[few], y[few], X_unlabeled=X)
    >>> spread.score(X, y) > 0.7
    True
    """

    def __init__(
        self,
        representation: Any = None,
        *,
        n_clusterings: int = 6,
        n_clusters: int | str = "auto",
        class_sizes: Any = None,
        unlabeled_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.representation = representation
        self.n_clusterings = n_clusterings
        self.n_clusters = n_clusters
        self.class_sizes = class_sizes
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, X_unlabeled: Any = None) -> Self:
        """Cluster all rows, and let the labels y of the rows X that have one spread."""
        self._require_options()
        X, y, labelled = self._split(X, y)
        rows = X if X_unlabeled is None else np.concatenate([X, self._checked(X_unlabeled)])
        seed = seed_of(self.random_state)
        given = self.representation
        given = given if isinstance(given, (list, tuple)) else [given]
        self.representations_ = [learned(one, rows, seed) for one in given]
        views = self._views(rows)
        self.n_clusters_ = self._how_many(rows)
        self.clusterings_: list[Clusterings] = [
            clustered(Z, self.n_clusters_, n_clusterings=self.n_clusterings, seed=seed) for Z in views
        ]
        step = max(len(rows) // N_SIZED, 1)
        self._sized = self._places([Z[::step] for Z in views])
        return self._told(X[labelled], y[labelled])

    def relabel(self, X: Any, y: Any) -> Self:
        """Let other labels spread over the same clusters: rows X with labels y, all that are known now."""
        check_is_fitted(self)
        X, y, labelled = self._split(X, y, reset=False)
        return self._told(X[labelled], y[labelled])

    def predict_proba(self, X: Any) -> Array:
        """Shares of the classes (N, n_classes)."""
        check_is_fitted(self)
        p = self._shares(self._places(self._views(self._checked(X))), self.scores_) * self.scales_
        found: Array = p / p.sum(1, keepdims=True)
        return found

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class with the largest share."""
        p = self.predict_proba(X)
        found: npt.NDArray[Any] = self.classes_[p.argmax(1)]
        return found

    def suggest(self, X: Any, n: int = 1) -> Index:
        """Numbers of the n rows of X to label next, most useful first; fewer where X has fewer clusters.

        A row of X counts by how close its second class comes to its first. The next label goes to the middle
        of the cluster from which most of what counts, and no label reaches yet, is reached.
        """
        check_is_fitted(self)
        count("n", n)
        X = self._checked(X)
        clusters = self.clusterings_[0].first()
        Z = self._views(X)[0]
        at = clusters.places(Z)
        p = np.sort(self.predict_proba(X), axis=1)
        middle = middles(Z, at, clusters.centres[0])
        chosen = most_covering(
            clusters.likeness(),
            at.T @ (p[:, -2] / p[:, -1]),
            self.labelled_at_,
            np.flatnonzero(middle >= 0),
            n,
        )
        return middle[chosen]

    def _told(self, X: Array, y: npt.NDArray[Any]) -> Self:
        """Hold what labelled rows say."""
        self.classes_, target = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must have at least 2 classes, got one class, {self.classes_[0]}; label rows of others"
            )
        sizes = self._sizes()
        views = self._views(X)
        places = self._places(views)
        self.labelled_at_ = nearest_centres(self.clusterings_[0].first().places(views[0]))
        n = len(self.classes_)
        self.scores_ = [c.scores(at, target, n) for c, at in zip(self.clusterings_, places, strict=True)]
        self.scales_: Array = np.ones(n)
        if sizes is not None:
            self._sized_rounds(places, target, sizes)
        return self

    def _sized_rounds(self, places: Places, target: Index, sizes: Array) -> None:
        """Scale the classes to their sizes among unlabelled rows, and let these speak, too, in rounds."""
        asked, n = self._sized, len(sizes)
        for _ in range(ROUNDS):
            p = self._shares(asked, self.scores_) ** 2
            self.scales_ = scales_for(p, sizes)
            guess = (p * self.scales_).argmax(1)
            told = np.concatenate([target, guess])
            self.scores_ = [
                c.scores(sparse.vstack([known, at], format="csr"), told, n)
                for c, known, at in zip(self.clusterings_, places, asked, strict=True)
            ]
        self.scales_ = scales_for(self._shares(asked, self.scores_), sizes)

    def _shares(self, places: Places, held: list[Array]) -> Array:
        """Scores of the near centres, averaged over clusterings and representations."""
        found: Array = np.mean([at @ of_centres for at, of_centres in zip(places, held, strict=True)], axis=0)
        return found

    def _places(self, views: list[Array]) -> Places:
        return [held.places(Z) for held, Z in zip(self.clusterings_, views, strict=True)]

    def _views(self, X: Array) -> list[Array]:
        """Rows in every representation."""
        return [
            np.asarray(X if one is None else one.transform(X), dtype=np.float32)
            for one in self.representations_
        ]

    def _how_many(self, rows: Array) -> int:
        distinct = len(np.unique(rows, axis=0)) if len(rows) < 20_000 else len(rows)
        if self.n_clusters == "auto":
            return max(min(MOST_CLUSTERS, distinct // ROWS_PER_CLUSTER), min(2, distinct))
        asked = int(self.n_clusters)
        if asked > distinct:
            warnings.warn(
                f"n_clusters is {asked}, and there are {distinct} different rows: so many clusters are used",
                stacklevel=3,
            )
        return min(asked, distinct)

    def _sizes(self) -> Array | None:
        """Shares of the classes, where they are known."""
        if self.class_sizes is None:
            return None
        n = len(self.classes_)
        if isinstance(self.class_sizes, str):
            return np.full(n, 1 / n)
        lacking = [c for c in self.classes_.tolist() if c not in self.class_sizes]
        strange = [c for c in self.class_sizes if c not in set(self.classes_.tolist())]
        if lacking or strange:
            what = f"none for {lacking[0]!r}" if lacking else f"{strange[0]!r}, which no row is labelled with"
            raise ValueError(
                f"class_sizes must have a share for every class ({list(self.classes_)}), got {what}; give "
                "one for each, and label at least one row of each"
            )
        return np.array([float(self.class_sizes[c]) for c in self.classes_.tolist()])

    def _split(self, X: Any, y: Any, *, reset: bool = True) -> tuple[Array, Any, npt.NDArray[np.bool_]]:
        """Rows, labels, and which rows have one."""
        missing = self.unlabeled_label is not None and pd.isna(self.unlabeled_label)
        blank = None
        if y is not None and missing:
            labels = np.asarray(y, dtype=object).ravel()
            blank = pd.isna(pd.Series(labels)).to_numpy()
            if blank.all():
                raise ValueError("y must have labels, got none; label at least one row of each class")
            y = np.array(np.where(blank, labels[~blank][0], labels).tolist())
        X, y = validate_data(self, at_the_door(X), y, reset=reset, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        if blank is not None:
            return X, y, ~blank
        known = np.ones(len(y), dtype=bool) if self.unlabeled_label is None else y != self.unlabeled_label
        if not known.any():
            raise ValueError(
                f"y must have labels, got {self.unlabeled_label!r} (unlabeled_label) for every row; add some"
            )
        return X, y, known

    def _checked(self, X: Any) -> Array:
        found: Array = validate_data(self, at_the_door(X), reset=False, dtype=[np.float64, np.float32])
        return found

    def _require_options(self) -> None:
        count("n_clusterings", self.n_clusterings)
        if self.n_clusters != "auto":
            if isinstance(self.n_clusters, str):
                raise ValueError(f"n_clusters must be 'auto' or a number, got {self.n_clusters!r}; pass one")
            count("n_clusters", self.n_clusters)
        sizes = self.class_sizes
        if not (sizes is None or (isinstance(sizes, str) and sizes == "equal") or isinstance(sizes, Mapping)):
            raise ValueError(
                f"class_sizes must be None, 'equal' or a mapping, got {sizes!r}; pass one of these"
            )
        if isinstance(sizes, Mapping):
            shares = [float(x) for x in sizes.values()]
            if not shares or min(shares) <= 0 or abs(sum(shares) - 1) > 1e-6:
                raise ValueError(
                    f"class_sizes must be positive and sum to 1, got {dict(sizes)!r}, which sum to "
                    f"{sum(shares):g}; divide them by their sum"
                )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags
