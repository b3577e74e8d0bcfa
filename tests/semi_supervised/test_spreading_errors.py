"""What SpreadingClassifier refuses, or warns of, and that a refusal changes nothing."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator

from ebse import ContrastiveFeatures
from ebse.semi_supervised import SlowFeatures
from ebse.semi_supervised.spreading import SpreadingClassifier
from semi_supervised.blobs import blobs

X = np.random.default_rng(1).random((50, 4))


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        (
            {"class_prior": {0: 0.5, 1: 0.2}},
            [0, 1],
            "class_prior must be positive and sum to 1, got .* sum to 0.7",
        ),
        (
            {"class_prior": {0: 0.5, 2: 0.5}},
            [0, 1],
            "class_prior must have a probability for each of the classes .0, 1., got none for 1 and one for 2",
        ),
        ({"class_prior": {0: 0.2, 1: 0.3, 2: 0.5}}, [0, 1], "got one for 2, which no row is labeled with"),
        ({"class_prior": "all"}, [0, 1], "class_prior must be None, 'equal' or a mapping"),
        ({"class_prior": {0: np.nan, 1: 0.5}}, [0, 1], "class_prior must be positive and sum to 1"),
        ({"class_prior": {0: "a", 1: 0.5}}, [0, 1], "class_prior must hold numbers"),
        ({"representation": []}, [0, 1], "representation must have a transformer, got none"),
        ({"unlabeled_label": [1, 2]}, [0, 1], "unlabeled_label must be one value"),
        ({}, np.array([0, "a"], dtype=object), "y must be words or numbers, one kind, got numbers and words"),
        ({}, [None, np.nan], "y must have labels, got none.* pass y=None"),
        ({}, [0, 1, 2], "y must have one entry for each of the 2 rows of X, got 3"),
        ({"n_clusters": "many"}, [0, 1], "n_clusters must be 'auto' or a number"),
        ({"n_clusters": 0}, [0, 1], "n_clusters must be >= 1"),
        ({"n_clusterings": 0}, [0, 1], "n_clusterings must be >= 1"),
        ({"n_rounds": -1}, [0, 1], "n_rounds must be >= 0, got -1"),
        ({}, [1, 1], "y must have at least 2 classes, got one class, 1"),
        ({"unlabeled_label": -1}, [-1, -1], "y must have labels, got none.* pass y=None"),
    ],
)
def test_bad_settings_and_labels(options: dict[str, Any], y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SpreadingClassifier(**options).fit(X[:2], y, X_unlabeled=X[2:50])


@pytest.mark.parametrize("representation", ["pca", PCA, [None, "pca"], pd.DataFrame(X)])
def test_a_representation_is_an_estimator(representation: Any) -> None:
    with pytest.raises(TypeError, match="representation must be an estimator with transform, got"):
        SpreadingClassifier(representation).fit(X[:2], [0, 1], X_unlabeled=X[2:50])


@pytest.mark.parametrize("n_columns", [1, 3])
@pytest.mark.parametrize("frozen", [PCA(2), ContrastiveFeatures(n_updates=2), SlowFeatures(n_components=2)])
def test_a_representation_of_other_columns(frozen: Any, n_columns: int) -> None:
    given = FrozenEstimator(frozen.fit(X))
    with pytest.raises(
        ValueError, match=f"fitted to rows of {n_columns} features, like X, got one fitted to 4"
    ):
        SpreadingClassifier(given).fit(X[:2, :n_columns], [0, 1], X_unlabeled=X[2:, :n_columns])


@pytest.mark.parametrize(
    ("X_unlabeled", "kind"),
    [(np.full((3, 4), np.nan), ValueError), (sparse.csr_matrix(X), TypeError)],
)
def test_bad_unlabeled_rows(X_unlabeled: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="X_unlabeled must have rows like those of X"):
        SpreadingClassifier().fit(X[:2], [0, 1], X_unlabeled=X_unlabeled)


def test_lost_classes_warn() -> None:
    spreading = SpreadingClassifier(random_state=0).fit(X[:3], ["a", "b", "c"], X_unlabeled=X[3:])
    with pytest.warns(UserWarning, match="no label is 'b' any more, .* relabel takes all labels"):
        spreading.relabel(X[[0, 2]], ["a", "c"])
    assert spreading.classes_.tolist() == ["a", "c"]


def test_settings_are_checked_by_relabel() -> None:
    spreading = SpreadingClassifier(random_state=0).fit(X[:2], [0, 1], X_unlabeled=X[2:])
    with pytest.raises(ValueError, match="n_rounds must be >= 0, got -1"):
        spreading.set_params(n_rounds=-1).relabel(X[:2], [0, 1])


def test_a_refusal_changes_nothing() -> None:
    points, y = blobs()
    fresh = SpreadingClassifier(n_clusters=24, random_state=0)
    with pytest.raises(ValueError, match="at least 2 classes"):
        fresh.fit(points[:2], [0, 0], X_unlabeled=points)
    with pytest.raises(NotFittedError):
        fresh.predict(points)
    spreading = fresh.fit(points[:3], y[:3], X_unlabeled=points[3:])
    before = spreading.predict_proba(points)
    for labels, prior in (
        ([7, 7], None),
        ([0, 1], {0: 0.2, 1: 0.2}),
        ([0, 1], "some"),
        ([0, 1], {0: 0.5, 2: 0.5}),
    ):
        with pytest.raises(ValueError, match="must"):
            spreading.set_params(class_prior=prior).relabel(points[:2], labels)
        np.testing.assert_array_equal(spreading.predict_proba(points), before)
    with pytest.raises(ValueError, match="X_unlabeled must have the 2 features of X, got 3"):
        spreading.set_params(class_prior=None).fit(points[:3], y[:3], X_unlabeled=np.ones((5, 3)))
    with pytest.raises(ValueError, match="at least 2 classes"):
        spreading.fit(X, [0] * 50)
    assert spreading.n_features_in_ == 2
    np.testing.assert_array_equal(spreading.predict_proba(points), before)


@pytest.mark.parametrize("where", ["X", "X_unlabeled"])
def test_large_entries_are_named(where: str) -> None:
    points, y = blobs()
    points[4, 1] = 1e20
    spreading = SpreadingClassifier(random_state=0)
    few = {"X": 60, "X_unlabeled": 3}[where]
    row = {"X": 4, "X_unlabeled": 1}[where]
    with pytest.raises(ValueError, match=rf"{where} must have entries below .* in row {row}, column 1"):
        spreading.fit(points[:few], y[:few], X_unlabeled=None if few == 60 else points[few:])
    points[4, 1] = 1
    with pytest.raises(ValueError, match="in row 0, column 0"):
        spreading.fit(points, y).predict([[-1e21, 0]])


def test_dates_and_masked_arrays_are_refused() -> None:
    points, y = blobs()
    with pytest.raises(TypeError, match="X must hold numbers, got dates"):
        SpreadingClassifier().fit(points.astype("datetime64[s]"), y)
    with pytest.raises(TypeError, match="X must not be a masked array"):
        SpreadingClassifier().fit(np.ma.array(points, mask=points > 0), y)
    with pytest.raises(TypeError, match="X_unlabeled must hold numbers, got dates"):
        SpreadingClassifier().fit(points, y, X_unlabeled=points.astype("timedelta64[s]"))


def test_relabel_needs_labels_for_rows() -> None:
    spreading = SpreadingClassifier(random_state=0).fit(X[:2], [0, 1], X_unlabeled=X[2:])
    with pytest.raises(ValueError, match="y must be given with X"):
        spreading.relabel(X[:2])
    with pytest.raises(ValueError, match="y must have one entry for each of the 50 rows"):
        spreading.relabel(y=[0, 1])


def test_a_frozen_representation_of_reordered_columns_is_refused() -> None:
    points, y = blobs()
    frame = pd.DataFrame(points, columns=["a", "b"])
    frozen = FrozenEstimator(PCA(1).fit(frame))
    for estimator in (SpreadingClassifier(frozen, n_clusters=20), SlowFeatures(frozen)):
        with pytest.raises(
            ValueError, match="in their order, got one whose column 0 is 'a', where that of X"
        ):
            estimator.fit(frame[["b", "a"]], y)
    # Without names there is nothing to compare, and the same order is accepted.
    plain = FrozenEstimator(PCA(1).fit(points))
    for representation, rows in ((frozen, frame), (plain, frame), (plain, points)):
        assert SpreadingClassifier(representation, n_clusters=20).fit(rows, y).score(rows, y) == 1


def test_an_interrupted_refit_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    points, y = blobs()
    made = SpreadingClassifier(n_clusters=20, random_state=0).fit(points[:3], y[:3], X_unlabeled=points[3:])
    before = made.predict_proba(points + 0.1)

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ebse.semi_supervised.spreading.propagate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        made.fit(X, np.arange(50) % 4)
    np.testing.assert_array_equal(made.predict_proba(points + 0.1), before)


def test_without_labels_there_is_no_transduction() -> None:
    made = SpreadingClassifier(n_clusters=20).fit(X)
    for name in ("transduction_", "label_distributions_"):
        with pytest.raises(NotFittedError, match="fitted without labels"):
            getattr(made, name)


@pytest.mark.parametrize("empty", [np.empty((0, 2)), [], pd.DataFrame(columns=["a", "b"])])
def test_no_unlabeled_rows_are_as_none(empty: Any) -> None:
    points, y = blobs()
    made = [
        SpreadingClassifier(n_clusters=20, random_state=0).fit(points, y, X_unlabeled=more)
        for more in (None, empty)
    ]
    np.testing.assert_array_equal(made[0].predict_proba(points + 0.1), made[1].predict_proba(points + 0.1))
