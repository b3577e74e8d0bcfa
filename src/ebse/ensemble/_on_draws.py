"""A classifier on many draws of each example, beside one on its mean where there are labels to choose by."""

from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import check_is_fitted

from ebse.evaluation import fit_logistic, predict_proba

Array = npt.NDArray[np.floating[Any]]
Classes = npt.NDArray[np.intp]

MANY, N_FOLDS = 3, 5
"""Labels of each class from which on the mean representation is asked, too; parts of cross-validation."""


@final
class UnpenalizedLogistic(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Multinomial logistic regression without penalty, stopped where scikit-learn's stops."""

    def fit(self, X: Array, y: npt.NDArray[Any]) -> Self:
        """Least cross-entropy of the rows X (N, K)."""
        self.classes_, target = np.unique(y, return_inverse=True)
        self.fit_ = fit_logistic(X[np.newaxis], target[np.newaxis], n_classes=len(self.classes_))
        return self

    def predict_proba(self, X: Array) -> Array:
        """Probabilities (N, n_classes)."""
        check_is_fitted(self)
        found: Array = predict_proba(self.fit_, X[np.newaxis])[0]
        return found

    def predict(self, X: Array) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        found: npt.NDArray[Any] = self.classes_[self.predict_proba(X).argmax(1)]
        return found


@final
class OnDraws:
    """p = w p(draw) + (1 − w) p(mean): a classifier trained on draws, and one trained on means.

    Parameters
    ----------
    classifier
        What is trained, once on each.
    votes
        Whether p(draw) is a vote instead of a probability.
    seed
        Of the folds in which w is chosen, 1 or one half, by accuracy on labeled examples left out. Draws are
        noise, which helps most where labels are fewest; with fewer than three in a class w is 1.
    """

    def __init__(self, classifier: Any, *, votes: bool, seed: int) -> None:
        self.classifier, self.votes, self.seed = classifier, votes, seed
        self.share = 1.0

    def fit(self, draws: Array, mean: Array | None, target: Classes) -> Self:
        """Train on draws (N, n_draws, K) and means (N, K), if given, of examples with classes from 0 on."""
        self.n_classes = int(target.max()) + 1
        least = int(np.bincount(target).min())
        self.on_draws, self.on_mean = self._trained(draws, target), None
        if mean is not None and least >= MANY:
            self.share = self._chosen(draws, mean, target, least)
            self.on_mean = self._trained(mean[:, np.newaxis], target) if self.share < 1 else None
        return self

    def probabilities(self, draws: Array, mean: Array | None) -> Array:
        """p for every draw (N, n_draws, n_classes)."""
        p = self._asked(self.on_draws, draws)
        if self.on_mean is None or mean is None:
            return p
        return self.share * p + (1 - self.share) * self._asked(self.on_mean, mean[:, np.newaxis])

    def _chosen(self, draws: Array, mean: Array, target: Classes, least: int) -> float:
        """w, by cross-validation; one half where both are equal."""
        right = {0.5: 0, 1.0: 0}
        folds = StratifiedKFold(min(N_FOLDS, least), shuffle=True, random_state=self.seed)
        for train, test in folds.split(mean, target):
            p, q = (
                self._asked(self._trained(x[train], target[train]), x[test]).mean(1)
                for x in (draws, mean[:, np.newaxis])
            )
            for share in right:
                right[share] += int(((share * p + (1 - share) * q).argmax(1) == target[test]).sum())
        return max(right, key=lambda share: (right[share], -share))

    def _trained(self, draws: Array, target: Classes) -> Any:
        return clone(self.classifier).fit(
            draws.reshape(-1, draws.shape[2]), np.repeat(target, draws.shape[1])
        )

    def _asked(self, classifier: Any, draws: Array) -> Array:
        rows = draws.reshape(-1, draws.shape[2])
        p = np.eye(self.n_classes)[classifier.predict(rows)] if self.votes else classifier.predict_proba(rows)
        found: Array = p.reshape(*draws.shape[:2], self.n_classes)
        return found


@final
class SharedDraws:
    """Representations of many examples, made once, and the classifiers of episodes that share them."""

    def __init__(self, draws: Array, mean: Array | None, make: Any) -> None:
        self.draws, self.mean, self.make = draws, mean, make

    def accuracy(
        self, support: Classes, labels: npt.NDArray[Any], queries: Classes, asked: npt.NDArray[Any]
    ) -> float:
        """The share of queries classified right by a classifier of the labeled examples, all by row."""
        classes, target = np.unique(labels, return_inverse=True)
        made: OnDraws = self.make().fit(self.draws[support], self._means(support), target)
        p = made.probabilities(self.draws[queries], self._means(queries)).mean(1)
        return float((classes[p.argmax(1)] == asked).mean())

    def _means(self, rows: Classes) -> Array | None:
        return None if self.mean is None else self.mean[rows]
