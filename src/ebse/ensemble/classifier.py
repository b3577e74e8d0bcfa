"""``RBSEClassifier``: a classifier trained on many sampled representations of each labeled row."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ebse import _archive
from ebse._archive import State, is_ours, plain
from ebse._chains import chain_length, strong_noise
from ebse._estimators import (
    Inputs,
    as_rows,
    dense,
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
    seeded,
    supplied_representation,
    unchanged_on_error,
    warn_of_scale,
    with_names,
)
from ebse._labels import LabeledScore, Labels, read_labels, restored_classes
from ebse._validation import count, option
from ebse.ensemble._inputs import row_blocks
from ebse.evaluation.logistic import LogisticFit, fit_logistic, predict_proba

Array = npt.NDArray[np.floating[Any]]
Index = npt.NDArray[np.intp]

LEAST_LABELS, N_FOLDS = 3, 5
"""Labels per class from which on the mean representation is compared; folds of that cross-validation."""

ROW_VALUES = 2**12
"""Values that a row's draws count for where many rows are predicted: about 1,000 rows per block."""

ACCEPTED: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32, np.uint8]}
"""Input types."""


class Uncertainty(NamedTuple):
    """Uncertainty of predictions, in nats.

    References
    ----------
    N. Houlsby, F. Huszár, Z. Ghahramani, M. Lengyel. Bayesian Active Learning for Classification and
    Preference Learning. 2011.
    """

    entropy: Array
    """H[E_θ p(y | θ)] (N,): entropy of the averaged probabilities."""
    mutual_information: Array
    """H[E_θ p(y | θ)] − E_θ H[p(y | θ)] (N,): the part of the entropy due to models that disagree (BALD)."""


@final
class RBSEClassifier(LabeledScore, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Few-label classifier on stochastic representations of an energy-based ensemble.

    Each labeled row is represented by many models sampled from the ensemble, P(h | v, θ), and an ordinary
    classifier is trained on all of these: data augmentation that is learned without labels. Probabilities are
    averaged over the models of a row.

    Helps with one to three labels per class where Gibbs chains mix slowly (MNIST: +10 points with one label
    per class). Does not help on tables, nor where chains mix fast; "auto" then uses the mean representation.

    Parameters
    ----------
    representation : estimator
        An :class:`ebse.RBSE`, which is fitted to all rows given to ``fit``, or a fitted one in a
        ``FrozenEstimator``, which is used as it is. Any other transformer has one representation per row.
    classifier : estimator, default=None
        Trained on the draws; None is multinomial logistic regression without penalty.
    n_draws : int, default=10
        Models sampled per row. More give smoother predictions; time grows in proportion. 5 to 50.
    n_sweeps : int or "auto", default="auto"
        Gibbs sweeps of the chain that starts at the row, after which a model is sampled. More sweeps vary the
        models more, until they forget the row. 0 is the paper's posterior sample. "auto" takes the longest of
        20 to 50 sweeps after which chains are still correlated with their start (>= 0.6), without looking at
        labels; where 20 are too many it uses the mean representation instead. From three labels per class on,
        "auto" also trains a classifier on the mean representation, and averages both with equal weights where
        cross-validation finds this no worse.
    read : {"input", "state"}, default="input"
        See :meth:`ebse.RBSE.sample_transform`.
    draw_noise : float, "auto" or None, default="auto"
        Noise of the sampled models, with the same distribution of the data: ``sigma`` of a Gaussian law,
        ``keep_prob`` of any other. "auto" is strong noise, keep_prob 0.01 or sigma 0.5 (the learned noise for
        real values), because weak noise makes all models alike. None keeps the learned noise.
    aggregate : {"mean_proba", "vote"}, default="mean_proba"
        "mean_proba" averages the probabilities of the draws, "vote" counts their predictions.
    unlabeled_label : default=None
        A value of y that marks unlabeled rows, such as −1. Missing entries (None, NaN) always do.
    random_state : int, RandomState, Generator or None, default=None
        An int makes results reproducible.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes; not there without labels.
    representation_ : estimator
        The fitted representation.
    classifier_ : DrawClassifier
        The trained classifier: ``classifier_.draw_classifier_`` on draws, ``classifier_.mean_classifier_`` on
        the mean representation or None.
    n_sweeps_ : int
        Length of the chains.
    source_ : {"posterior", "mean"}
        "mean" where no models are sampled.
    transduction_ : ndarray of shape (n_rows,)
        Labels of all rows of ``fit``, X first, then X_unlabeled: the given label, or the predicted one.
        Computed on every access, and not stored in files.
    label_distributions_ : ndarray of shape (n_rows, n_classes)
        Their class probabilities.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where X had string column names.

    References
    ----------
    M. Al-Shedivat, E. Neftci, G. Cauwenberghs. Learning Non-deterministic Representations with Energy-based
    Ensembles. ICLR workshop, 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from ebse import RBSE
    >>> X, y = load_digits(return_X_y=True)
    >>> rbse = RBSE(n_components=30, n_epochs=5, random_state=0)
    >>> few = RBSEClassifier(rbse, random_state=0).fit(X[:20] / 16, y[:20], X_unlabeled=X[20:] / 16)
    >>> few.predict(X[:3] / 16).shape
    (3,)
    """

    _scale: str = ""

    def __init__(
        self,
        representation: Any,
        classifier: Any = None,
        *,
        n_draws: int = 10,
        n_sweeps: int | str = "auto",
        read: str = "input",
        draw_noise: float | str | None = "auto",
        aggregate: str = "mean_proba",
        unlabeled_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.representation = representation
        self.classifier = classifier
        self.n_draws = n_draws
        self.n_sweeps = n_sweeps
        self.read = read
        self.draw_noise = draw_noise
        self.aggregate = aggregate
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, X_unlabeled: Any = None) -> Self:
        """Fit the representation to all rows, and the classifier to the labeled ones.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows.
        y : array-like of shape (n_rows,), default=None
            Their labels; missing entries (None, NaN) and ``unlabeled_label`` are unlabeled rows. None fits
            the representation alone: ``suggest`` then proposes rows to label, and ``predict`` raises
            NotFittedError.
        X_unlabeled : array-like of shape (n_more, n_features), default=None
            Further rows, without labels.
        """
        with unchanged_on_error(self):
            self._require_options()
            X = validate_data(self, as_rows(X), **ACCEPTED)
            require_moderate(X)
            X_unlabeled = or_none(X_unlabeled)
            labels = read_labels(
                y,
                X.shape[0],
                unlabeled_label=self.unlabeled_label,
                more_unlabeled=X_unlabeled is not None,
            )
            self._scale = scale_of(X)
            rows = X if X_unlabeled is None else _stacked(X, self._more(X_unlabeled))
            self._prepare(rows)
            self._rows, self._labels = rows, labels
            self._labeled_keys = row_keys(X[np.empty(0, dtype=np.intp) if labels is None else labels.rows])
            for name in ("classes_", "classifier_"):
                if hasattr(self, name):
                    delattr(self, name)
            if labels is not None:
                self.classes_ = labels.classes
                self.classifier_ = self._new().fit(self._represented(X[labels.rows]), labels.target)
        return self

    def representations(self, X: Any) -> Array:
        """Sampled representations of each row, as the classifier sees them: (n_rows, n_draws, K)."""
        check_is_fitted(self)
        inner = self.representation_
        if self.source_ == "mean":
            return self._mean(X)[:, np.newaxis]
        draws: Array = inner.sample_transform(
            with_names(X, getattr(inner, "feature_names_in_", None)),
            self.n_draws,
            n_sweeps=self.n_sweeps_,
            read=self.read,
            random_state=self._seed,
            **self._noise(),
        )
        return draws

    def represented(self, X: Any) -> tuple[Any, Any]:
        """A classifier, and the rows X in the form that it takes, for many fits to parts of the same rows.

        :func:`ebse.evaluation.few_shot` calls this once, and fits clones of the classifier to the rows of
        each episode. Where the representation is frozen, and does not depend on the rows of ``fit``, rows are
        represented here once for all; elsewhere the result is the estimator itself and X.
        """
        if not isinstance(self.representation, FrozenEstimator):
            return self, X
        # Without chains the length of chains would depend on the rows of the episode.
        if self.n_sweeps == "auto" and getattr(self.representation.estimator, "chains_", None) is None:
            return self, X
        ready: RBSEClassifier = clone(self)
        ready._require_options()
        ready._prepare(as_rows(X))
        return ready._new(), ready._represented(X)

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities (n_rows, n_classes), averaged over the draws of each row."""
        probabilities: Array = self._draw_probabilities(X).mean(1)
        return probabilities

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of each row.

        A labeled row may be predicted as another class than its label; ``transduction_`` keeps the label.
        """
        probabilities = self.predict_proba(X)
        found: npt.NDArray[Any] = self.classes_[probabilities.argmax(1)]
        return found

    def uncertainty(self, X: Any) -> Uncertainty:
        """Entropy of each prediction, and its part due to models that disagree (mutual information, BALD).

        The default classifier has no penalty and is overconfident on few labels: use the values to rank rows,
        not as probabilities. Where no models are sampled (``source_`` is "mean") the mutual information is 0;
        ``n_sweeps=0`` samples models.
        """
        return _uncertainty(self._draw_probabilities(X))

    def suggest(self, n: int = 1, *, X: Any = None, exclude: Iterable[int] = ()) -> Index:
        """Rows to label next (active learning): indices of at most n rows, the most useful first.

        With labels, the rows with the largest mutual information between label and model (BALD), or the
        largest entropy where no models are sampled. Without labels (``y=None``), rows that cover the data:
        the one nearest the mean, then always the row farthest from all chosen and excluded ones, in the mean
        representation (greedy k-center).

        Parameters
        ----------
        n : int, default=1
            Number of rows. Uncertain rows are often alike: label a few at a time, and fit again.
        X : array-like of shape (n_rows, n_features), default=None
            Rows to choose from; by default those of ``fit`` (X first, then X_unlabeled). Rows equal to a
            labeled one are not suggested.
        exclude : iterable of int, default=()
            Indices of rows that must not be suggested.

        References
        ----------
        N. Houlsby, F. Huszár, Z. Ghahramani, M. Lengyel. Bayesian Active Learning for Classification and
        Preference Learning. 2011.

        T. F. Gonzalez. Clustering to Minimize the Maximum Intercluster Distance. 1985.

        O. Sener, S. Savarese. Active Learning for Convolutional Neural Networks: A Core-Set Approach. ICLR,
        2018.
        """
        check_is_fitted(self)
        require_number(n)
        rows = self._fit_rows() if X is None else self._checked(X)
        allowed = ~np.isin(row_keys(rows), self._labeled_keys)
        allowed[row_indices(exclude, rows.shape[0])] = False
        if not hasattr(self, "classifier_"):
            return _cover(np.concatenate([self._mean(rows[part]) for part in row_blocks(rows)]), allowed, n)
        entropy, mutual_information = _uncertainty(self._probabilities(rows))
        # Where no models are sampled all mutual informations are 0, and the entropy decides.
        order = np.lexsort((-entropy, -mutual_information.round(12)))
        found: Index = order[allowed[order]][:n]
        return found

    @property
    def label_distributions_(self) -> Array:
        """Class probabilities of the rows of ``fit``; 1 for the label of a labeled row."""
        rows, labels = self._fit_rows(), self._require_labels()
        p: Array = self._probabilities(rows).mean(1)
        p[labels.rows] = np.eye(len(labels.classes))[labels.target]
        return p

    @property
    def transduction_(self) -> npt.NDArray[Any]:
        """Labels of the rows of ``fit``: the given one, or the predicted one."""
        p = self.label_distributions_
        found: npt.NDArray[Any] = self.classes_[p.argmax(1)]
        return found

    def save(self, path: str | Path, *, representation: str = "include") -> None:
        """Write the fitted classifier to one safetensors file, atomically; loading it executes no code.

        The rows of ``fit`` are not stored, but hashes of the labeled ones are. A ``classifier`` other than
        the default raises TypeError.

        Parameters
        ----------
        path : str or Path
            The file.
        representation : {"include", "omit"}, default="include"
            "omit" leaves the representation out, and ``load(path, representation=fitted)`` takes it back. For
            one that is not of this package "include" raises TypeError.
        """
        check_is_fitted(self)
        option("representation", representation, ("include", "omit"))
        _archive.write(Path(path), type(self).__name__, *self._state(omit=representation == "omit"))

    @classmethod
    def load(cls, path: str | Path, *, representation: Any = None) -> Self:
        """The classifier of a file written by :meth:`save`, with its representation frozen.

        Parameters
        ----------
        path : str or Path
            The file.
        representation : fitted transformer, default=None
            The representation, where the file was saved without it.
        """
        state = _archive.read(Path(path), cls.__name__)
        with _archive.consistent(Path(path)):
            inputs = Inputs.from_facts(state.facts)
            width = state.arrays["draws.weights"].shape[1] if state.facts["classes"] is not None else None
        supplied = supplied_representation(state, "representation", representation, inputs, width)
        with _archive.consistent(Path(path)):
            return cls._from_state(state, supplied)

    def _state(self, *, omit: bool = False) -> State:
        if self.classifier is not None:
            raise TypeError(
                f"classifier must be None, the default logistic regression, to be saved, got "
                f"{type(self.classifier).__name__}; save the representation, and fit the classifier again"
            )
        held = representation_state("representation", self.representation_, omit=omit)
        parameters = self.get_params(deep=False)
        del parameters["representation"], parameters["classifier"]
        facts: dict[str, Any] = {
            "parameters": plain(parameters),
            "n_features": self.n_features_in_,
            "feature_names": list(map(str, getattr(self, "feature_names_in_", []))),
            "seed": self._seed,
            "n_sweeps": self.n_sweeps_,
            "source": self.source_,
            "scale": self._scale,
            "classes": None,
        }
        arrays: dict[str, Any] = {"labeled_keys": self._labeled_keys}
        if hasattr(self, "classifier_"):
            facts["classes"] = [self.classes_.dtype.str, self.classes_.tolist()]
            arrays |= self.classifier_.arrays()
        return State({**facts, **held.facts}, {**arrays, **held.arrays})

    @classmethod
    def _from_state(cls, state: State, supplied: Any = None) -> Self:
        facts, arrays = state
        representation = FrozenEstimator(restored_representation(state, "representation", supplied))
        made = cls(representation, **facts["parameters"])
        made.representation_ = representation.estimator
        made._require_options()
        Inputs.from_facts(facts).apply_to(made)
        if getattr(made.representation_, "n_features_in_", made.n_features_in_) != made.n_features_in_:
            raise ValueError(
                f"representation must be fitted to rows of {made.n_features_in_} features, got one fitted to "
                f"{made.representation_.n_features_in_}"
            )
        made._seed, made._labeled_keys = count("seed", facts["seed"], least=0), arrays["labeled_keys"]
        made.n_sweeps_ = count("n_sweeps", facts["n_sweeps"], least=0)
        made.source_ = option("source", facts["source"], ("posterior", "mean"))
        made._rows, made._labels = None, None
        if facts["classes"] is not None:
            dtype, values = facts["classes"]
            made.classes_ = restored_classes(dtype, values)
            made.classifier_ = made._new().restored(arrays, len(made.classes_))
        return made

    def _prepare(self, rows: Any) -> None:
        """Everything that needs no label: the representation, and the length of chains."""
        self._seed = seed_of(self.random_state)
        names = getattr(self, "feature_names_in_", None)
        rows = with_names(rows, names)
        self.representation_ = learned(self.representation, rows, self._seed, names)
        self.n_sweeps_ = self._length(rows)
        samples = hasattr(self.representation_, "sample_transform")
        self.source_ = "posterior" if samples and (self.n_sweeps != "auto" or self.n_sweeps_) else "mean"

    def _length(self, rows: Any) -> int:
        if self.n_sweeps != "auto":
            return count("n_sweeps", self.n_sweeps, least=0)  # type: ignore[arg-type]
        if not hasattr(self.representation_, "sample_transform"):
            return 0
        return chain_length(self.representation_, rows)

    def _represented(self, X: Any) -> Array:
        """Draws of each row, and after these its mean representation where the classifier uses both."""
        draws = self.representations(X)
        return np.concatenate([draws, self._mean(X)[:, np.newaxis]], axis=1) if self._uses_mean() else draws

    def _uses_mean(self) -> bool:
        return self.n_sweeps == "auto" and self.source_ == "posterior"

    def _mean(self, X: Any) -> Array:
        inner = self.representation_
        return dense(inner.transform(with_names(X, getattr(inner, "feature_names_in_", None))))

    def _new(self) -> "DrawClassifier":
        chosen = UnpenalizedLogistic() if self.classifier is None else seeded(self.classifier, self._seed)
        return DrawClassifier(
            chosen, votes=self.aggregate == "vote", with_mean=self._uses_mean(), seed=self._seed
        )

    def _noise(self) -> dict[str, float]:
        """The noise of sampled models, as ``sample_transform`` takes it."""
        if self.draw_noise is None:
            return {}
        if self.draw_noise == "auto":
            return strong_noise(self.representation_)
        name = "sigma" if hasattr(self.representation_, "sigma_") else "keep_prob"
        return {name: self.draw_noise}  # type: ignore[dict-item]

    def _draw_probabilities(self, X: Any) -> Array:
        """Class probabilities by every draw (n_rows, n_draws, n_classes)."""
        check_is_fitted(self)
        self._require_classifier()
        return self._probabilities(self._checked(X))

    def _probabilities(self, rows: Any) -> Array:
        """The same of rows that are validated."""
        blocks = row_blocks(rows, ROW_VALUES)
        return np.concatenate(
            [self.classifier_.probabilities(self._represented(rows[part])) for part in blocks]
        )

    def _require_classifier(self) -> None:
        if not hasattr(self, "classifier_"):
            raise NotFittedError(
                "this RBSEClassifier was fitted without labels (y=None) and cannot predict; call fit with "
                "labels"
            )

    def _require_labels(self) -> Labels:
        self._require_classifier()
        assert self._labels is not None
        return self._labels

    def _fit_rows(self) -> Any:
        check_is_fitted(self)
        if self._rows is None:
            raise NotFittedError(
                "the rows of fit are not stored in files; call predict_proba or suggest with X, or fit again"
            )
        return self._rows

    def _require_options(self) -> None:
        count("n_draws", self.n_draws)
        option("read", self.read, ("input", "state"))
        option("aggregate", self.aggregate, ("mean_proba", "vote"))
        for name in ("n_sweeps", "draw_noise"):
            value = getattr(self, name)
            if isinstance(value, str) and value != "auto":
                raise ValueError(f"{name} must be 'auto' or a number, got {value!r}; pass one of these")
        require_estimator("representation", self.representation, "transform", "RBSE()")
        if self.classifier is not None:
            require_estimator("classifier", self.classifier, "fit", "LogisticRegression()")
        if self.aggregate == "mean_proba" and not hasattr(
            UnpenalizedLogistic if self.classifier is None else self.classifier, "predict_proba"
        ):
            raise TypeError(
                f"classifier must have predict_proba for aggregate='mean_proba', got "
                f"{type(self.classifier).__name__}; use aggregate='vote'"
            )

    def _more(self, X_unlabeled: Any) -> Any:
        rows = as_rows(X_unlabeled, "X_unlabeled")
        n = np.shape(rows)[1] if len(np.shape(rows)) == 2 else self.n_features_in_
        if n != self.n_features_in_:
            raise ValueError(
                f"X_unlabeled must have the {self.n_features_in_} features of X, got {n}; pass rows of the "
                "same columns"
            )
        rows = validate_data(self, rows, reset=False, **ACCEPTED)
        require_moderate(rows, "X_unlabeled")
        warn_of_scale(self._scale, rows, "X_unlabeled", "the rows of X")
        return rows

    def _checked(self, X: Any) -> Any:
        rows = validate_data(self, as_rows(X), reset=False, **ACCEPTED)
        require_moderate(rows)
        if not is_ours(self.representation_):
            # Our own representations warn themselves.
            warn_of_scale(self._scale, rows)
        return rows

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "representation_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = False
        # A representation learned from a few dozen rows of noise is poor, and so is a classifier on it.
        tags.classifier_tags.poor_score = True
        return tags


@final
class UnpenalizedLogistic(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Multinomial logistic regression without penalty, with scikit-learn's stopping rule."""

    def fit(self, X: Array, y: npt.NDArray[Any]) -> Self:
        """Minimize the cross-entropy of the rows X (N, K)."""
        self.classes_, target = np.unique(y, return_inverse=True)
        self.fit_ = fit_logistic(X[np.newaxis], target[np.newaxis], n_classes=len(self.classes_))
        return self

    def predict_proba(self, X: Array) -> Array:
        """Class probabilities (N, n_classes)."""
        check_is_fitted(self)
        found: Array = predict_proba(self.fit_, X[np.newaxis])[0]
        return found

    def predict(self, X: Array) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        found: npt.NDArray[Any] = self.classes_[self.predict_proba(X).argmax(1)]
        return found


@final
class DrawClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier on several representations of each row: p = w p(draw) + (1 − w) p(mean).

    Rows are arrays (N, n_draws, K); ``with_mean`` says that the last of the n_draws is the mean
    representation.

    Parameters
    ----------
    classifier : estimator
        Trained on the draws, and a copy on the mean representations.
    votes : bool, default=False
        Whether p(draw) is a one-hot prediction instead of probabilities.
    with_mean : bool, default=False
        Whether rows have a mean representation.
    seed : int, default=0
        Of the cross-validation that chooses w, 1 or 1/2, by accuracy. Draws are noise, which helps most where
        labels are fewest: with fewer than three labels in a class w is 1.
    """

    def __init__(
        self, classifier: Any, *, votes: bool = False, with_mean: bool = False, seed: int = 0
    ) -> None:
        self.classifier = classifier
        self.votes = votes
        self.with_mean = with_mean
        self.seed = seed

    def fit(self, Z: Array, y: npt.NDArray[Any]) -> Self:
        """Train on rows Z (N, n_draws, K) with labels y (N,)."""
        self.classes_, target = np.unique(y, return_inverse=True)
        draws, mean = self._parts(Z)
        least = int(np.bincount(target).min())
        self.draw_weight_ = 1.0
        if mean is not None and least >= LEAST_LABELS:
            self.draw_weight_ = self._chosen_weight(draws, mean, target, least)
        self.draw_classifier_ = self._trained(draws, target)
        self.mean_classifier_ = (
            self._trained(mean, target) if mean is not None and self.draw_weight_ < 1 else None
        )
        return self

    def restored(self, arrays: dict[str, Any], n_classes: int) -> Self:
        """The classifier with the weights and intercepts that :meth:`arrays` gave."""
        self.classes_ = np.arange(n_classes)
        self.draw_classifier_ = _logistic(arrays, "draws", n_classes)
        has_mean = "mean.weights" in arrays
        self.mean_classifier_ = _logistic(arrays, "mean", n_classes) if has_mean else None
        self.draw_weight_ = 0.5 if has_mean else 1.0
        return self

    def arrays(self) -> dict[str, Any]:
        """Weights and intercepts of the logistic classifiers, by name, for a file."""
        found = {}
        for name, held in (("draws", self.draw_classifier_), ("mean", self.mean_classifier_)):
            if held is not None:
                found[f"{name}.weights"], found[f"{name}.intercepts"] = held.fit_[:2]
        return found

    def probabilities(self, Z: Array) -> Array:
        """p of every draw (N, n_draws, n_classes)."""
        check_is_fitted(self)
        draws, mean = self._parts(Z)
        p = self._predicted(self.draw_classifier_, draws)
        if self.mean_classifier_ is None or mean is None:
            return p
        return self.draw_weight_ * p + (1 - self.draw_weight_) * self._predicted(self.mean_classifier_, mean)

    def predict(self, Z: Array) -> npt.NDArray[Any]:
        """The most probable class of each row, averaged over draws."""
        found: npt.NDArray[Any] = self.classes_[self.probabilities(Z).mean(1).argmax(1)]
        return found

    def _parts(self, Z: Array) -> tuple[Array, Array | None]:
        return (Z[:, :-1], Z[:, -1:]) if self.with_mean else (Z, None)

    def _chosen_weight(self, draws: Array, mean: Array, target: Index, least: int) -> float:
        """w, by cross-validation; one half where both are equal."""
        right = {0.5: 0, 1.0: 0}
        folds = StratifiedKFold(min(N_FOLDS, least), shuffle=True, random_state=self.seed)
        for train, test in folds.split(target, target):
            p, q = (
                self._predicted(self._trained(x[train], target[train]), x[test]).mean(1)
                for x in (draws, mean)
            )
            for w in right:
                right[w] += int(((w * p + (1 - w) * q).argmax(1) == target[test]).sum())
        return max(right, key=lambda w: (right[w], -w))

    def _trained(self, draws: Array, target: Index) -> Any:
        return clone(self.classifier).fit(
            draws.reshape(-1, draws.shape[2]), np.repeat(target, draws.shape[1])
        )

    def _predicted(self, classifier: Any, draws: Array) -> Array:
        rows, n_classes = draws.reshape(-1, draws.shape[2]), len(self.classes_)
        p = np.eye(n_classes)[classifier.predict(rows)] if self.votes else classifier.predict_proba(rows)
        found: Array = p.reshape(*draws.shape[:2], n_classes)
        return found


def entropy_of(p: Array) -> Array:
    """−Σ p log p over the classes, the last axis, in nats."""
    found: Array = -(p * np.log(np.clip(p, 1e-300, None))).sum(-1)
    return found


def _uncertainty(p: Array) -> Uncertainty:
    """Of probabilities (N, n_draws, n_classes)."""
    entropy = entropy_of(p.mean(1))
    return Uncertainty(entropy, entropy - entropy_of(p).mean(1))


def _cover(Z: Array, allowed: npt.NDArray[np.bool_], n: int) -> Index:
    """Greedy k-center: at most n allowed rows of Z (N, K), each the farthest from all other centers."""
    left, centers = allowed.copy(), list(np.flatnonzero(~allowed))
    n_before = len(centers)
    # Without centers the first row is the most typical one.
    distance = _distances(Z, centers) if centers else -np.linalg.norm(Z - Z.mean(0), axis=1)
    while len(centers) < n_before + n and left.any():
        candidates = np.flatnonzero(left)
        row = candidates[distance[candidates].argmax()]
        left[row] = False
        distance = np.minimum(distance, _distances(Z, [row])) if centers else _distances(Z, [row])
        centers.append(row)
    return np.array(centers[n_before:], dtype=np.intp)


def _distances(Z: Array, centers: list[Any]) -> Array:
    """Distance of each row of Z to the nearest of its rows ``centers``."""
    found: Array = pairwise_distances_argmin_min(Z, Z[centers])[1]
    return found


def _logistic(arrays: dict[str, Any], name: str, n_classes: int) -> UnpenalizedLogistic:
    weights, intercepts = (np.array(arrays[f"{name}.{part}"]) for part in ("weights", "intercepts"))
    if weights.ndim != 3 or weights.shape[::2] != (1, n_classes) or intercepts.shape != (1, n_classes):
        raise ValueError(
            f"{name} must have weights (1, K, {n_classes}) and intercepts (1, {n_classes}), got "
            f"{weights.shape} and {intercepts.shape}"
        )
    made = UnpenalizedLogistic()
    made.classes_ = np.arange(n_classes)
    made.fit_ = LogisticFit(weights, intercepts, np.zeros(1, dtype=np.int64), np.ones(1, dtype=bool))
    return made


def _stacked(a: Any, b: Any) -> Any:
    return (
        sparse.vstack([a, b], format="csr") if sparse.issparse(a) or sparse.issparse(b) else np.vstack([a, b])
    )
