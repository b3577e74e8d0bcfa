"""``Relabeled``: a fitted classifier whose ``fit`` changes the labels only, for few-shot evaluation."""

import copy
import warnings
from typing import Any, Self, final

import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from ebse.semi_supervised.spreading import SpreadingClassifier

Array = npt.NDArray[Any]


@final
class Relabeled(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted :class:`ebse.SpreadingClassifier` whose ``fit`` propagates labels over the same clusters.

    :func:`ebse.evaluation.few_shot` fits a classifier in every episode; the clusters of the unlabeled rows
    are the same in all of them.

    Parameters
    ----------
    spreading : FrozenEstimator
        The fitted classifier, frozen.
    class_prior : None, "equal" or mapping, default None
        As in :class:`ebse.SpreadingClassifier`.

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

    def __init__(self, spreading: Any, *, class_prior: Any = None) -> None:
        self.spreading = spreading
        self.class_prior = class_prior

    def fit(self, X: Any, y: Any) -> Self:
        """Propagate the labels y (N,) of the rows X (N, D) over the clusters."""
        fitted = self.spreading.estimator if isinstance(self.spreading, FrozenEstimator) else None
        if not isinstance(fitted, SpreadingClassifier):
            raise TypeError(
                "spreading must be a fitted SpreadingClassifier in a FrozenEstimator, got "
                f"{self.spreading!r}; fit one, and pass Relabeled(FrozenEstimator(it))"
            )
        check_is_fitted(fitted)
        # A shallow copy: relabel replaces arrays and does not change them.
        made = copy.copy(fitted).set_params(class_prior=self.class_prior)
        with warnings.catch_warnings():
            # Labels of an evaluation are drawn at random: a warning in every episode would help nobody.
            warnings.filterwarnings("ignore", "[0-9]+ distinct rows have several labels each", UserWarning)
            self.spreading_ = made.relabel(X, y)
        self.classes_ = self.spreading_.classes_
        return self

    def predict(self, X: Any) -> Array:
        """The most probable class of each row of X (N, D)."""
        check_is_fitted(self)
        found: Array = self.spreading_.predict(X)
        return found

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities of the rows of X (N, n_classes)."""
        check_is_fitted(self)
        found: Array = self.spreading_.predict_proba(X)
        return found
