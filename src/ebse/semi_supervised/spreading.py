"""``SpreadingClassifier``: semi-supervised classification by label propagation over clusters."""

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ebse import _archive
from ebse._estimators import (
    Inputs,
    as_rows,
    key_type,
    learned,
    or_none,
    representation_state,
    require_estimator,
    require_moderate,
    require_number,
    restored_representation,
    row_indices,
    row_keys,
    scale_of,
    seed_of,
    supplied_representation,
    unchanged_on_error,
    warn_of_scale,
)
from ebse._labels import (
    LabeledScore,
    Labels,
    plain_classes,
    read_labels,
    restored_classes,
    warn_of_lost_classes,
)
from ebse._stages import shown
from ebse._validation import count, option
from ebse.semi_supervised._class_prior import (
    class_sums,
    plain_prior,
    prior_probabilities,
    require_prior,
    restored_prior,
)
from ebse.semi_supervised._propagation import (
    Assignments,
    Clusterings,
    Propagation,
    assignments,
    cluster,
    most_covering,
    probabilities,
    propagate,
    representatives,
    row_scores,
)
from ebse.semi_supervised._standardize import Standardizer, n_distinct, standardize

Array = npt.NDArray[np.floating[Any]]
Index = npt.NDArray[np.intp]
Keys = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

MOST_CLUSTERS, ROWS_PER_CLUSTER = 1_000, 2
N_PSEUDO = 10_000
"""Most unlabeled rows that are pseudo-labeled, and that the class prior is fitted to."""


class Rows(NamedTuple):
    """What is kept of rows, instead of the rows: N of them."""

    assigned: list[Assignments]
    """Soft cluster assignments, for each representation."""
    distance: npt.NDArray[np.float32]
    """Squared distance from the nearest center of the first clustering (N,)."""
    keys: Keys
    """Hashes of their values (N,), by which labeled rows are recognized."""

    def take(self, rows: Index) -> "Rows":
        """Some of the rows."""
        return Rows([at[rows] for at in self.assigned], self.distance[rows], self.keys[rows])


class KnownLabels(NamedTuple):
    """Labels of distinct rows, by the hashes of their values."""

    keys: Keys
    """(L,), ascending."""
    frequencies: Array
    """Of the classes among the labels of equal rows (L, C)."""

    def find(self, keys: Keys) -> tuple[Mask, Index]:
        """Which rows are labeled (N,), and where those are in this table."""
        if not len(self.keys):
            return np.zeros(len(keys), dtype=bool), np.empty(0, dtype=np.intp)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        labeled = self.keys[at] == keys
        return labeled, at[labeled]


@final
class SpreadingClassifier(LabeledScore, BaseEstimator):  # type: ignore[misc]
    """Semi-supervised classification with few labels: label propagation over clusters of all rows.

    All rows, labeled or not, are clustered several times by k-means in a representation. The centers c of
    each clustering are the nodes of a nearest-neighbor graph with normalized adjacency S, over which the
    labels propagate by (I − α S)⁻¹. In rounds, the most probable class of every unlabeled row becomes its
    pseudo-label, and labels and pseudo-labels propagate again. The scores q of a row are those of the centers
    near it, weighted by exp(−|z − c|² / width) and averaged over clusterings; its class probabilities are
    p ∝ q⁴. Prediction is inductive: new rows are classified one by one, without fitting again.

    A labeled row keeps its label: ``predict`` and ``transduction_`` return it for the row and for rows equal
    to it.

    Parameters
    ----------
    representation : transformer, FrozenEstimator, list of these or None, default None
        What distances are measured in. A transformer is fitted to all rows; a fitted one in a
        ``FrozenEstimator`` is used as it is; several in a list are averaged like clusterings. None: the
        inputs, which suits up to 10,000 rows; ``ContrastiveFeatures()`` suits more.
    n_clusterings : int, default 6
        k-means clusterings of each representation. More give smoother probabilities, at proportional cost;
        2 to 10.
    n_clusters : int or "auto", default "auto"
        Clusters of each clustering. More follow finer structure, fewer propagate labels further; memory and
        time grow with the square and the cube. "auto" is half of the number of distinct rows, and at least
        that of distinct labeled rows, 1,000 at most.
    alpha : float, default 0.99
        Part of a label that is passed on at every step from center to center, from 0 to below 1. The larger,
        the further labels propagate: 0.99 suits clusters of complicated shape, such as images make; 0.9
        suits tables, whose classes overlap.
    n_rounds : int, default 5
        Rounds of pseudo-labeling; 0 propagates the labels alone. All classes have the same total weight: if
        their sizes differ much give ``class_prior``; if it is unknown, 0 does less harm. Every class should
        have a label, as rows of a class without one are predicted as a neighboring class.
    class_prior : None, "equal" or mapping, default None
        Class probabilities among the unlabeled rows, if they are known: "equal", or a mapping from class to
        probability. A wrong prior does harm.
    unlabeled_label : default None
        A value in y that marks unlabeled rows, such as scikit-learn's −1. Missing entries (None, NaN,
        ``pd.NA``) always do.
    random_state : int, RandomState, Generator or None, default None
        A seed for reproducible results.
    verbose : int, default 0
        1 shows progress bars.

    Attributes
    ----------
    classes_ : array (n_classes,)
        The classes; not there if ``fit`` had no labels.
    transduction_ : array (n_rows,)
        Label of every row of ``fit``: those of X, then those of X_unlabeled. Computed when it is read.
    label_distributions_ : array (n_rows, n_classes)
        Class probabilities of the same rows. Computed when they are read.
    representations_ : list
        The fitted representations.
    n_clusters_ : int
        Clusters of each clustering.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array (n_features,)
        Names of the columns, if X was a frame with string names.

    References
    ----------
    D. Zhou et al., "Learning with local and global consistency", 2004 (label propagation).
    D.-H. Lee, "Pseudo-label: the simple and efficient semi-supervised learning method", 2013.
    S. P. Lloyd, "Least squares quantization in PCM", 1982 (k-means).
    R. Sinkhorn, "Diagonal equivalence to matrices with prescribed row and column sums", 1967 (class prior).
    K. Wei, R. Iyer and J. Bilmes, "Submodularity in data subset selection and active learning", 2015
    (coverage by facility location).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, digits = load_digits(n_class=5, return_X_y=True)
    >>> y = [int(digit) if i < 50 else None for i, digit in enumerate(digits)]
    >>> spreading = SpreadingClassifier(random_state=0).fit(X, y)
    >>> bool((spreading.transduction_ == digits).mean() > 0.85)
    True
    >>> len(spreading.suggest(3))
    3
    """

    def __init__(
        self,
        representation: Any = None,
        *,
        n_clusterings: int = 6,
        n_clusters: int | str = "auto",
        alpha: float = 0.99,
        n_rounds: int = 5,
        class_prior: Any = None,
        unlabeled_label: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.representation = representation
        self.n_clusterings = n_clusterings
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.n_rounds = n_rounds
        self.class_prior = class_prior
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, X_unlabeled: Any = None) -> Self:
        """Cluster all rows, and propagate the labels.

        Parameters
        ----------
        X : array-like (N, D)
            Rows.
        y : array-like (N,) or None, default None
            Their labels; a missing entry (None, NaN, ``pd.NA``) or ``unlabeled_label`` is an unlabeled row.
            None: no labels. Then rows are clustered, :meth:`suggest` names the rows to label first, and
            :meth:`relabel` takes their labels.
        X_unlabeled : array-like (M, D), default None
            Further rows, without labels.
        """
        with shown(self.verbose), unchanged_on_error(self):
            return self._fit(X, y, X_unlabeled)

    def _fit(self, X: Any, y: Any, X_unlabeled: Any) -> Self:
        self._require_options()
        X = validate_data(self, as_rows(X), dtype=[np.float64, np.float32])
        require_moderate(X)
        # Labels that cannot be used are refused before the long part.
        X_unlabeled = or_none(X_unlabeled)
        more = X_unlabeled is not None
        labels = read_labels(y, len(X), unlabeled_label=self.unlabeled_label, more_unlabeled=more)
        prior = None if labels is None else prior_probabilities(self.class_prior, labels.classes)
        self._scale = scale_of(X)
        X = np.concatenate([X, self._validated_unlabeled(X_unlabeled)]) if more else X
        seed = seed_of(self.random_state)
        self.representations_ = [
            learned(one, X, seed, getattr(self, "feature_names_in_", None))
            for one in self._given_representations()
        ]
        standardized = [standardize(one, X) for one in self.representations_]
        labeled = np.zeros(len(X), dtype=bool)
        if labels is not None:
            labeled[labels.rows] = True
        self.n_clusters_ = self._number_of_clusters([Z for _, Z in standardized], labeled)
        self._standardizers = [one for one, _ in standardized]
        self._clusterings = [
            cluster(Z, self.n_clusters_, n_clusterings=self.n_clusterings, alpha=float(self.alpha), seed=seed)
            for _, Z in standardized
        ]
        self._key_type = key_type(X)
        self._rows = self._rows_of([Z for _, Z in standardized], self._keys(X))
        return self._propagate(labels, None if labels is None else self._rows.take(labels.rows), prior)

    def relabel(self, X: Any = None, y: Any = None) -> Self:
        """Propagate other labels over the same clusters, in place of those before.

        Give all labels that are known now, the earlier ones among them. It takes a fraction of a second.

        Parameters
        ----------
        X : array-like (n, D) or None, default None
            The rows with labels, of ``fit`` or others. None: the rows of ``fit``, those of X and then those
            of X_unlabeled, which is faster, as their cluster assignments are kept.
        y : array-like (n,)
            Their labels; a missing entry or ``unlabeled_label`` is an unlabeled row. None, with X None: all
            labels are removed.
        """
        check_is_fitted(self)
        self._require_options()
        if X is not None and y is None:
            raise ValueError("y must be given with X, got None; pass the labels of these rows")
        if X is not None:
            X = self._validated(X)
        n = len(self._rows.keys) if X is None else len(X)
        labels = read_labels(y, n, unlabeled_label=self.unlabeled_label, more_unlabeled=True)
        if labels is None:
            return self._propagate(None, None, None)
        prior = prior_probabilities(self.class_prior, labels.classes)
        warn_of_lost_classes(getattr(self, "classes_", labels.classes), labels.classes)
        rows = self._rows.take(labels.rows) if X is None else self._encoded(X[labels.rows])
        return self._propagate(labels, rows, prior)

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities of rows.

        They rank rows by confidence; where labels are few they are too high. A row with a known label has
        probability 1 for it, or the frequencies of the labels of rows equal to it.

        Parameters
        ----------
        X : array-like (N, D)

        Returns
        -------
        array (N, n_classes)
            In the order of ``classes_``.
        """
        self._require_labels()
        X = self._validated(X)
        return self._probabilities(self._assigned(X), self._keys(X))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of each row of X (N, D); of a labeled row its label."""
        p = self.predict_proba(X)
        found: npt.NDArray[Any] = self.classes_[p.argmax(1)]
        return found

    @property
    def label_distributions_(self) -> Array:
        """Class probabilities of the rows of ``fit`` (n_rows, n_classes), from their kept assignments."""
        self._require_labels()
        return self._probabilities(self._rows.assigned, self._rows.keys)

    @property
    def transduction_(self) -> npt.NDArray[Any]:
        """Labels of the rows of ``fit`` (n_rows,): those that are known, and predictions for the others."""
        p = self.label_distributions_
        found: npt.NDArray[Any] = self.classes_[p.argmax(1)]
        return found

    def suggest(self, n: int = 1, *, X: Any = None, exclude: Iterable[int] = ()) -> Index:
        """Active learning by coverage: indices of the rows to label next, most useful first.

        Greedy facility location on the graph of centers: each row is the one closest to the center that
        covers most of the uncertainty which no label covers yet. The uncertainty of a row is the ratio of its
        second largest score to its largest, by the labels alone, and 1 as long as there are no labels.

        Parameters
        ----------
        n : int, default 1
            Number of rows. At most one row of each cluster is suggested, and none of a cluster that has a
            labeled row, so there may be fewer.
        X : array-like (N, D) or None, default None
            Rows to choose from. None: the rows of ``fit``, those of X and then those of X_unlabeled.
        exclude : iterable of int, default ()
            Indices of rows that are not to be suggested, for example because nobody could label them.

        Returns
        -------
        array of int
            Indices into the rows of ``fit``, or into X. Never a labeled or an excluded row.
        """
        check_is_fitted(self)
        require_number(n)
        rows = self._rows if X is None else self._encoded(self._validated(X))
        allowed = ~self._known.find(rows.keys)[0]
        allowed[row_indices(exclude, len(allowed))] = False
        clusters = self._clusterings[0]
        first = clusters.first(rows.assigned[0])
        closest = representatives(clusters.nearest(rows.assigned[0]), rows.distance, allowed, first.shape[1])
        open_centers = np.setdiff1d(np.flatnonzero(closest >= 0), self._labeled_centers)
        weights = first.T @ self._uncertainty(rows.assigned)
        chosen = most_covering(clusters.similarity(), weights, self._labeled_centers, open_centers, n)
        return closest[chosen]

    def save(self, path: str | Path, *, representation: str = "include") -> None:
        """Write the fitted classifier to one file, atomically.

        The file holds cluster centers, class scores, and the cluster assignments and hashes of the rows of
        ``fit``: after :meth:`load`, predictions are equal bit for bit, and ``relabel``, ``suggest`` and
        ``transduction_`` work. It does not hold the rows as such, but a center is the mean of the rows of its
        cluster: that of a cluster of a single row equals that row, in its representation. Fewer
        ``n_clusters`` make such clusters rare.

        Parameters
        ----------
        path : str or Path
            A ``.safetensors`` file. It holds arrays and JSON, no code.
        representation : {"include", "omit"}, default "include"
            "omit" leaves the representations out, and ``load(path, representation=fitted)`` takes them back.
            For one that is not of this package "include" raises TypeError.
        """
        check_is_fitted(self)
        option("representation", representation, ("include", "omit"))
        facts, arrays = self._state(omit=representation == "omit")
        _archive.write(Path(path), type(self).__name__, facts, arrays)

    @classmethod
    def load(cls, path: str | Path, *, representation: Any = None) -> Self:
        """The fitted classifier of a file written by :meth:`save`; nothing is fitted, no code is executed.

        Parameters
        ----------
        path : str or Path
            The file.
        representation : fitted transformer, or a list of them, default None
            Where it was left out of the file. The parameter ``representation`` is frozen after loading:
            another ``fit`` uses it as it is.
        """
        state = _archive.read(Path(path), cls.__name__)
        with _archive.consistent(Path(path)):
            inputs, n = Inputs.from_facts(state.facts), _n_representations(state)
            widths = [state.arrays[f"mean_{i}"].shape[0] for i in range(n)]
        several = isinstance(representation, (list, tuple))
        given = list(representation) if several else [representation]
        if representation is None:
            given = [None] * n
        if len(given) != n:
            raise ValueError(
                f"representation must be a list of {n}, got {len(given) if several else 'one transformer'}; "
                "give all, in their order"
            )
        supplied = [
            supplied_representation(state, f"representation_{i}", one, inputs, width)
            for i, (one, width) in enumerate(zip(given, widths, strict=True))
        ]
        with _archive.consistent(Path(path)):
            return cls._from_state(state, supplied)

    def _propagate(self, labels: Labels | None, rows: Rows | None, prior: Any) -> Self:
        """Propagate labels of these rows; everything is computed before anything is set."""
        if labels is None or rows is None:
            self._known = KnownLabels(np.empty(0, dtype=np.uint64), np.empty((0, 0)))
            self._propagation: Any = None
            self._labeled_centers = np.empty(0, dtype=np.intp)
            self.__dict__.pop("classes_", None)
            return self
        known = _known_labels(rows.keys, labels)
        # Without unlabeled rows there is nothing to pseudo-label.
        n_rounds = 0 if known.find(self._rows.keys)[0].all() else self.n_rounds
        unlabeled = _some_unlabeled(self._rows.keys, rows.keys)
        found = propagate(
            self._clusterings,
            rows.assigned,
            labels.target,
            len(labels.classes),
            [at[unlabeled] for at in self._rows.assigned],
            prior=prior,
            n_rounds=n_rounds,
        )
        self._labeled_centers = np.unique(self._clusterings[0].nearest(rows.assigned[0]))
        self._known, self._propagation, self.classes_ = known, found, labels.classes
        return self

    def _probabilities(self, assigned: list[Assignments], keys: Keys) -> Array:
        """Class probabilities of rows with these assignments; of labeled rows their labels."""
        p = self._propagated(assigned)
        labeled, at = self._known.find(keys)
        p[labeled] = self._known.frequencies[at]
        return p

    def _propagated(self, assigned: list[Assignments]) -> Array:
        """Class probabilities of rows with these assignments, whether or not they have a label."""
        held: Propagation = self._propagation
        p: Array = probabilities(row_scores(assigned, held.scores)) * held.class_weights
        p /= class_sums(p)
        return p

    def _assigned(self, X: Array) -> list[Assignments]:
        """Cluster assignments of validated rows, for each representation."""
        return [c.assign(one(X)) for c, one in zip(self._clusterings, self._standardizers, strict=True)]

    def _uncertainty(self, assigned: list[Assignments]) -> Array:
        """Ratio of the second largest score of each row to its largest (N,); 1 without labels."""
        if self._propagation is None:
            return np.ones(assigned[0].shape[0])
        q = row_scores(assigned, self._propagation.label_scores)
        q.partition(q.shape[1] - 2, axis=1)
        found: Array = q[:, -2] / q[:, -1]
        return found

    def _encoded(self, X: Array) -> Rows:
        """Assignments, distances and keys of validated rows."""
        return self._rows_of([one(X) for one in self._standardizers], self._keys(X))

    def _keys(self, X: Array) -> Keys:
        return row_keys(X, self._key_type)

    def _rows_of(self, standardized: list[Any], keys: Keys) -> Rows:
        assigned = [c.assign(Z) for c, Z in zip(self._clusterings, standardized, strict=True)]
        centers = self._clusterings[0].centers[0][self._clusterings[0].nearest(assigned[0])]
        distance = ((standardized[0] - centers) ** 2).sum(1, dtype=np.float32)
        return Rows(assigned, distance, keys)

    def _given_representations(self) -> list[Any]:
        given = self.representation
        return list(given) if isinstance(given, (list, tuple)) else [given]

    def _number_of_clusters(self, standardized: list[Any], labeled: Mask) -> int:
        n = min(n_distinct(Z) for Z in standardized)
        if self.n_clusters == "auto":
            n_labeled = max(n_distinct(Z[labeled]) for Z in standardized)
            return min(n, MOST_CLUSTERS, max(n // ROWS_PER_CLUSTER, n_labeled, 2))
        wanted = int(self.n_clusters)
        if wanted > n:
            warnings.warn(
                f"n_clusters is {wanted}, but there are {n} distinct rows: {n} clusters are used",
                stacklevel=4,
            )
        return min(wanted, n)

    def _validated(self, X: Any, name: str = "X", like: str = "the rows of fit") -> Array:
        found: Array = validate_data(self, as_rows(X, name), reset=False, dtype=[np.float64, np.float32])
        require_moderate(found, name)
        warn_of_scale(self._scale, found, name, like)
        return found

    def _validated_unlabeled(self, X_unlabeled: Any) -> Array:
        n = np.shape(X_unlabeled)[1] if len(np.shape(X_unlabeled)) == 2 else self.n_features_in_
        if n != self.n_features_in_:
            raise ValueError(
                f"X_unlabeled must have the {self.n_features_in_} features of X, got {n}; give rows of the "
                "same columns"
            )
        try:
            found = self._validated(X_unlabeled, "X_unlabeled", "those of X")
        except (TypeError, ValueError) as error:
            raise type(error)(f"X_unlabeled must have rows like those of X; {error}") from None
        self._scale = self._scale or scale_of(found)
        return found

    def _require_labels(self) -> None:
        check_is_fitted(self)
        if self._propagation is None:
            raise NotFittedError(
                "SpreadingClassifier was fitted without labels and cannot predict yet; call relabel with the "
                "labels of some rows (suggest names useful ones)"
            )

    def _require_options(self) -> None:
        count("n_clusterings", self.n_clusterings)
        count("n_rounds", self.n_rounds, least=0)
        _require_alpha(self.alpha)
        require_prior(self.class_prior)
        if self.n_clusters != "auto":
            if isinstance(self.n_clusters, str):
                raise ValueError(f"n_clusters must be 'auto' or a number, got {self.n_clusters!r}; pass one")
            count("n_clusters", self.n_clusters)
        if not self._given_representations():
            raise ValueError("representation must have a transformer, got none; pass None for the inputs")
        for one in self._given_representations():
            if one is not None:
                require_estimator("representation", one, "transform", "ContrastiveFeatures()")

    def _state(self, *, omit: bool = False) -> _archive.State:
        names = getattr(self, "feature_names_in_", None)
        facts: dict[str, Any] = {
            "parameters": _archive.plain(self.get_params(deep=False)),
            "class_prior": plain_prior(self.class_prior),
            "classes": None if self._propagation is None else plain_classes(self.classes_),
            "n_features": self.n_features_in_,
            "feature_names": None if names is None else list(names),
            "scale": self._scale,
            "key_type": self._key_type.__name__,
            "n_representations": len(self.representations_),
            "is_list": isinstance(self.representation, (list, tuple)),
        }
        arrays: dict[str, Any] = {
            "distance": self._rows.distance,
            "keys": self._rows.keys,
            "labeled_centers": self._labeled_centers,
            "known_keys": self._known.keys,
            "known_frequencies": self._known.frequencies,
        }
        if self._propagation is not None:
            arrays["class_weights"] = self._propagation.class_weights
        for i, representation in enumerate(self.representations_):
            held = representation_state(f"representation_{i}", representation, omit=omit)
            facts |= held.facts
            at = self._rows.assigned[i]
            arrays |= held.arrays | self._standardizers[i].arrays(f"_{i}")
            arrays |= {
                f"centers_{i}": self._clusterings[i].centers,
                f"widths_{i}": self._clusterings[i].widths,
                f"assigned_{i}": at.indices.reshape(at.shape[0], -1),
                f"weights_{i}": at.data.reshape(at.shape[0], -1),
            }
            if self._propagation is not None:
                arrays[f"scores_{i}"] = self._propagation.scores[i]
                arrays[f"label_scores_{i}"] = self._propagation.label_scores[i]
        return _archive.State(facts, arrays)

    @classmethod
    def _from_state(cls, state: _archive.State, supplied: list[Any] | None = None) -> Self:
        facts, arrays = state
        each = range(_n_representations(state))
        fitted = [
            restored_representation(state, f"representation_{i}", supplied[i] if supplied else None)
            for i in each
        ]
        frozen = [None if one is None else FrozenEstimator(one) for one in fitted]
        made = cls(
            **{
                **facts["parameters"],
                "representation": frozen if facts["is_list"] else frozen[0],
                "class_prior": restored_prior(facts["class_prior"]),
            }
        )
        Inputs.from_facts(facts).apply_to(made)
        made._key_type = {"float32": np.float32, "float64": np.float64}[facts["key_type"]]
        made.representations_ = fitted
        made._standardizers = [Standardizer.from_arrays(fitted[i], arrays, f"_{i}") for i in each]
        _require_alpha(made.alpha)
        made._clusterings = [
            Clusterings(arrays[f"centers_{i}"], arrays[f"widths_{i}"], float(made.alpha)) for i in each
        ]
        made.n_clusters_ = made._clusterings[0].centers.shape[1]
        assigned = [
            assignments(
                arrays[f"assigned_{i}"],
                arrays[f"weights_{i}"],
                n_rows=len(arrays["keys"]),
                n_centers=int(np.prod(arrays[f"centers_{i}"].shape[:2])),
            )
            for i in each
        ]
        made._rows = Rows(assigned, arrays["distance"], arrays["keys"])
        made._labeled_centers = arrays["labeled_centers"]
        made._known = KnownLabels(arrays["known_keys"], arrays["known_frequencies"])
        made._propagation = None
        if facts["classes"] is not None:
            made.classes_ = restored_classes(facts["classes"]["dtype"], facts["classes"]["values"])
            scores, label_scores = (
                [arrays[f"{name}_{i}"] for i in each] for name in ("scores", "label_scores")
            )
            made._propagation = Propagation(scores, arrays["class_weights"], label_scores)
        made._require_consistent()
        return made

    def _require_consistent(self) -> None:
        """Refuse arrays of a file that do not belong together, rather than fail when they are used."""
        n, n_classes = len(self._rows.keys), len(getattr(self, "classes_", ()))
        fit = [
            self._rows.distance.shape == (n,),
            (self._rows.distance >= 0).all(),
            self._rows.keys.dtype == self._known.keys.dtype == np.uint64,
            (self._known.keys[:-1] < self._known.keys[1:]).all(),
            (self._known.frequencies >= 0).all(),
            self._labeled_centers.dtype.kind == "i",
            self._known.frequencies.shape == (len(self._known.keys), n_classes),
            ((self._labeled_centers >= 0) & (self._labeled_centers < self.n_clusters_)).all(),
        ]
        if self._propagation is not None:
            weights = self._propagation.class_weights
            fit += [weights.shape == (n_classes,), (weights > 0).all()]
        for i, (c, at) in enumerate(zip(self._clusterings, self._rows.assigned, strict=True)):
            at.check_format()
            r = self.n_features_in_ if self.representations_[i] is None else c.centers.shape[2]
            n_clusterings, k = len(c.widths), self.n_clusters_
            n_centers = n_clusterings * k
            clusterings = at.indices.reshape(n, n_clusterings, -1) // k
            fit += [(clusterings == np.arange(n_clusterings)[:, np.newaxis]).all()]
            fit += [(c.widths > 0).all(), (at.data >= 0).all()]
            fit += [c.centers.shape == (len(c.widths), self.n_clusters_, r), at.shape == (n, n_centers)]
            fit += [self._standardizers[i].mean.shape == (r,)]
            if self._propagation is not None:
                scores = (self._propagation.scores[i], self._propagation.label_scores[i])
                fit += [x.shape == (n_centers, n_classes) for x in scores]
                fit += [(x >= 0).all() and (x.sum(1) > 0).all() for x in scores]
        if not all(fit):
            raise ValueError("arrays contradict each other")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_known")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags


def _known_labels(keys: Keys, labels: Labels) -> KnownLabels:
    """Frequencies of the labels of each distinct labeled row; a warning if equal rows have different ones."""
    distinct, at = np.unique(keys, return_inverse=True)
    counts = np.zeros((len(distinct), len(labels.classes)))
    np.add.at(counts, (at, labels.target), 1)
    n_mixed = int(((counts > 0).sum(1) > 1).sum())
    if n_mixed:
        warnings.warn(
            f"distinct rows with several labels: {n_mixed}, equal in all columns that are used; the most "
            "frequent label is predicted for them; check the labels",
            stacklevel=5,
        )
    return KnownLabels(distinct, counts / counts.sum(1, keepdims=True))


def _some_unlabeled(fitted: Keys, labeled: Keys) -> Index:
    """Indices of at most N_PSEUDO fitted rows without a label, given the keys of rows; all if each has one.

    Of equal rows as many are labeled as labels were given.
    """
    distinct, n_labels = np.unique(labeled, return_counts=True)
    rows = np.flatnonzero(np.isin(fitted, distinct))
    at = np.searchsorted(distinct, fitted[rows])
    order = np.argsort(at, kind="stable")
    at = at[order]
    copy = np.arange(len(at)) - np.searchsorted(at, at)
    unlabeled = np.ones(len(fitted), dtype=bool)
    unlabeled[rows[order][copy < n_labels[at]]] = False
    found = np.flatnonzero(unlabeled) if unlabeled.any() else np.arange(len(fitted))
    # Always the same rows: the same labels give the same result.
    rng = np.random.default_rng(0)
    return np.sort(rng.choice(found, N_PSEUDO, replace=False)) if len(found) > N_PSEUDO else found


def _n_representations(state: _archive.State) -> int:
    """Number of representations in a file; ValueError if it does not hold as many."""
    n = count("n_representations", state.facts["n_representations"])
    held = sum(name.startswith("centers_") for name in state.arrays)
    if n != held:
        raise ValueError(f"n_representations must be {held}, got {n}")
    return n


def _require_alpha(alpha: Any) -> None:
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float, np.number)) or not 0 <= alpha < 1:
        raise ValueError(f"alpha must be a number from 0 to below 1, got {alpha!r}; pass 0.9, for example")
