"""Clusters that are made once, and other labels at every fit."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from ebse import SpreadingClassifier
from ebse.semi_supervised._relabel import Relabeled
from semi_supervised.blobs import blobs


def test_a_fit_tells_other_labels_and_leaves_the_frozen_one_alone() -> None:
    X, y = blobs()
    spread = SpreadingClassifier(n_clusters=20, n_clusterings=2, random_state=0)
    spread.fit(X[:3], y[:3], X_unlabeled=X[3:])
    before = spread.predict_proba(X)
    told = clone(Relabeled(FrozenEstimator(spread))).fit(X[3:9], y[3:9] + 10)
    np.testing.assert_array_equal(told.classes_, [10, 11, 12])
    np.testing.assert_array_equal(told.predict(X), y + 10)
    np.testing.assert_array_equal(spread.predict_proba(X), before)
    np.testing.assert_array_equal(told.predict_proba(X), spread.relabel(X[3:9], y[3:9]).predict_proba(X))


def test_class_prior_are_its_own() -> None:
    X, y = blobs()
    spread = SpreadingClassifier(n_clusters=20, n_clusterings=2, random_state=0)
    frozen = FrozenEstimator(spread.fit(X[:3], y[:3], X_unlabeled=X[3:]))
    sized = Relabeled(frozen, class_prior={0: 0.5, 1: 0.25, 2: 0.25}).fit(X[:3], y[:3])
    assert spread.class_prior is None
    alike = SpreadingClassifier(
        n_clusters=20, n_clusterings=2, class_prior={0: 0.5, 1: 0.25, 2: 0.25}, random_state=0
    ).fit(X[:3], y[:3], X_unlabeled=X[3:])
    np.testing.assert_allclose(sized.predict_proba(X), alike.predict_proba(X))


@pytest.mark.parametrize(
    "spreading", [None, SpreadingClassifier(), FrozenEstimator(clone(SpreadingClassifier()))]
)
def test_what_is_not_fitted_or_not_frozen_is_refused(spreading: Any) -> None:
    X, y = blobs()
    with pytest.raises((TypeError, ValueError), match=r"fitted SpreadingClassifier|not fitted yet"):
        Relabeled(spreading).fit(X, y)
