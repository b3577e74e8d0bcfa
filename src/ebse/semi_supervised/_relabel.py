"""``Relabeled``: a fitted classifier whose ``fit`` changes the labels only, for few-shot evaluation."""

import copy
import warnings
from typing import Any, Self, final

import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from ebse._labels import read_labels
from ebse.semi_supervised.few_label import FewLabelClassifier
from ebse.semi_supervised.spreading import SpreadingClassifier

Array = npt.NDArray[Any]

OF_LABELS = (
    "distinct rows with several labels",
    "[0-9]+ % of the rows are predicted as",
    "the members '",
    "no label is .* any more",
)
"""Warnings about labels: those of an evaluation are drawn at random, and a warning in every episode would
help nobody."""


@final
class Relabeled(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted classifier of ours whose ``fit`` changes the labels and nothing else.

    :func:`ebse.evaluation.few_shot` fits a classifier in every episode; what is learned without labels, such
    as the clusters of the unlabeled rows, is the same in all of them.

    Parameters
    ----------
    classifier : FrozenEstimator
        The fitted :class:`ebse.SpreadingClassifier` or :class:`ebse.FewLabelClassifier`, frozen.
    class_prior : default None
        As in the classifier.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from ebse.evaluation import few_shot
    >>> X, y = load_digits(return_X_y=True)
    >>> spreading = SpreadingClassifier(n_clusterings=2, random_state=0).fit(X[:1000])
    >>> methods = {"pixels": "pixels", "spreading": Relabeled(FrozenEstimator(spreading))}
    >>> found = few_shot(methods, X[1000:], y[1000:], n_shots=1, n_queries=30, n_episodes=5, random_state=0)
    >>> pixels, spreading = found.summary()["mean"]
    >>> spreading > pixels
    True
    """

    def __init__(self, classifier: Any, *, class_prior: Any = None) -> None:
        self.classifier = classifier
        self.class_prior = class_prior

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from the labels y (N,) of the rows X (N, D)."""
        fitted = self.classifier.estimator if isinstance(self.classifier, FrozenEstimator) else None
        if not isinstance(fitted, (SpreadingClassifier, FewLabelClassifier)):
            raise TypeError(
                "classifier must be a fitted SpreadingClassifier or FewLabelClassifier in a FrozenEstimator, "
                f"got {self.classifier!r}; fit one, and pass Relabeled(FrozenEstimator(it))"
            )
        check_is_fitted(fitted)
        # A shallow copy: relabel replaces arrays and does not change them.
        made = copy.copy(fitted).set_params(class_prior=self.class_prior)
        with warnings.catch_warnings():
            for text in OF_LABELS:
                warnings.filterwarnings("ignore", text, UserWarning)
            if isinstance(made, FewLabelClassifier):
                labels = read_labels(y, len(y), unlabeled_label=made.unlabeled_label, more_unlabeled=True)
                assert labels is not None
                rows = made._rows_in(self._named(X), new=False).take(labels.rows)
                self.classifier_: Any = made._with_labels(rows, labels)
            else:
                self.classifier_ = made.relabel(self._named(X), y)
        self.classes_ = self.classifier_.classes_
        return self

    def predict(self, X: Any) -> Array:
        """The most probable class of each row of X (N, D)."""
        check_is_fitted(self)
        found: Array = self.classifier_.predict(self._named(X))
        return found

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities of the rows of X (N, n_classes)."""
        check_is_fitted(self)
        found: Array = self.classifier_.predict_proba(self._named(X))
        return found

    def _named(self, X: Any) -> Any:
        """Rows of an array with the names of the columns of ``fit``, if a raw table was fitted."""
        fitted = self.classifier.estimator
        names = getattr(fitted, "feature_names_in_", None)
        if names is None or hasattr(X, "columns") or not isinstance(fitted, FewLabelClassifier):
            return X
        return pd.DataFrame(X, columns=names)
