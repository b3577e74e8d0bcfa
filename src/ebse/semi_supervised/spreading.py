"""``SpreadingClassifier``: a few labels that spread over all rows; queries are asked one at a time."""

import warnings
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ebse._estimators import as_rows, learned, require_estimator, seed_of
from ebse._validation import count
from ebse.semi_supervised._labels import Labels, is_blank, of_one_kind, shares_of
from ebse.semi_supervised._propagation import (
    Told,
    clustered,
    middles,
    most_covering,
    reached,
    shares,
    spread_labels,
)
from ebse.semi_supervised._standardize import n_distinct, view_of

Array = npt.NDArray[np.floating[Any]]
Index = npt.NDArray[np.intp]
Places = list[sparse.csr_matrix]
"""Of the same rows, in every representation."""

MOST_CLUSTERS, ROWS_PER_CLUSTER = 1_000, 2
MARKS = 0.5
"""Share of labels −1 above which they look like marks of rows without one."""
N_SPEAKING = 10_000
"""Rows without a label that speak, and that class sizes are fitted to, at most."""


@final
class SpreadingClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Shares of the classes that flow to a row from a few labels, along a graph of clusters of all rows.

    Rows are clustered several times in the representation; centers that are near each other are joined, and
    labels spread between them by (I − α S)⁻¹. Rows without a label are then taken for the class that reached
    them most and spread it, too, in rounds. A query takes the scores q of the centers near it, averaged over
    clusterings, and has shares p ∝ q⁴: it is classified on its own.

    Parameters
    ----------
    representation
        A transformer, which learns from all rows, or a fitted one in a ``FrozenEstimator``, or a list of
        such, averaged like clusterings; None: the inputs.
    n_clusterings
        Of each representation.
    n_clusters
        "auto": half of the different rows, 1,000 at most.
    n_rounds
        How often rows without a label speak. Each class then speaks as loudly as the others: where classes
        differ much in size tell ``class_prior``, or pass 0, labels alone. Every group should have a label.
    class_prior
        What is known of the classes among the rows without a label: None (nothing), "equal", or a mapping
        from class to share.
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
    representations_, views_, clusterings_, scores_
        For each representation: itself, as learned; how it is brought to one scale; centers and what flows
        between them; shares of the classes at each center.
    alone_
        The same shares before rows without a label spoke.
    scales_
        Factors of the classes, 1 where sizes are not known.
    labeled_at_
        The first clustering's center of each label.
    speaking_at_
        Centers of the rows that speak, for each representation: of those without a label, where there are
        such, 10,000 at most.
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
        n_rounds: int = 5,
        class_prior: Any = None,
        unlabeled_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.representation = representation
        self.n_clusterings = n_clusterings
        self.n_clusters = n_clusters
        self.n_rounds = n_rounds
        self.class_prior = class_prior
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, X_unlabeled: Any = None) -> Self:
        """Cluster all rows, and let the labels y of the rows X that have one spread."""
        self._require_options()
        X, y, known = self._split(X, y)
        # Labels that cannot be used are refused before the long part.
        labels = self._labels(y[known])
        if X_unlabeled is None and self.unlabeled_label is not None and known.all():
            warnings.warn(
                f"no row has the label {self.unlabeled_label!r} (unlabeled_label), and there is no "
                "X_unlabeled: labels have nowhere to spread",
                stacklevel=2,
            )
        rows = X if X_unlabeled is None else np.concatenate([X, self._more(X_unlabeled)])
        seed = seed_of(self.random_state)
        representations = [learned(one, rows, seed) for one in self._given_representations()]
        views, held = zip(*(view_of(one, rows) for one in representations), strict=True)
        k = self._how_many(min(n_distinct(Z) for Z in held))
        clusterings = [clustered(Z, k, n_clusterings=self.n_clusterings, seed=seed) for Z in held]
        blank = np.flatnonzero(~np.pad(known, (0, len(rows) - len(X))))
        # Where every row has a label none speaks; other labels may be told later, and then all do.
        n_rounds = self.n_rounds if len(blank) else 0
        blank = blank if len(blank) else np.arange(len(rows))
        rng = np.random.default_rng(seed)
        speaking = np.sort(rng.choice(blank, min(len(blank), N_SPEAKING), replace=False))
        speaking_at = [c.places(Z[speaking]) for c, Z in zip(clusterings, held, strict=True)]
        where = np.flatnonzero(known)
        labeled = [c.places(Z[where]) for c, Z in zip(clusterings, held, strict=True)]
        told = spread_labels(clusterings, labeled, labels, speaking_at, n_rounds=n_rounds)
        self.n_clusters_, self.representations_, self.views_ = k, representations, list(views)
        self.clusterings_, self.speaking_at_ = clusterings, speaking_at
        return self._keep(labels, told)

    def relabel(self, X: Any, y: Any) -> Self:
        """Let other labels spread over the same clusters: rows X with labels y, in place of those before.

        Give all labels that are known now, the earlier ones among them. The rows that speak in rounds stay
        those that had no label in ``fit``; if all had one there, all speak here.
        """
        check_is_fitted(self)
        self._require_options()
        X, y, known = self._split(X, y, reset=False)
        labels = self._labels(y[known])
        lost = np.setdiff1d(self.classes_, labels.classes).tolist()
        if lost and np.isin(labels.classes, self.classes_).all():
            warnings.warn(
                f"no label is of {', '.join(map(repr, lost))} any more, and no row will be taken for that: "
                "relabel takes all labels that are known, not only new ones",
                stacklevel=2,
            )
        places = self._places(X[known])
        told = spread_labels(self.clusterings_, places, labels, self.speaking_at_, n_rounds=self.n_rounds)
        return self._keep(labels, told)

    def predict_proba(self, X: Any) -> Array:
        """Shares of the classes (N, n_classes)."""
        check_is_fitted(self)
        p = shares(reached(self._places(self._checked(X)), self.scores_)) * self.scales_
        found: Array = p / p.sum(1, keepdims=True)
        return found

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class with the largest share."""
        p = self.predict_proba(X)
        found: npt.NDArray[Any] = self.classes_[p.argmax(1)]
        return found

    def suggest(self, X_unlabeled: Any, n: int = 1) -> Index:
        """Numbers of the n rows of X_unlabeled to label next, most useful first: one of a cluster at most.

        A row counts by how close its second class comes to its first, by the labels alone. The next label
        goes to the middle of the cluster from which most of what counts, and no label reaches yet, is
        reached. Clusters that have a label are passed over, so there may be fewer than n.
        """
        check_is_fitted(self)
        count("n", n)
        X = self._checked(X_unlabeled)
        clusters = self.clusterings_[0].first()
        Z = self.views_[0](X)
        at = clusters.places(Z)
        q = np.sort(reached(self._places(X), self.alone_), axis=1)
        middle = middles(Z, at, clusters.centers[0])
        open_ones = np.setdiff1d(np.flatnonzero(middle >= 0), self.labeled_at_)
        doubt = at.T @ (q[:, -2] / q[:, -1])
        return middle[most_covering(clusters.likeness(), doubt, self.labeled_at_, open_ones, n)]

    def _keep(self, labels: Labels, told: Told) -> Self:
        self.classes_ = labels.classes
        self.scores_, self.scales_, self.alone_, self.labeled_at_ = told
        return self

    def _places(self, X: Array) -> Places:
        return [c.places(view(X)) for c, view in zip(self.clusterings_, self.views_, strict=True)]

    def _given_representations(self) -> list[Any]:
        given = self.representation
        return list(given) if isinstance(given, (list, tuple)) else [given]

    def _how_many(self, n_different: int) -> int:
        if self.n_clusters == "auto":
            return max(min(MOST_CLUSTERS, n_different // ROWS_PER_CLUSTER), min(2, n_different))
        asked = int(self.n_clusters)
        if asked > n_different:
            warnings.warn(
                f"n_clusters is {asked}, and there are {n_different} different rows: {n_different} clusters "
                "are used",
                stacklevel=3,
            )
        return min(asked, n_different)

    def _labels(self, y: npt.NDArray[Any]) -> Labels:
        """Classes, the class of each label, and shares of the classes, where they are known."""
        classes, target = np.unique(y, return_inverse=True)
        if self.unlabeled_label is None and len(classes) > 2 and np.mean(y == -1) > MARKS:
            warnings.warn(
                "-1 is taken for a class, and most rows have it; if it says that a row has no label, pass "
                "unlabeled_label=-1",
                stacklevel=3,
            )
        if len(classes) < 2:
            raise ValueError(
                f"y must have at least 2 classes, got one class, {classes[0]}; label rows of others"
            )
        return Labels(classes, target, shares_of(self.class_prior, classes))

    def _split(self, X: Any, y: Any, *, reset: bool = True) -> tuple[Array, Any, npt.NDArray[np.bool_]]:
        """Rows, labels, and which rows have one; the labels of the others are any."""
        known = None
        if y is not None and self.unlabeled_label is not None:
            labels = column_or_1d(np.asarray(y, dtype=object))
            known = ~is_blank(labels, self.unlabeled_label)
            if not known.any():
                raise ValueError(
                    f"y must have labels, got {self.unlabeled_label!r} (unlabeled_label) for every row; "
                    "label at least one row of each class"
                )
            y = np.where(known, labels, labels[known][0])
        if y is not None:
            y = of_one_kind(y)
        X, y = validate_data(self, as_rows(X), y, reset=reset, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        return X, y, np.ones(len(y), dtype=bool) if known is None else known

    def _more(self, X_unlabeled: Any) -> Array:
        n = np.shape(X_unlabeled)[1] if len(np.shape(X_unlabeled)) == 2 else self.n_features_in_
        if n != self.n_features_in_:
            raise ValueError(
                f"X_unlabeled must have the {self.n_features_in_} features of X, got {n}; give rows of the "
                "same columns"
            )
        try:
            return self._checked(X_unlabeled)
        except (TypeError, ValueError) as error:
            raise type(error)(f"X_unlabeled must have rows like those of X; {error}") from None

    def _checked(self, X: Any) -> Array:
        found: Array = validate_data(self, as_rows(X), reset=False, dtype=[np.float64, np.float32])
        return found

    def _require_options(self) -> None:
        count("n_clusterings", self.n_clusterings)
        count("n_rounds", self.n_rounds, least=0)
        if self.n_clusters != "auto":
            if isinstance(self.n_clusters, str):
                raise ValueError(f"n_clusters must be 'auto' or a number, got {self.n_clusters!r}; pass one")
            count("n_clusters", self.n_clusters)
        if not self._given_representations():
            raise ValueError("representation must have a transformer, got none; pass None for the inputs")
        for one in self._given_representations():
            if one is not None:
                require_estimator("representation", one, "transform", "ContrastiveFeatures()")
        if np.ndim(self.unlabeled_label) > 0:
            raise ValueError(
                f"unlabeled_label must be one value, got {self.unlabeled_label!r}; pass -1 or np.nan for one"
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "scores_")
