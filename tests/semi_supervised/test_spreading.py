"""Labels that spread: the formula against loops, representations, forms of rows, and scikit-learn's rules."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from ebse.semi_supervised._propagation import (
    ALPHA,
    LEAST,
    Clusterings,
    as_shares,
    clustered,
    flow_between,
)
from ebse.semi_supervised.spreading import SpreadingClassifier
from semi_supervised.blobs import blobs

X = np.random.default_rng(1).random((50, 4))


def test_flow_is_a_sum_over_walks() -> None:
    """(I − α S)⁻¹ = Σ αⁿ Sⁿ, on a line of points where neighbors are known."""
    points = np.arange(7.0)[:, None] ** 1.1
    A = np.zeros((7, 7))
    for i in range(7):
        for j in sorted(range(7), key=lambda j: abs(points[i, 0] - points[j, 0]))[1:5]:
            A[i, j] = A[j, i] = 1
    S = A / np.sqrt(np.outer(A.sum(1), A.sum(1)))
    total, term = np.zeros((7, 7)), np.eye(7)
    for _ in range(4_000):
        total += term
        term = ALPHA * term @ S
    np.testing.assert_allclose(flow_between(points), total, rtol=1e-8)


def test_scores_are_shares_of_what_arrives() -> None:
    flow = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    held = Clusterings(np.zeros((1, 3, 1)), np.ones(1), flow[np.newaxis])
    at = sparse.csr_matrix(np.eye(3)[[0, 1, 1]])
    found = as_shares(held.received(at, np.array([0, 1, 1]), 2))
    # Two labels of class 1 send half each: center 0 receives 2 and 1, center 1 receives 1 and 2, center 2 nothing.
    np.testing.assert_allclose(found, [[2 / 3, 1 / 3], [1 / 3, 2 / 3], [0.5, 0.5]])
    # A label that is half at 0 and half at 1 sends half from each.
    between = sparse.csr_matrix([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
    found = as_shares(held.received(between, np.array([0, 1]), 2))
    np.testing.assert_allclose(found[:2], [[0.6, 0.4], [3 / 7, 4 / 7]])


def test_rows_are_at_the_centers_near_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a loop over rows and centers, in blocks and with fewer places than centers."""
    rng = np.random.default_rng(0)
    Z, centers, widths = rng.normal(size=(9, 2)), rng.normal(size=(2, 6, 2)), np.array([0.7, 0.3])
    expected = np.zeros((9, 2, 6))
    for n, z in enumerate(Z):
        for i in range(2):
            squares = [float(((z - c) ** 2).sum()) for c in centers[i]]
            for j in sorted(range(6), key=squares.__getitem__)[:4]:
                weight = np.exp(-(squares[j] - min(squares)) / widths[i])
                expected[n, i, j] = weight if weight > LEAST else 0
            expected[n, i] /= 2 * expected[n, i].sum()
    monkeypatch.setattr("ebse.semi_supervised._propagation.N_PLACES", 4)
    monkeypatch.setattr("ebse.semi_supervised._propagation.BLOCK", 4)
    found = Clusterings(centers, widths, np.stack([np.eye(6)] * 2)).places(Z)
    np.testing.assert_allclose(found.toarray(), expected.reshape(9, 12), rtol=1e-9)


def test_the_width_of_clusters_is_how_far_rows_are_from_their_center() -> None:
    points, _ = blobs()
    found = clustered(points, 12, n_clusterings=1, seed=0)
    squares = [min(float(((z - c) ** 2).sum()) for c in found.centers[0]) for z in points]
    assert found.widths[0] == pytest.approx(np.median(squares))


def test_one_label_colors_a_blob() -> None:
    points, y = blobs()
    spread = SpreadingClassifier(n_clusters=24, random_state=0).fit(points[:3], y[:3], X_unlabeled=points[3:])
    assert spread.score(points, y) == 1
    asked = spread.predict_proba(points)
    np.testing.assert_allclose(asked.sum(1), 1)
    # A query is classified on its own.
    np.testing.assert_allclose(spread.predict_proba(points[5:6]), asked[5:6])


def test_other_labels_on_the_same_clusters() -> None:
    points, y = blobs()
    spread = SpreadingClassifier(n_clusters=24, random_state=0).fit(points[:3], y[:3], X_unlabeled=points[3:])
    before = spread.clusterings_[0].centers
    words = np.array(["a", "b", "c"])[y]
    spread.relabel(points[6:12], words[6:12])
    assert (spread.predict(points) == words).all()
    assert spread.clusterings_[0].centers is before
    fresh = SpreadingClassifier(n_clusters=24, random_state=0)
    fresh.fit(points[:3], y[:3], X_unlabeled=points[3:]).relabel(points[6:12], words[6:12])
    np.testing.assert_array_equal(fresh.predict_proba(points), spread.predict_proba(points))


@pytest.mark.parametrize("mark", [-1, np.nan])
def test_rows_without_a_label_are_announced(mark: Any) -> None:
    points, y = blobs()
    partly = np.full(60, mark, dtype=float)
    partly[:3] = y[:3]
    spread = SpreadingClassifier(n_clusters=24, unlabeled_label=mark, random_state=0).fit(points, partly)
    assert list(spread.classes_) == [0, 1, 2]
    assert spread.score(points, y) == 1


def test_several_representations_are_averaged() -> None:
    """What reaches a row is, q ∝ p^¼, on rows that every class reaches."""
    # In rounds rows speak for what both say together.
    settings: dict[str, Any] = {"n_clusters": 24, "n_clusterings": 2, "n_rounds": 0, "random_state": 0}

    def fitted(representation: Any) -> Any:
        return SpreadingClassifier(representation, **settings).fit(X[:3], [0, 1, 2], X_unlabeled=X[3:])

    def reached(representation: Any) -> Any:
        q = fitted(representation).predict_proba(X) ** 0.25
        return q / q.sum(1, keepdims=True)

    alone = [reached(one) for one in (None, PCA(1))]
    assert abs(alone[0] - alone[1]).max() > 0.01
    np.testing.assert_allclose(reached([None, PCA(1)]), np.mean(alone, axis=0), rtol=1e-6)
    assert [c.centers.shape for c in fitted([None, PCA(1)]).clusterings_] == [(2, 24, 4), (2, 24, 1)]


@pytest.mark.parametrize(("scale", "offset"), [(1.0, 1e5), (1e20, 0.0), (1e-20, 0.0), (255.0, -1e3)])
def test_units_and_offsets_of_columns_change_nothing(scale: float, offset: float) -> None:
    points, y = blobs()
    moved = points * scale + offset
    spread = SpreadingClassifier(n_clusters=24, random_state=0)
    assert spread.fit(moved[:3], y[:3], X_unlabeled=moved[3:]).score(moved, y) == 1


def test_equal_rows_of_a_representation_are_one_place() -> None:
    """Two columns of noise that the representation leaves out: clusters are no more than its different rows."""
    rng = np.random.default_rng(0)
    kind = np.arange(400) % 4
    rows = np.stack([kind, *rng.normal(size=(2, 400))], 1)
    first = FunctionTransformer(lambda x: x[:, :1])
    spread = SpreadingClassifier(first, random_state=0).fit(rows[:4], kind[:4], X_unlabeled=rows)
    assert spread.n_clusters_ == 2
    full = SpreadingClassifier(first, n_clusters=4, random_state=0)
    assert full.fit(rows[:4], kind[:4], X_unlabeled=rows).score(rows, kind) == 1


def test_a_pickled_classifier_answers_alike() -> None:
    points, y = blobs()
    spread = SpreadingClassifier(n_clusters=24, random_state=0).fit(points[:3], y[:3], X_unlabeled=points[3:])
    again = pickle.loads(pickle.dumps(spread))
    np.testing.assert_array_equal(again.predict_proba(points), spread.predict_proba(points))


def test_marks_that_were_not_announced_or_do_not_occur() -> None:
    points, y = blobs()
    partly = np.where(np.arange(60) < 6, y, -1)
    with pytest.warns(UserWarning, match="-1 is taken for a class, and most rows have it"):
        SpreadingClassifier(n_clusters=24, random_state=0).fit(points, partly)
    with pytest.warns(UserWarning, match="labels have nowhere to spread"):
        SpreadingClassifier(n_clusters=24, unlabeled_label=-1, random_state=0).fit(points, y)


def test_frames_and_series() -> None:
    """Names are kept, without a warning; sizes as pandas counts them."""
    points, y = blobs()
    frame = pd.DataFrame(points, columns=["a", "b"])
    sizes = pd.Series(y).value_counts(normalize=True)
    spread = SpreadingClassifier(n_clusters=24, class_prior=sizes, random_state=0)
    spread.fit(frame[:3], y[:3], X_unlabeled=frame[3:])
    assert spread.score(frame, y) == 1
    assert len(spread.suggest(frame, 2)) == 2


def test_fewer_rows_than_clusters() -> None:
    rows = np.repeat(np.eye(4), 5, axis=0)
    with pytest.warns(UserWarning, match="n_clusters is 9, and there are 4 different rows"):
        spread = SpreadingClassifier(n_clusters=9, random_state=0).fit(rows, np.repeat([0, 1], 10))
    assert spread.n_clusters_ == 4


@parametrize_with_checks(
    [  # type: ignore[untyped-decorator]
        SpreadingClassifier(n_clusterings=2, random_state=0)
    ]
)
def test_scikit_learns_rules(estimator: Any, check: Any) -> None:
    check(estimator)
