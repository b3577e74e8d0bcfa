"""``Relabeled``: clusters of one fit, and other labels in every fit."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from ebse import FewLabelClassifier, SpreadingClassifier
from ebse.semi_supervised._relabel import Relabeled
from semi_supervised.blobs import blobs


def test_a_fit_changes_labels_and_leaves_the_frozen_classifier_alone() -> None:
    X, y = blobs()
    spreading = SpreadingClassifier(n_clusters=20, n_clusterings=2, random_state=0)
    spreading.fit(X[:3], y[:3], X_unlabeled=X[3:])
    before = spreading.predict_proba(X)
    other = clone(Relabeled(FrozenEstimator(spreading))).fit(X[3:9], y[3:9] + 10)
    np.testing.assert_array_equal(other.classes_, [10, 11, 12])
    np.testing.assert_array_equal(other.predict(X), y + 10)
    np.testing.assert_array_equal(spreading.predict_proba(X), before)
    np.testing.assert_array_equal(other.predict_proba(X), spreading.relabel(X[3:9], y[3:9]).predict_proba(X))


def test_it_has_a_class_prior_of_its_own() -> None:
    X, y = blobs()
    prior = {0: 0.5, 1: 0.25, 2: 0.25}
    spreading = SpreadingClassifier(n_clusters=20, n_clusterings=2, random_state=0)
    frozen = FrozenEstimator(spreading.fit(X[:3], y[:3], X_unlabeled=X[3:]))
    found = Relabeled(frozen, class_prior=prior).fit(X[:3], y[:3])
    assert spreading.class_prior is None
    expected = SpreadingClassifier(n_clusters=20, n_clusterings=2, class_prior=prior, random_state=0)
    expected.fit(X[:3], y[:3], X_unlabeled=X[3:])
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X))


@pytest.mark.parametrize(
    "spreading", [None, SpreadingClassifier(), FrozenEstimator(clone(SpreadingClassifier()))]
)
def test_unfitted_or_unfrozen_classifiers_are_refused(spreading: Any) -> None:
    X, y = blobs()
    with pytest.raises((TypeError, ValueError), match=r"fitted SpreadingClassifier|not fitted yet"):
        Relabeled(spreading).fit(X, y)


def test_equal_rows_with_different_labels_do_not_warn() -> None:
    X, _ = blobs()
    spreading = SpreadingClassifier(n_clusters=20, n_clusterings=2, random_state=0).fit(X)
    rows, labels = X[[0, 0, 1, 2]], [0, 1, 1, 2]
    with pytest.warns(UserWarning, match="several labels"):
        spreading.relabel(rows, labels)
    found = Relabeled(FrozenEstimator(spreading)).fit(rows, labels).predict_proba(X[:1])
    np.testing.assert_allclose(found, [[0.5, 0.5, 0]])


def test_rows_of_a_raw_table_as_an_array() -> None:
    """The few-shot evaluation passes arrays: columns get their names back, and predictions are relabel's."""
    X, y = blobs()
    frame = pd.DataFrame({"word": np.array(["low", "high"])[(X[:, 0] > X[:, 0].mean()).astype(int)]})
    frame["size"] = X[:, 1]
    model = FewLabelClassifier(random_state=0).fit(frame, [*y[:6], *[None] * (len(y) - 6)])
    before = model.predict_proba(frame)
    rows = frame.to_numpy(dtype=object)
    found = clone(Relabeled(FrozenEstimator(model), class_prior="estimate")).fit(rows[6:15], y[6:15])
    expected = FewLabelClassifier(random_state=0).fit(frame).relabel(frame.iloc[6:15], y[6:15])
    np.testing.assert_array_equal(found.predict(rows), expected.predict(frame))
    np.testing.assert_array_equal(model.predict_proba(frame), before)
