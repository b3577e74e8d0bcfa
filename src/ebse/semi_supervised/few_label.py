"""``FewLabelClassifier``: semi-supervised classification of a raw table with few labels."""

import copy
import math
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ebse import _archive
from ebse._estimators import (
    Inputs,
    dense,
    learned,
    or_none,
    representation_state,
    require_estimator,
    restored_representation,
    scale_of,
    seed_of,
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
from ebse._stages import shown, stage
from ebse._threads import threads_for_entries
from ebse._validation import count, option
from ebse.semi_supervised._class_prior import (
    caution,
    class_sums,
    estimated_prior,
    plain_prior,
    prior_probabilities,
    prior_weights,
    require_prior,
    restored_prior,
)
from ebse.semi_supervised._columns import Table, Views, all_numbers, as_frame
from ebse.semi_supervised._draws import Sampler, Splits, samples_models
from ebse.semi_supervised._members import (
    COLUMNS,
    COMPONENTS,
    FEATURES,
    MOST_LEFT_OUT,
    Linear,
    combined,
    expected_accuracy,
    fitted_members,
    folds,
    member_weights,
    recalls,
    restored_members,
    sharpness,
    weight_factors,
)
from ebse.semi_supervised._standardize import n_distinct
from ebse.semi_supervised.spreading import SpreadingClassifier

Array = npt.NDArray[Any]
Index = npt.NDArray[np.intp]

MEMBERS = ("all", "propagation")
N_CLUSTERINGS, ALPHA, FAR = 3, 0.95, 0.99
"""Clusterings of each view, and how far labels propagate: in columns less than in learned features."""
MOST_CLUSTERS, ROWS_PER_CLUSTER = 1_000, 5
"""Clusters at most, and rows for each at least: with few labels fewer clusters than rows / 2 do better."""
DIMENSIONS_PER_ROW = 5
"""One more row per cluster for so many effective dimensions: where there are many, new rows are nearer to the
means of large clusters than to any row (hubs)."""
N_COMPONENTS = 10
"""Principal components of the ranks: in many columns a few rows are near neighbors of all others (hubs)."""
MANY_COLUMNS, MANY_ROWS = 100, 5_000
"""Numeric columns and rows from which on features are learned."""
N_SAMPLE = 2_000
"""Rows of ``fit`` by which members are compared and the class prior is estimated."""
ONE_CLASS, LARGE_PRIOR, DISAGREE = 0.95, 0.8, 0.4
"""Warnings: most rows predicted as one class of a smaller prior; two members that disagree on more rows."""


class Rows(NamedTuple):
    """Coded rows, and their views for propagation."""

    views: Views
    spreads: dict[str, Array]
    """For each member of label propagation the rows in its view."""

    def take(self, rows: Index) -> "Rows":
        """Some of the rows."""
        views = Views(*(view[rows] for view in self.views))
        return Rows(views, {name: Z[rows] for name, Z in self.spreads.items()})


@final
class FewLabelClassifier(LabeledScore, BaseEstimator):  # type: ignore[misc]
    """Semi-supervised classifier for raw tables, images as rows, or text, with few labels.

    X is a frame as it is, with numbers, categories, dates, text and missing values: columns are coded
    without labels (``columns_``). Several members answer, and their class probabilities are averaged
    (``members_``): label propagation over clusters of all rows, in standardized columns and in principal
    components of ranks, which uses the unlabeled rows; logistic regression; and extremely randomized trees.
    The more labels there are, the less propagation counts; from three labels per class on, members count less
    that are less accurate in cross-validation. The frequencies of the classes are estimated from the
    unlabeled rows (``class_prior_``).

    A labeled row keeps its label: ``predict`` and ``transduction_`` return it for the row and for rows equal
    to it.

    Parameters
    ----------
    columns : "auto" or mapping, default "auto"
        Kinds of some columns, where the automatic choice is not right: "quantity", "category", "date",
        "text" or "drop", for example ``{"zip": "category", "id": "drop"}``.
    class_prior : {"estimate", "equal"}, mapping or None, default "estimate"
        Frequencies of the classes among the unlabeled rows. "estimate": by expectation maximization on the
        predicted probabilities, cautiously; "equal"; a mapping from class to probability; None: the
        frequencies among the labels, which is right if labeled rows were chosen at random.
    features : "auto", None or transformer, default "auto"
        Learned features, in which labels are propagated as well. "auto": ``ContrastiveFeatures`` for
        numeric tables of at least 100 columns and 5,000 rows. None: no such features. An energy-based
        ensemble, :class:`ebse.RBSE`, is fitted to the columns split at their quartiles, and a logistic
        regression on models sampled from it (on the mean representation, where Gibbs chains forget a row
        within 20 sweeps) is a further member; on tables it gains nothing.
    unlabeled_label : default None
        A value in y that marks unlabeled rows, such as scikit-learn's −1. Missing entries always do.
    random_state : int, RandomState, Generator or None, default None
        A seed for reproducible results.
    verbose : int, default 0
        1 shows progress bars.

    Attributes
    ----------
    classes_ : array (n_classes,)
        The classes; not there if ``fit`` had no labels.
    columns_ : DataFrame
        What was done with each column, and why.
    members_ : DataFrame
        The members, their weights, and why.
    class_prior_ : DataFrame
        Frequencies of the classes that predictions use, and their standard error where they are estimated.
    transduction_ : array (n_rows,)
        Label of every row of ``fit``: those of X, then those of X_unlabeled.
    label_distributions_ : array (n_rows, n_classes)
        Class probabilities of the same rows.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array (n_features,)
        Names of the columns, if X was a frame with string names.

    References
    ----------
    D. Zhou et al., "Learning with local and global consistency", 2004 (label propagation).
    P. Geurts, D. Ernst and L. Wehenkel, "Extremely randomized trees", 2006.
    M. Saerens, P. Latinne and C. Decaestecker, "Adjusting the outputs of a classifier to new a priori
    probabilities", 2002 (class prior).

    Examples
    --------
    >>> import pandas as pd
    >>> from ebse import FewLabelClassifier
    >>> rows = [("red", 1.0), ("red", 1.2), ("blue", 5.0), ("blue", 5.5), ("red", None), ("blue", 4.8)] * 5
    >>> frame = pd.DataFrame(rows, columns=["color", "size"])
    >>> y = ["cherry", None, "plum"] + [None] * 27
    >>> model = FewLabelClassifier(random_state=0).fit(frame, y)
    >>> model.predict(pd.DataFrame({"color": ["red"], "size": [1.1]})).tolist()
    ['cherry']
    """

    def __init__(
        self,
        *,
        columns: Any = "auto",
        class_prior: Any = "estimate",
        features: Any = "auto",
        unlabeled_label: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.columns = columns
        self.class_prior = class_prior
        self.features = features
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, X_unlabeled: Any = None) -> Self:
        """Code the columns, cluster all rows, and learn from the labels.

        Parameters
        ----------
        X : frame or array-like (N, D)
            Rows: a pandas or polars frame of numbers, booleans, categories, words, dates and missing values,
            or an array.
        y : array-like (N,) or None, default None
            Their labels; a missing entry (None, NaN, ``pd.NA``) or ``unlabeled_label`` is an unlabeled row.
            None: no labels. Then :meth:`suggest` names the rows to label first, and :meth:`relabel` takes
            their labels.
        X_unlabeled : frame or array-like (M, D), default None
            Further rows, without labels.
        """
        with (
            shown(self.verbose),
            unchanged_on_error(self),
            threads_for_entries(_n_entries(X) + _n_entries(X_unlabeled)),
        ):
            return self._fit(X, y, X_unlabeled)

    def _fit(self, X: Any, y: Any, X_unlabeled: Any) -> Self:
        self._require_options()
        frame = self._frame(X, reset=True)
        X_unlabeled = or_none(X_unlabeled)
        more = X_unlabeled is not None
        labels = read_labels(y, len(frame), unlabeled_label=self.unlabeled_label, more_unlabeled=more)
        if labels is not None:
            _warn_of_spelling(labels.classes)
            _warn_of_order(X, y)
            _warn_of_label_column(frame, labels)
            self._given_prior(labels)
        if more:
            frame = pd.concat(
                [frame, self._frame(X_unlabeled, reset=False, name="X_unlabeled")], ignore_index=True
            )
        self._scale, self._empty = scale_of(all_numbers(frame)), _empty_rows(frame)
        self._seed = seed_of(self.random_state)
        self._supervised: dict[str, Any] = {}
        self._recall: Array | None = None
        self._factors: dict[str, float] = {}
        self._n_left_out = 0
        with stage("columns"):
            self._table = Table.learned(frame, self.columns, seed=self._seed)
            self.columns_ = self._table.described()
            views = self._table(frame)
        self._learn_views(views)
        rows = self._rows_of(views)
        # Learned features count most where there are some, and clustering many columns takes longest.
        n_others = N_CLUSTERINGS if self._features is None else 1
        self._propagators = {
            name: SpreadingClassifier(
                n_clusterings=2 * N_CLUSTERINGS if name == FEATURES else n_others,
                # Learned features make clusters of any shape, along which labels propagate far.
                n_clusters="auto" if name == FEATURES else _number_of_clusters(Z),
                alpha=FAR if name == FEATURES else ALPHA,
                random_state=self._seed,
            ).fit(Z)
            for name, Z in rows.spreads.items()
        }
        self._kept: Rows | None = rows
        self._sample = _sample(len(frame), self._seed)
        if labels is None:
            return self._forget()
        return self._learn(labels, rows.take(labels.rows), "all")

    def relabel(self, X: Any = None, y: Any = None, *, members: str = "all") -> Self:
        """Learn from other labels, in place of those before; columns and clusters stay as they are.

        Give all labels that are known now, the earlier ones among them.

        Parameters
        ----------
        X : frame or array-like (n, D) or None, default None
            The rows with labels, of ``fit`` or others. None: the rows of ``fit``, those of X and then those
            of X_unlabeled.
        y : array-like (n,)
            Their labels; a missing entry or ``unlabeled_label`` is an unlabeled row. None, with X None: all
            labels are removed.
        members : {"all", "propagation"}, default "all"
            "propagation" leaves all other members, and what cross-validation found, as they are, which takes
            a fraction of a second, unless a class is new.
        """
        check_is_fitted(self)
        self._require_options()
        option("members", members, MEMBERS)
        if X is not None and y is None:
            raise ValueError(
                "y must be given with X, got None; pass the labels of these rows, or relabel(y=labels) with "
                "the labels of all rows of fit"
            )
        if X is not None and np.ndim(X) == 1:
            raise ValueError(
                "X must hold rows, got one dimension; pass the labels of all rows of fit as y, missing where "
                "there is none: y[indices] = labels, then relabel(y=y)"
            )
        if X is None:
            kept = self._kept_rows("relabel without X")
            n = len(kept.views.standard)
        else:
            frame = self._frame(X, reset=False)
            n = len(frame)
        labels = read_labels(y, n, unlabeled_label=self.unlabeled_label, more_unlabeled=True)
        if labels is None:
            return self._forget()
        _warn_of_spelling(labels.classes)
        warn_of_lost_classes(getattr(self, "classes_", labels.classes), labels.classes)
        taken = labels.rows
        rows = kept.take(taken) if X is None else self._rows_of(self._table(frame.iloc[taken]))
        with unchanged_on_error(self), threads_for_entries(rows.views.standard.size):
            return self._learn(labels, rows, members)

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities of rows.

        Parameters
        ----------
        X : frame or array-like (N, D)
            Rows with the columns of ``fit``.

        Returns
        -------
        array (N, n_classes)
            In the order of ``classes_``. A row with a known label has probability 1 for it, or the
            frequencies of the labels of rows equal to it.
        """
        self._require_labels()
        with threads_for_entries(_n_entries(X)):
            rows = self._rows_in(X)
            return self._combined(self._member_answers(rows), *self._find_labels_of(rows))

    def predict(self, X: Any) -> Array:
        """The most probable class of each row of X; of a labeled row its label."""
        p = self.predict_proba(X)
        found: Array = self.classes_[p.argmax(1)]
        return found

    @property
    def label_distributions_(self) -> Array:
        """Class probabilities of the rows of ``fit`` (n_rows, n_classes)."""
        self._require_labels()
        return self._fitted_probabilities().copy()

    @property
    def transduction_(self) -> Array:
        """Labels of the rows of ``fit`` (n_rows,): those that are known, and predictions for the others."""
        self._require_labels()
        found: Array = self.classes_[self._fitted_probabilities().argmax(1)]
        return found

    def suggest(self, n: int = 1, *, X: Any = None, exclude: Iterable[int] = ()) -> Index:
        """Active learning by coverage: indices of the rows to label next, most useful first.

        Parameters
        ----------
        n : int, default 1
            Number of rows. At most one row of each cluster is suggested, and none of a cluster that has a
            labeled row, so there may be fewer.
        X : frame or array-like (N, D) or None, default None
            Rows to choose from. None: the rows of ``fit``, those of X and then those of X_unlabeled.
        exclude : iterable of int, default ()
            Indices of rows that are not to be suggested.

        Returns
        -------
        array of int
            Indices into the rows of ``fit``, or into X. Never a labeled or an excluded row, nor one in which
            every entry is missing.
        """
        check_is_fitted(self)
        # Learned features are the best view where there are some.
        name = FEATURES if FEATURES in self._propagators else COLUMNS
        rows = None if X is None else self._rows_in(X).spreads[name]
        empty = self._empty if X is None else _empty_rows(self._frame(X, reset=False))
        return self._propagators[name].suggest(n, X=rows, exclude=[*exclude, *empty])

    def save(self, path: str | Path) -> None:
        """Write the fitted classifier to one file, atomically.

        It holds how columns are coded, the members, and cluster assignments of the rows of ``fit``: after
        :meth:`load` predictions are equal, and rows for ``relabel`` must be given. It does not hold the rows
        as such, but of a quantity its quantiles, the smallest and the largest value among them; words of at
        least two rows; both values of a column of two; and cluster centers, of which that of a cluster of a
        single row equals that row, standardized.

        Parameters
        ----------
        path : str or Path
            A ``.safetensors`` file. It holds arrays and JSON, no code.
        """
        check_is_fitted(self)
        _archive.save(path, self)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The fitted classifier of a file written by :meth:`save`; nothing is fitted, no code is executed."""
        return _archive.load(path, cls)

    def _with_labels(self, rows: Rows, labels: Labels) -> Self:
        """A copy that learns from other labels, with the right predictions and uncalibrated probabilities."""
        return copy.copy(self)._learn(labels, rows, "all", calibrated=False)

    def _learn(self, labels: Labels, rows: Rows, members: str, *, calibrated: bool = True) -> Self:
        """Learn from the labels of these rows."""
        target, counts = labels.target, np.bincount(labels.target)
        known = np.array_equal(labels.classes, getattr(self, "classes_", []))
        given = self._given_prior(labels)
        self.classes_ = labels.classes
        propagators = {}
        with warnings.catch_warnings():
            for name, one in self._propagators.items():
                # Copies, so that an error later on leaves everything as it was.
                # Without labels at first: which classes are lost, this one has said by their names.
                made = copy.copy(one).set_params(
                    class_prior=None if given is None else dict(enumerate(given))
                )
                made.relabel()
                propagators[name] = made.relabel(rows.spreads[name], target)
                # Equal rows with different labels: the first member has said so.
                warnings.filterwarnings("ignore", "distinct rows with several labels", UserWarning)
        self._propagators = propagators
        left_out: dict[str, Array] = {}
        if members == "all" or not known:
            with stage("classifiers"):
                self._supervised = self._fitted_members(rows, target, len(counts), _differ(rows.views))
                left_out, left_target = self._left_out_answers(rows, target, len(counts))
            self._recall, self._n_left_out = None, 0
            self._factors = weight_factors(left_out, left_target)
            self._answers: dict[str, Array] = {}
            self._sampled: dict[str, Array] = {}
        self._distributions: Array | None = None
        some = self._sampled_answers()
        n_clusters = self._propagators[COLUMNS].n_clusters_
        self._weights, why = member_weights(
            some, counts, self._supervised, n_clusters=n_clusters, factors=self._factors
        )
        self.members_ = pd.DataFrame(
            {"member": list(self._weights), "weight": self._weights.values(), "why": why}
        )
        labeled = self._find_labels(self._sample)[0]
        unlabeled = {name: p[~labeled] for name, p in some.items()} if not labeled.all() else some
        self._prior: Array
        error: Array = np.zeros(len(counts))
        if given is not None:
            p = combined(unlabeled, self._weights, np.ones(len(counts)))
            self._prior, self._class_weights = given, prior_weights(p, given)
        else:
            self._prior, error = estimated_prior(unlabeled, self._weights)
            # The harmonic mean: classes of few labels limit what is known.
            self._class_weights = self._prior ** caution(self._prior, float(1 / np.mean(1 / counts)))
        self.class_prior_ = pd.DataFrame(
            {"class": labels.classes, "probability": self._prior, "standard error": error}
        )
        if left_out:
            self._recall, self._n_left_out = recalls(self._mixed(left_out), left_target), len(left_target)
        if not calibrated:
            self._sharpness = 1.0
            return self
        if not known:
            self._sharpness = 1.0
        # Of all members; after load there are no other rows than those with labels.
        evidence = left_out if self._kept is None or labeled.all() else unlabeled
        if evidence:
            self._sharpness = self._fitted_sharpness(evidence, counts)
        self._warn_of_result(some)
        return self

    def _fitted_sharpness(self, answers: dict[str, Array], counts: Index) -> float:
        """The power of the probabilities with which their mean maximum is the accuracy that is expected."""
        p = self._mixed(answers)
        expected = expected_accuracy(
            answers,
            p,
            counts,
            cross_validated=None if self._recall is None else float(self._recall @ self._prior),
            n_cross_validated=self._n_left_out,
        )
        return sharpness(p, expected)

    def _fitted_members(self, rows: Rows, target: Index, n_classes: int, on_ranks: bool) -> dict[str, Any]:
        """Members that learn from these labeled rows alone, by name."""
        return fitted_members(
            rows.views, target, n_classes, seed=self._seed, on_ranks=on_ranks, sampler=self._sampler
        )

    def _left_out_answers(self, rows: Rows, target: Index, n_classes: int) -> tuple[dict[str, Array], Index]:
        """Class probabilities of labeled rows by each member without their labels, and the labels.

        By cross-validation of all members; what is learned without labels stays. Of equal rows one is used,
        as members would know its label by the others. Empty where labels are too few.
        """
        one = self._propagators[COLUMNS]
        distinct = np.unique(one._keys(rows.spreads[COLUMNS]), return_index=True)[1]
        some = np.random.default_rng(self._seed).permutation(distinct)[:MOST_LEFT_OUT]
        on_ranks = _differ(rows.views)
        rows, target = rows.take(some), target[some]
        answers: list[dict[str, Array]] = []
        tested: list[Index] = []
        for train, test in folds(target, n_classes, seed=self._seed):
            made = copy.copy(self)
            inside = rows.take(train)
            # Without a given prior, which the other members do not have either.
            made._propagators = {
                name: copy.copy(one).set_params(class_prior=None).relabel(inside.spreads[name], target[train])
                for name, one in self._propagators.items()
            }
            made._supervised = self._fitted_members(inside, target[train], n_classes, on_ranks)
            answers.append(made._member_answers(rows.take(test)))
            tested.append(test)
        if not tested:
            return {}, np.empty(0, dtype=np.intp)
        joined = {name: np.concatenate([one[name] for one in answers]) for name in answers[0]}
        return joined, target[np.concatenate(tested)]

    def _sampled_answers(self) -> dict[str, Array]:
        """Answers of the members for some rows of ``fit``; after ``load``, of propagation alone."""
        found = {name: self._propagated(name, self._sample) for name in self._propagators}
        if self._kept is not None:
            if not self._sampled:
                views = Views(*(view[self._sample] for view in self._kept.views))
                self._sampled = {name: one(views) for name, one in self._supervised.items()}
            found |= self._sampled
        return found

    def _propagated(self, name: str, rows: Index | slice) -> Array:
        """Class probabilities of rows of ``fit`` by label propagation."""
        one = self._propagators[name]
        return one._propagated([at[rows] for at in one._rows.assigned])

    def _find_labels(self, rows: Index | slice) -> tuple[npt.NDArray[np.bool_], Index]:
        """Which rows of ``fit`` have a label, and where it is."""
        one = self._propagators[COLUMNS]
        return one._known.find(one._rows.keys[rows])

    def _member_answers(self, rows: Rows) -> dict[str, Array]:
        """Class probabilities of rows by each member."""
        answers = {}
        for name, one in self._propagators.items():
            answers[name] = one._propagated(one._assigned(one._validated(rows.spreads[name])))
        return answers | {name: one(rows.views) for name, one in self._supervised.items()}

    def _find_labels_of(self, rows: Rows) -> tuple[npt.NDArray[np.bool_], Index]:
        """Which rows equal a row with a label, and where that is."""
        one = self._propagators[COLUMNS]
        return one._known.find(one._keys(rows.spreads[COLUMNS]))

    def _combined(self, answers: dict[str, Array], labeled: Any, at: Index) -> Array:
        """Class probabilities by all members and the class prior; of labeled rows their labels."""
        p = self._mixed(answers) ** self._sharpness
        p /= class_sums(p)
        p[labeled] = self._propagators[COLUMNS]._known.frequencies[at]
        return p

    def _mixed(self, answers: dict[str, Array]) -> Array:
        """Class probabilities by all members and the class prior, not calibrated."""
        return combined(answers, self._weights, self._class_weights)

    def _fitted_probabilities(self) -> Array:
        """Class probabilities of all rows of ``fit``; those of supervised members are kept between labels."""
        if self._distributions is None:
            if self._kept is None:
                raise AttributeError(
                    "transduction_ and label_distributions_ are about the rows of fit, which a file does not "
                    "hold; call predict(X) or predict_proba(X)"
                )
            kept = self._kept
            every = slice(None)
            answers = {name: self._propagated(name, every) for name in self._propagators}
            for name, one in self._supervised.items():
                if name not in self._answers:
                    self._answers[name] = one(kept.views)
                answers[name] = self._answers[name]
            self._distributions = self._combined(answers, *self._find_labels(every))
        return self._distributions

    def _learn_views(self, views: Views) -> None:
        """Principal components of ranks, and learned features."""
        n = min(N_COMPONENTS, views.ranks.shape[1], len(views.ranks))
        with stage("components"):
            found = PCA(n, random_state=self._seed % 2**32).fit(views.ranks)
        self._center, self._axes = found.mean_.astype(np.float32), found.components_.astype(np.float32)
        wanted = self.features
        if isinstance(wanted, str):
            many = views.standard.shape[1] >= MANY_COLUMNS and len(views.standard) >= MANY_ROWS
            if many and set(self.columns_["kind"]) <= {"quantity", "count", "binary", "drop"}:
                from ebse.semi_supervised.contrastive import ContrastiveFeatures

                wanted = ContrastiveFeatures()
            else:
                wanted = None
        self._sampler: Sampler | None = None
        if samples_models(wanted):
            self._sampler = Sampler.learned(wanted, views.standard, self._seed)
            wanted = None
        self._features = learned(wanted, views.standard, self._seed)

    def _rows_in(self, X: Any, *, new: bool = True) -> Rows:
        """Rows X of the user, coded; ``new`` ones that differ from those of ``fit`` warn."""
        frame = self._frame(X, reset=False)
        if self._scale and new:
            warn_of_scale(self._scale, all_numbers(frame))
        return self._rows_of(self._table(frame, new=new))

    def _rows_of(self, views: Views) -> Rows:
        spreads = {COLUMNS: views.standard, COMPONENTS: (views.ranks - self._center) @ self._axes.T}
        if self._features is not None:
            spreads[FEATURES] = dense(self._features.transform(views.standard)).astype(np.float32)
        return Rows(views, spreads)

    def _kept_rows(self, what: str) -> Rows:
        if self._kept is None:
            raise ValueError(
                f"{what} needs the rows of fit, which a file does not hold; pass rows as X, or fit again"
            )
        return self._kept

    def _forget(self) -> Self:
        """No labels."""
        self._supervised, self._factors = {}, {}
        self._propagators = {name: copy.copy(one).relabel() for name, one in self._propagators.items()}
        for name in ("classes_", "members_", "class_prior_", "_weights", "_prior"):
            self.__dict__.pop(name, None)
        return self

    def _estimates_prior(self) -> bool:
        return isinstance(self.class_prior, str) and self.class_prior == "estimate"

    def _given_prior(self, labels: Labels) -> Array | None:
        """The class prior that the user gave, or that of the labels; None where it is estimated."""
        if self._estimates_prior():
            return None
        if self.class_prior is None:
            counts = np.bincount(labels.target).astype(np.float64)
            shares: Array = counts / counts.sum()
            return shares
        return prior_probabilities(self.class_prior, labels.classes)

    def _frame(self, X: Any, *, reset: bool, name: str = "X") -> pd.DataFrame:
        """X as a frame with the columns of ``fit``."""
        frame = as_frame(X, name)
        if len(frame) == 0:
            raise ValueError(
                f"{name} must have rows, got 0 sample(s) (shape={frame.shape}) while a minimum of 1 is "
                "required; pass at least one"
            )
        if reset:
            if frame.shape[1] == 0:
                raise ValueError(
                    f"{name} must have columns, got 0 feature(s) (shape={frame.shape}) while a minimum of 1 "
                    "is required; pass at least one"
                )
            validate_data(self, frame, reset=True, skip_check_array=True)
            return frame
        names = list(getattr(self, "feature_names_in_", range(self.n_features_in_)))
        if not hasattr(X, "columns") or not hasattr(self, "feature_names_in_"):
            validate_data(self, frame, reset=False, skip_check_array=True)
            return frame.set_axis(names, axis=1)
        # Columns that fit has dropped are not needed.
        unused = (
            {c.name for c in self._table.columns if c.kind == "drop"} if hasattr(self, "_table") else set()
        )
        absent = [c for c in names if c not in frame.columns and c not in unused]
        extra = [c for c in frame.columns if c not in names]
        if absent:
            raise ValueError(
                f"{name} must have the columns of fit, got none named {', '.join(map(repr, absent))}; add "
                "them, with missing values if they are not known"
            )
        if extra:
            warnings.warn(
                f"{name} has columns that fit did not have, and they are not used: "
                f"{', '.join(map(repr, extra))}",
                stacklevel=4,
            )
        return frame.reindex(columns=names)

    def _warn_of_result(self, some: dict[str, Array]) -> None:
        """Warn of predictions that look wrong."""
        labeled, at = self._find_labels(self._sample)
        p = self._combined(some, labeled, at)
        parts = np.bincount(p.argmax(1), minlength=len(self.classes_)) / len(p)
        most = int(parts.argmax())
        if parts[most] >= ONE_CLASS and self._prior[most] < LARGE_PRIOR:
            warnings.warn(
                f"{100 * parts[most]:.0f} % of the rows are predicted as {self.classes_.tolist()[most]!r}, "
                f"whose class prior is {self._prior[most]:.2f}; label more rows of the other classes "
                "(suggest names useful ones), and look at columns_",
                stacklevel=5,
            )
        heaviest = sorted(some, key=lambda name: -self._weights[name])[:2]
        if len(heaviest) == 2:
            apart = float(np.mean(some[heaviest[0]].argmax(1) != some[heaviest[1]].argmax(1)))
            if apart > DISAGREE:
                warnings.warn(
                    f"the members {heaviest[0]!r} and {heaviest[1]!r} disagree on {100 * apart:.0f} % of the "
                    "rows: predictions are uncertain; label more rows (suggest names useful ones)",
                    stacklevel=5,
                )

    def _require_labels(self) -> None:
        check_is_fitted(self)
        if not hasattr(self, "classes_"):
            raise NotFittedError(
                "FewLabelClassifier was fitted without labels and cannot predict yet; call relabel with the "
                "labels of some rows (suggest names useful ones)"
            )

    def _require_options(self) -> None:
        if isinstance(self.class_prior, str) and self.class_prior not in ("estimate", "equal"):
            raise ValueError(
                "class_prior must be 'estimate', 'equal', None or a mapping, got "
                f"{self.class_prior!r}; pass one of these, for example {{'a': 0.9, 'b': 0.1}}"
            )
        if not self._estimates_prior():
            require_prior(self.class_prior)
        if self.features is None or (isinstance(self.features, str) and self.features == "auto"):
            return
        require_estimator("features", self.features, "transform", "ContrastiveFeatures()")

    def _state(self) -> _archive.State:
        names = getattr(self, "feature_names_in_", None)
        has_labels = hasattr(self, "classes_")
        facts: dict[str, Any] = {
            "parameters": _archive.plain(self.get_params(deep=False)),
            # As pairs, because keys of JSON are words, and columns of arrays have numbers.
            "given_columns": _plain_columns(self.columns),
            "given_prior": plain_prior(self.class_prior),
            "classes": plain_classes(self.classes_) if has_labels else None,
            "n_features": self.n_features_in_,
            "scale": self._scale,
            "feature_names": None if names is None else list(names),
            "seed": self._seed,
            "members": self.members_.to_dict("list") if has_labels else None,
            "sharpness": self._sharpness if has_labels else 1.0,
            "factors": self._factors,
            "n_left_out": self._n_left_out if has_labels else 0,
            "n_sweeps": None if self._sampler is None else self._sampler.n_sweeps,
            "propagators": list(self._propagators),
            "linear": [],
        }
        arrays: dict[str, Array] = {
            "sample": self._sample,
            "empty": self._empty,
            "center": self._center,
            "axes": self._axes,
        }
        if has_labels:
            arrays["prior"] = self._prior
            arrays["class_weights"] = self._class_weights
            if self._recall is not None:
                arrays["recall"] = self._recall
            arrays["prior_error"] = self.class_prior_["standard error"].to_numpy()
        features = self._features if self._sampler is None else self._sampler.ensemble
        if features is not None and not _archive.is_ours(features):
            raise TypeError(
                f"features must be an estimator of ebse to be saved, got {type(features).__name__}; "
                "fit with features=None, or keep the classifier in memory"
            )
        parts = [_archive.State({"table": self._table.facts()}, _prefixed("table", self._table.arrays()))]
        parts.append(representation_state("features", features))
        if self._sampler is not None:
            arrays |= _prefixed("splits", self._sampler.splits._asdict())
        parts += [_archive.nested(name, one) for name, one in self._propagators.items()]
        for name, one in self._supervised.items():
            if isinstance(one, Linear):
                facts["linear"].append([name, one.view])
            parts.append(_archive.State({}, _prefixed(name, one.arrays())))
        for part in parts:
            facts |= part.facts
            arrays |= part.arrays
        return _archive.State(facts, arrays)

    @classmethod
    def _from_state(cls, state: _archive.State) -> Self:
        facts, arrays = state
        held = facts["given_columns"]
        made = cls(
            **{
                **facts["parameters"],
                "columns": dict(held) if isinstance(held, list) else held,
                "class_prior": restored_prior(facts["given_prior"]),
            }
        )
        Inputs.from_facts(facts).apply_to(made)
        made._seed, made._kept, made._supervised, made._factors = int(facts["seed"]), None, {}, {}
        made._table = Table.from_state(state.inside("table"))
        made.columns_ = made._table.described()
        made._sample, made._center, made._axes = (arrays[name] for name in ("sample", "center", "axes"))
        made._empty = arrays["empty"]
        made._features, made._sampler = restored_representation(state, "features"), None
        if made._features is not None:
            made.features = FrozenEstimator(made._features)
        if facts["n_sweeps"] is not None:
            splits = Splits(arrays["splits.columns"], arrays["splits.cuts"])
            made._sampler = Sampler(splits, made._features, facts["n_sweeps"], made._seed)
            made.features, made._features = clone(made._features), None
        made._propagators = {name: _archive.restored(state.inside(name)) for name in facts["propagators"]}
        made._require_options()
        made._require_rows_fit()
        if facts["classes"] is None:
            return made
        made.classes_ = restored_classes(facts["classes"]["dtype"], facts["classes"]["values"])
        made._supervised = restored_members(state, made._sampler)
        made.members_ = pd.DataFrame(facts["members"])
        made._weights = dict(zip(made.members_["member"], made.members_["weight"], strict=True))
        made._prior, made._answers, made._distributions = arrays["prior"], {}, None
        made._sampled = {}
        made._sharpness, made._recall = float(facts["sharpness"]), arrays.get("recall")
        made._class_weights = arrays["class_weights"]
        made._n_left_out = count("n_left_out", facts["n_left_out"], least=0)
        made._factors = {name: float(x) for name, x in facts["factors"].items()}
        made.class_prior_ = pd.DataFrame(
            {"class": made.classes_, "probability": made._prior, "standard error": arrays["prior_error"]}
        )
        made._require_consistent()
        return made

    def _require_rows_fit(self) -> None:
        """Refuse a file whose columns do not fit its members: try a row in which everything is missing."""
        empty = pd.DataFrame({name: [None] for name in self._table.names}, dtype=object)
        rows = self._rows_of(self._table(empty))
        spreads = rows.spreads
        if self._sampler is not None:
            self._sampler.require_rows(rows.views.standard)
        n_rows = len(self._propagators[COLUMNS]._rows.keys)
        fit = [
            len(self._table.columns) == self.n_features_in_,
            list(getattr(self, "feature_names_in_", self._table.names)) == self._table.names,
            set(spreads) == set(self._propagators),
            all(one.n_features_in_ == spreads[name].shape[1] for name, one in self._propagators.items()),
            all(len(one._rows.keys) == n_rows for one in self._propagators.values()),
            self._sample.dtype.kind == "i" and self._sample.ndim == 1 and len(self._sample) > 0,
            bool(((self._sample >= 0) & (self._sample < n_rows)).all()),
            self._empty.dtype.kind == "i" and self._empty.ndim == 1,
            bool(((self._empty >= 0) & (self._empty < n_rows)).all()),
        ]
        if not all(fit):
            raise ValueError("columns and members contradict each other")

    def _require_consistent(self) -> None:
        """Refuse parts of a file that do not belong together, rather than fail when they are used."""
        n = len(self.classes_)
        width = self._center.shape
        fit = [
            set(self._weights) == {*self._propagators, *self._supervised},
            all(isinstance(w, float) and w >= 0 for w in self._weights.values()),
            abs(sum(self._weights.values()) - 1) < 1e-6,
            self._prior.shape == (n,),
            bool((self._prior > 0).all()),
            0 < self._sharpness < np.inf,
            self._class_weights.shape == (n,),
            bool((self._class_weights > 0).all()),
            self._recall is None or self._recall.shape == (n,),
            not self._factors or set(self._factors) == set(self._weights),
            all(0 < x <= 1 for x in self._factors.values()),
            all(len(one.classes_) == n for one in self._propagators.values()),
            all(one.coef.shape[1:] == width for one in self._supervised.values() if isinstance(one, Linear)),
        ]
        if not all(fit):
            raise ValueError("members contradict each other")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_propagators")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _n_entries(X: Any) -> int:
    """Entries of a table; lists are small."""
    return math.prod(getattr(X, "shape", (0,)))


def _plain_columns(columns: Any) -> Any:
    """``columns`` of the user for JSON."""
    if not isinstance(columns, Mapping):
        return columns
    return [[name.item() if isinstance(name, np.generic) else name, kind] for name, kind in columns.items()]


def _differ(views: Views) -> bool:
    """Whether ranks are another view than standardized columns."""
    return not np.array_equal(views.ranks, views.standard)


def _prefixed(prefix: str, arrays: dict[str, Array]) -> dict[str, Array]:
    return {f"{prefix}.{name}": x for name, x in arrays.items()}


def _number_of_clusters(Z: Array) -> int:
    """Clusters of the rows Z (N, r): fewer, the more dimensions they fill.

    Effective dimensions are (Σ λ)² / Σ λ² of the eigenvalues λ of the covariance.
    """
    centered = Z - Z.mean(0)
    covariance = centered.T @ centered / len(Z)
    squares = float((covariance**2).sum())
    dimensions = float(np.trace(covariance)) ** 2 / squares if squares > 0 else 1.0
    per_cluster = max(ROWS_PER_CLUSTER, dimensions / DIMENSIONS_PER_ROW)
    return int(max(1, min(MOST_CLUSTERS, max(len(Z) / per_cluster, 2), n_distinct(Z))))


def _empty_rows(frame: pd.DataFrame) -> Index:
    """Indices of rows in which every entry is missing."""
    return np.flatnonzero(frame.isna().all(axis=1))


def _sample(n: int, seed: int) -> Index:
    """Indices of some of n rows, ascending."""
    if n <= N_SAMPLE:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, N_SAMPLE, replace=False))


def _warn_of_order(X: Any, y: Any) -> None:
    """Warn of labels with the index of X in another order, which are used by position."""
    if not (isinstance(X, pd.DataFrame) and isinstance(y, pd.Series)) or X.index.equals(y.index):
        return
    if X.index.is_unique and len(X) == len(y) and X.index.isin(y.index).all():
        warnings.warn(
            "y has the index of X in another order, and is used by position; pass y.loc[X.index]",
            stacklevel=4,
        )


def _warn_of_label_column(frame: pd.DataFrame, labels: Labels) -> None:
    """Warn of a column that is the labels themselves."""
    known = np.zeros(len(frame), dtype=bool)
    known[labels.rows] = True
    words = np.asarray(labels.classes[labels.target]).astype(str)
    for name in frame.columns:
        column = frame[name]
        if np.array_equal(column.notna(), known) and np.array_equal(column[known].astype(str), words):
            warnings.warn(
                f"column {name!r} of X holds the labels y and nothing else; leave it out: "
                f"X.drop(columns={name!r})",
                stacklevel=4,
            )


def _warn_of_spelling(classes: Array) -> None:
    """Warn of classes that differ by blanks or case alone."""
    if classes.dtype.kind not in "UO":
        return
    spelled: dict[str, list[str]] = {}
    for name in classes.tolist():
        spelled.setdefault(" ".join(str(name).split()).casefold(), []).append(name)
    alike = [names for names in spelled.values() if len(names) > 1]
    if alike:
        warnings.warn(
            f"the labels {'; '.join(' and '.join(map(repr, names)) for names in alike)} differ by blanks or "
            "case alone, and count as different classes; write them alike if they are the same",
            stacklevel=4,
        )
