"""``Relabeled``: clusters that are made once, and other labels at every fit."""

import copy
from typing import Any, Self, final

import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from ebse.semi_supervised.spreading import SpreadingClassifier

Array = npt.NDArray[Any]


@final
class Relabeled(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted :class:`ebse.SpreadingClassifier` that ``fit`` tells other labels, for trying many choices.

    :func:`ebse.evaluation.few_shot` fits a classifier anew in every episode; the clusters of the rows without
    labels are the same in all of them.

    Parameters
    ----------
    spreading
        The fitted classifier, in a ``FrozenEstimator``.
    class_prior
        As there.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from ebse.evaluation import few_shot
    >>> X, y = load_digits(return_X_y=True)
    >>> spread = SpreadingClassifier(n_clusterings=2, random_state=0).fit(X[:9], y[:9], X_unlabeled=X[:1000])
    >>> methods = {"pixels": "pixels", "spreading": Relabeled(FrozenEstimator(spread))}
    >>> found = few_shot(methods, X[1000:], y[1000:], n_shots=1, n_queries=30, n_episodes=5, random_state=0)
    >>> pixels, spreading = found.summary()["mean"]
    >>> spreading > pixels
    True
    """

    def __init__(self, spreading: Any, *, class_prior: Any = None) -> None:
        self.spreading = spreading
        self.class_prior = class_prior

    def fit(self, X: Any, y: Any) -> Self:
        """Let the labels y of the rows X spread over the clusters."""
        held = self.spreading.estimator if isinstance(self.spreading, FrozenEstimator) else None
        if not isinstance(held, SpreadingClassifier):
            raise TypeError(
                "spreading must be a fitted SpreadingClassifier in a FrozenEstimator, got "
                f"{self.spreading!r}; fit one, and pass Relabeled(FrozenEstimator(it))"
            )
        check_is_fitted(held)
        # A shallow copy: relabel puts new arrays in place of those that it changes.
        self.spreading_ = copy.copy(held).set_params(class_prior=self.class_prior).relabel(X, y)
        self.classes_ = self.spreading_.classes_
        return self

    def predict(self, X: Any) -> Array:
        """The class with the largest share."""
        check_is_fitted(self)
        found: Array = self.spreading_.predict(X)
        return found

    def predict_proba(self, X: Any) -> Array:
        """Shares of the classes (N, n_classes)."""
        check_is_fitted(self)
        found: Array = self.spreading_.predict_proba(X)
        return found
