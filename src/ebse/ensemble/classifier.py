"""``RBSEClassifier``: an ordinary classifier on many representations of each labeled example."""

import warnings
from typing import Any, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ebse._estimators import as_rows, learned, require_estimator, seed_of, seeded, with_names
from ebse._validation import count, option
from ebse.ensemble._chain_length import how_far
from ebse.ensemble._inputs import row_blocks
from ebse.ensemble._on_draws import OnDraws, SharedDraws, UnpenalizedLogistic

Array = npt.NDArray[np.floating[Any]]

PRESENCE, SPREAD = 0.01, 0.5
"""Noise along the gauge: the presence of Bernoulli connections, the standard deviation of Gaussian ones."""


ROW = 2**12
"""Numbers that a row's draws count for where many rows are predicted: about a thousand at a time."""

ACCEPTED: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32, np.uint8]}
"""What rows may be."""


class Uncertainty(NamedTuple):
    """How unsure a prediction is (N,), in nats.

    ``entropy`` is that of the averaged probabilities; ``mutual_information`` the part of it that comes from
    models which disagree, the rest is in every one of them.
    """

    entropy: Array
    mutual_information: Array


@final
class RBSEClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that is trained on many drawn representations of each labeled example.

    Parameters
    ----------
    representation
        An :class:`ebse.RBSE`, which learns from all rows given to ``fit``, or a fitted one in a
        ``FrozenEstimator``, which is used as it is. A transformer that draws nothing counts as one draw.
    classifier
        What is trained on the draws, by default logistic regression without regularization.
    n_draws
        Models drawn for each row.
    n_sweeps
        How far the ensemble walks before a model is drawn. "auto" finds out without labels how far it
        can walk before it forgets where it came from; where that is nowhere, draws would only blur the
        mean representation, and that is used instead. With three labels and more in every class, "auto"
        also trains on the mean and lets it have half the say where that is no worse by
        cross-validation. 0 is the paper's draw.
    read
        "input" or "state", see :meth:`ebse.RBSE.sample_transform`.
    noise
        Of the models, along the gauge: "auto" is a presence of 0.01 (standard deviation 0.5 under a Gaussian
        law, the learned one for real values), None keeps the noise that was learned.
    aggregate
        "mean_proba" averages probabilities over draws, "vote" counts draws.
    unlabeled_label
        The value in y that says that a row has no label: −1 for scikit-learn's convention, ``np.nan`` for
        missing values of any kind. None: all rows have labels.
    random_state
        A seed, for results that repeat.

    Attributes
    ----------
    classes_, representation_
        The labels, and the representation as fitted.
    classifier_
        What was trained: ``classifier_.on_draws`` on draws, ``classifier_.on_mean`` on means or None.
    n_sweeps_, source_
        How far it walks; "posterior", or "mean" where nothing is drawn.

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

    def __init__(
        self,
        representation: Any,
        classifier: Any = None,
        *,
        n_draws: int = 10,
        n_sweeps: int | str = "auto",
        read: str = "input",
        noise: float | str | None = "auto",
        aggregate: str = "mean_proba",
        unlabeled_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.representation = representation
        self.classifier = classifier
        self.n_draws = n_draws
        self.n_sweeps = n_sweeps
        self.read = read
        self.noise = noise
        self.aggregate = aggregate
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, X_unlabeled: Any = None) -> Self:
        """Learn from labeled rows X (N, D) with y, and from X_unlabeled (M, D) without."""
        self._require_options()
        blank = None if y is None else pd.isna(pd.Series(np.asarray(y, dtype=object).ravel())).to_numpy()
        if blank is not None and blank.any():
            y = self._filled(y, blank)
        X, y = validate_data(self, as_rows(X), y, **ACCEPTED)
        check_classification_targets(y)
        labeled = np.ones(len(y), bool) if self.unlabeled_label is None else y != self.unlabeled_label
        if blank is not None and blank.any():
            labeled = ~blank
        if labeled.all() and self.unlabeled_label is not None:
            warnings.warn(
                f"unlabeled_label is {self.unlabeled_label!r}, which is no value of y: all rows count as "
                "labeled; pass None where that is so",
                stacklevel=2,
            )
        if not labeled.any():
            raise ValueError(
                f"y must have labels, got {self.unlabeled_label!r} (unlabeled_label) for every row; label at "
                "least one row of each class"
            )
        self._prepare(X if X_unlabeled is None else _stacked(X, self._checked(X_unlabeled)))
        self.classes_, target = np.unique(y[labeled], return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must have at least 2 classes, got one class, {self.classes_[0]}; label rows of others"
            )
        rows = X[labeled]
        self.classifier_ = self._new().fit(self.representations(rows), self._mean(rows), target)
        return self

    def representations(self, X: Any) -> Array:
        """Draws of each row (N, n_draws, K), as the classifier sees them."""
        inner = self.representation_
        X = with_names(X, getattr(inner, "feature_names_in_", None))
        if not hasattr(inner, "sample_transform"):
            one: Array = np.asarray(inner.transform(X))[:, np.newaxis]
            return one
        draws: Array = inner.sample_transform(
            X,
            self.n_draws if self.source_ == "posterior" else 1,
            source=self.source_,
            n_sweeps=self.n_sweeps_,
            read=self.read,
            noise=self._noise(),
            random_state=self._seed,
        )
        return draws

    def shared(self, X: Any) -> SharedDraws | None:
        """Draws of the rows that episodes share, where the representation is frozen and needs no label."""
        if not isinstance(self.representation, FrozenEstimator):
            return None
        # Without chains the length of the walk would depend on the rows of the episode.
        if self.n_sweeps == "auto" and getattr(self.representation.estimator, "chains_", None) is None:
            return None
        ready: RBSEClassifier = clone(self)
        ready._require_options()
        ready._prepare(as_rows(X))
        return SharedDraws(ready.representations(X), ready._mean(X), ready._new)

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes (N, n_classes), over the draws of each row."""
        probabilities: Array = self._of_draws(X).mean(1)
        return probabilities

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        probabilities = self.predict_proba(X)
        found: npt.NDArray[Any] = self.classes_[probabilities.argmax(1)]
        return found

    def uncertainty(self, X: Any) -> Uncertainty:
        """Entropy of each prediction, and its part that the drawn models disagree on.

        The default classifier has no penalty and is far too sure of itself on few labels: use the figures to
        rank rows, not as probabilities. Where nothing is drawn (``source_`` is "mean") models cannot
        disagree; ``n_sweeps=0`` draws.
        """
        p = self._of_draws(X)
        entropy = entropy_of(p.mean(1))
        return Uncertainty(entropy, entropy - entropy_of(p).mean(1))

    def _filled(self, y: Any, blank: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
        """y with any label in place of those that are missing, where missing labels were announced."""
        if self.unlabeled_label is None or not pd.isna(self.unlabeled_label):
            raise ValueError(
                f"y must have no missing labels (NaN or None), got {blank.sum()}; pass "
                "unlabeled_label=np.nan, or the rows without labels as X_unlabeled"
            )
        if blank.all():
            raise ValueError("y must have labels, got none; label at least one row of each class")
        labels = np.asarray(y, dtype=object).ravel()
        return np.array(np.where(blank, labels[~blank][0], labels).tolist())

    def _prepare(self, rows: Any) -> None:
        """Everything that needs no label: the representation, and how far it walks."""
        self._seed = seed_of(self.random_state)
        rows = with_names(rows, getattr(self, "feature_names_in_", None))
        self.representation_ = learned(self.representation, rows, self._seed)
        self.n_sweeps_ = self._how_far(rows)
        self.source_ = "mean" if self.n_sweeps == "auto" and self.n_sweeps_ == 0 else "posterior"

    def _of_draws(self, X: Any) -> Array:
        """Probabilities of the classes for every draw (N, n_draws, n_classes)."""
        check_is_fitted(self)
        X = self._checked(X)
        return np.concatenate(
            [
                self.classifier_.probabilities(self.representations(X[rows]), self._mean(X[rows]))
                for rows in row_blocks(X, ROW)
            ]
        )

    def _mean(self, X: Any) -> Array | None:
        """The mean representation, where it is asked, too: only where the walk is not the caller's choice."""
        if self.n_sweeps != "auto" or self.source_ == "mean":
            return None
        inner = self.representation_
        mean: Array = np.asarray(inner.transform(with_names(X, getattr(inner, "feature_names_in_", None))))
        return mean

    def _new(self) -> OnDraws:
        chosen = UnpenalizedLogistic() if self.classifier is None else seeded(self.classifier, self._seed)
        return OnDraws(chosen, votes=self.aggregate == "vote", seed=self._seed)

    def _how_far(self, rows: Any) -> int:
        if self.n_sweeps != "auto":
            return count("n_sweeps", self.n_sweeps, least=0)  # type: ignore[arg-type]
        if not hasattr(self.representation_, "sample_transform"):
            return 0
        return how_far(self.representation_, rows)

    def _noise(self) -> float | None:
        if self.noise == "auto":
            if getattr(self.representation_, "visible", "binary") == "real":
                return None
            return SPREAD if hasattr(self.representation_, "scale_") else PRESENCE
        return self.noise  # type: ignore[return-value]

    def _require_options(self) -> None:
        count("n_draws", self.n_draws)
        option("read", self.read, ("input", "state"))
        option("aggregate", self.aggregate, ("mean_proba", "vote"))
        for name in ("n_sweeps", "noise"):
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

    def _checked(self, X: Any) -> Any:
        return validate_data(self, as_rows(X), reset=False, **ACCEPTED)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classifier_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # A representation learned from a few dozen rows of noise is poor, and so is what is built on it.
        tags.classifier_tags.poor_score = True
        return tags


def _stacked(a: Any, b: Any) -> Any:
    return (
        sparse.vstack([a, b], format="csr") if sparse.issparse(a) or sparse.issparse(b) else np.vstack([a, b])
    )


def entropy_of(p: Array) -> Array:
    """−Σ p log p over the classes, the last axis, in nats."""
    found: Array = -(p * np.log(np.clip(p, 1e-300, None))).sum(-1)
    return found
