"""Labels that spread: the formula against loops, sizes, suggestions, and scikit-learn's rules."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from ebse import ContrastiveFeatures, SlowFeatures
from ebse.estimators.spreading import (
    ALPHA,
    LEAST,
    Clusterings,
    as_shares,
    clustered,
    flow_between,
    scales_for,
)
from ebse.estimators.spreading_classifier import SpreadingClassifier
from estimators.blobs import blobs

X = np.random.default_rng(1).random((50, 4))


def test_flow_is_a_sum_over_walks() -> None:
    """(I − α S)⁻¹ = Σ αⁿ Sⁿ, on a line of points where neighbours are known."""
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
    # Two labels of class 1 send half each: centre 0 receives 2 and 1, centre 1 receives 1 and 2, centre 2 nothing.
    np.testing.assert_allclose(found, [[2 / 3, 1 / 3], [1 / 3, 2 / 3], [0.5, 0.5]])
    # A label that is half at 0 and half at 1 sends half from each.
    between = sparse.csr_matrix([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
    found = as_shares(held.received(between, np.array([0, 1]), 2))
    np.testing.assert_allclose(found[:2], [[0.6, 0.4], [3 / 7, 4 / 7]])


def test_rows_are_at_the_centres_near_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a loop over rows and centres, in blocks and with fewer places than centres."""
    rng = np.random.default_rng(0)
    Z, centres, widths = rng.normal(size=(9, 2)), rng.normal(size=(2, 6, 2)), np.array([0.7, 0.3])
    expected = np.zeros((9, 2, 6))
    for n, z in enumerate(Z):
        for i in range(2):
            squares = [float(((z - c) ** 2).sum()) for c in centres[i]]
            for j in sorted(range(6), key=squares.__getitem__)[:4]:
                weight = np.exp(-(squares[j] - min(squares)) / widths[i])
                expected[n, i, j] = weight if weight > LEAST else 0
            expected[n, i] /= 2 * expected[n, i].sum()
    monkeypatch.setattr("ebse.estimators.spreading.N_PLACES", 4)
    monkeypatch.setattr("ebse.estimators.spreading.BLOCK", 4)
    found = Clusterings(centres, widths, np.stack([np.eye(6)] * 2)).places(Z)
    np.testing.assert_allclose(found.toarray(), expected.reshape(9, 12), rtol=1e-9)


def test_the_width_of_clusters_is_how_far_rows_are_from_their_centre() -> None:
    points, _ = blobs()
    found = clustered(points, 12, n_clusterings=1, seed=0)
    squares = [min(float(((z - c) ** 2).sum()) for c in found.centres[0]) for z in points]
    assert found.widths[0] == pytest.approx(np.median(squares))


def test_scaled_shares_have_the_sizes_asked_for() -> None:
    p = np.random.default_rng(0).dirichlet([3, 1, 1], size=500)
    sizes = np.array([0.2, 0.3, 0.5])
    q = p * scales_for(p, sizes)
    q /= q.sum(1, keepdims=True)
    np.testing.assert_allclose(q.mean(0), sizes, atol=1e-6)
    assert abs(p.mean(0) - sizes).max() > 0.1


def test_sizes_that_yield_are_met_halfway() -> None:
    """Factors ∝ (size / m)^(1 / yielding), m what shares then sum to: between what they were and the sizes."""
    p = np.random.default_rng(0).dirichlet([3, 1, 1], size=500)
    sizes = np.array([0.2, 0.3, 0.5])
    scale = scales_for(p, sizes, yielding=0.5)
    q = p * scale
    m = (q / q.sum(1, keepdims=True)).mean(0)
    expected = (sizes / m) ** 2
    np.testing.assert_allclose(scale / scale[0], expected / expected[0], rtol=1e-6)
    assert (abs(m - sizes) < abs(p.mean(0) - sizes)).all()


def test_one_label_colours_a_blob() -> None:
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
    before = spread.clusterings_[0].centres
    words = np.array(["a", "b", "c"])[y]
    spread.relabel(points[6:12], words[6:12])
    assert (spread.predict(points) == words).all()
    assert spread.clusterings_[0].centres is before
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
    assert [c.centres.shape for c in fitted([None, PCA(1)]).clusterings_] == [(2, 24, 4), (2, 24, 1)]


def test_known_sizes_help_and_wrong_ones_harm() -> None:
    """Four fifths and one fifth of a strip, a label at a random place of each, 30 times.

    The mean of the paired differences is above 0 (below, for wrong sizes) by Student's law, at 1 in 1,000.
    """
    rng = np.random.default_rng(0)
    strip = rng.random((500, 2)) * [1, 0.02]
    kind = (strip[:, 0] > 0.8).astype(int)
    told: dict[str, Any] = {"plain": None, "right": {0: 0.8, 1: 0.2}, "wrong": {0: 0.2, 1: 0.8}}
    spread = SpreadingClassifier(n_clusterings=2, random_state=0).fit(strip[:2], [0, 1], X_unlabeled=strip)
    found: dict[str, list[float]] = {name: [] for name in told}
    for _ in range(30):
        first = np.array([rng.choice(np.flatnonzero(kind == c)) for c in (0, 1)])
        for name, sizes in told.items():
            spread.set_params(class_sizes=sizes).relabel(strip[first], kind[first])
            found[name].append(spread.score(strip, kind))
    right, wrong = (np.subtract(found[name], found["plain"]) for name in ("right", "wrong"))
    assert stats.ttest_1samp(right, 0, alternative="greater").pvalue < 1e-3
    assert stats.ttest_1samp(wrong, 0, alternative="less").pvalue < 1e-3


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        (
            {"class_sizes": {0: 0.5, 1: 0.2}},
            [0, 1],
            "class_sizes must be positive and sum to 1, got .* sum to 0.7",
        ),
        (
            {"class_sizes": {0: 0.5, 2: 0.5}},
            [0, 1],
            "class_sizes must have a share for each of the classes .0, 1., got no share for 1 and one for 2",
        ),
        ({"class_sizes": {0: 0.2, 1: 0.3, 2: 0.5}}, [0, 1], "got one for 2, which no row is labelled with"),
        ({"class_sizes": "all"}, [0, 1], "class_sizes must be None, 'equal' or a mapping"),
        ({"class_sizes": {0: np.nan, 1: 0.5}}, [0, 1], "class_sizes must be positive and sum to 1"),
        ({"class_sizes": {0: "a", 1: 0.5}}, [0, 1], "class_sizes must hold numbers"),
        ({"representation": []}, [0, 1], "representation must have a transformer, got none"),
        ({"unlabeled_label": [1, 2]}, [0, 1], "unlabeled_label must be one value"),
        ({}, np.array([0, "a"], dtype=object), "y must be words or numbers, one kind, got both"),
        ({}, np.array([0, None], dtype=object), "got missing values; announce rows without a label"),
        ({}, [0, np.nan], "got missing values; announce rows without a label"),
        ({"unlabeled_label": -1}, pd.array([0, pd.NA]), "got missing values; announce rows without a label"),
        ({"n_clusters": "many"}, [0, 1], "n_clusters must be 'auto' or a number"),
        ({"n_clusters": 0}, [0, 1], "n_clusters must be >= 1"),
        ({"n_clusterings": 0}, [0, 1], "n_clusterings must be >= 1"),
        ({"n_rounds": -1}, [0, 1], "n_rounds must be >= 0, got -1"),
        ({}, [1, 1], "y must have at least 2 classes, got one class, 1"),
        ({"unlabeled_label": -1}, [-1, -1], "y must have labels, got -1"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(options: dict[str, Any], y: Any, message: str) -> None:
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
    with pytest.raises(ValueError, match=f"learned from rows of {n_columns} features, like X, got .* from 4"):
        SpreadingClassifier(given).fit(X[:2, :n_columns], [0, 1], X_unlabeled=X[2:, :n_columns])


@pytest.mark.parametrize(
    ("X_unlabeled", "kind"),
    [(np.full((3, 4), np.nan), ValueError), (sparse.csr_matrix(X), TypeError), (X[:0], ValueError)],
)
def test_bad_rows_without_a_label(X_unlabeled: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="X_unlabeled must have rows like those of X"):
        SpreadingClassifier().fit(X[:2], [0, 1], X_unlabeled=X_unlabeled)


def test_classes_that_are_lost_are_said() -> None:
    spread = SpreadingClassifier(random_state=0).fit(X[:3], ["a", "b", "c"], X_unlabeled=X[3:])
    with pytest.warns(UserWarning, match="no label is of 'b' any more, .* relabel takes all labels"):
        spread.relabel(X[[0, 2]], ["a", "c"])
    assert spread.classes_.tolist() == ["a", "c"]


def test_settings_are_checked_when_labels_are_told_again() -> None:
    spread = SpreadingClassifier(random_state=0).fit(X[:2], [0, 1], X_unlabeled=X[2:])
    with pytest.raises(ValueError, match="n_rounds must be >= 0, got -1"):
        spread.set_params(n_rounds=-1).relabel(X[:2], [0, 1])


def clouds(n: int = 600, small: float = 0.05) -> tuple[Any, Any]:
    """Two clouds in the plane, a small one three standard deviations from a large one."""
    y = (np.arange(n) < small * n).astype(int)
    return np.random.default_rng(0).normal(size=(n, 2)) + 3 * np.outer(y, [1, 0]), y


def share_taken(small: float = 0.05) -> float:
    """For the small class, of rows without a label, where sizes are told; a mean of ten choices of labels."""
    points, y = clouds(small=small)
    sizes = {0: 1 - small, 1: small}
    spread = SpreadingClassifier(class_sizes=sizes, n_clusterings=2, random_state=0)
    spread.fit(points[[0, -1]], y[[0, -1]], X_unlabeled=points)
    rng, found = np.random.default_rng(1), []
    for _ in range(10):
        few = [rng.choice(np.flatnonzero(y == c)) for c in (0, 1)]
        found.append(spread.relabel(points[few], y[few]).predict(points).mean())
    return float(np.mean(found))


def test_as_many_rows_are_taken_for_a_class_as_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a factor of two of 1 in 20; shares that are not sharper sum to it, and hardly a row is taken."""
    assert 0.025 < share_taken() < 0.1
    monkeypatch.setattr("ebse.estimators.spreading.SHARPER", 1)
    assert share_taken() < 0.025


def test_a_refusal_changes_nothing() -> None:
    points, y = blobs()
    fresh = SpreadingClassifier(n_clusters=24, random_state=0)
    with pytest.raises(ValueError, match="at least 2 classes"):
        fresh.fit(points[:2], [0, 0], X_unlabeled=points)
    with pytest.raises(NotFittedError):
        fresh.predict(points)
    spread = fresh.fit(points[:3], y[:3], X_unlabeled=points[3:])
    before = spread.predict_proba(points)
    for labels, sizes in (
        ([7, 7], None),
        ([0, 1], {0: 0.2, 1: 0.2}),
        ([0, 1], "some"),
        ([0, 1], {0: 0.5, 2: 0.5}),
    ):
        with pytest.raises(ValueError, match="must"):
            spread.set_params(class_sizes=sizes).relabel(points[:2], labels)
        np.testing.assert_array_equal(spread.predict_proba(points), before)
    with pytest.raises(ValueError, match="X_unlabeled must have the 2 features of X, got 3"):
        spread.set_params(class_sizes=None).fit(points[:3], y[:3], X_unlabeled=np.ones((5, 3)))


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


@pytest.mark.parametrize("order", ["as they come", "by class"])
def test_sizes_are_those_of_the_rows_without_a_label(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares of the blank rows sum to the sizes told, whatever their order, and however many are labelled."""
    monkeypatch.setattr("ebse.estimators.spreading_classifier.N_SPEAKING", 300)
    rng = np.random.default_rng(0)
    kind = np.arange(900) % 3
    if order == "by class":
        kind = np.sort(kind)
    rows = rng.normal(size=(900, 2)) + 1.5 * np.stack([kind, kind % 2], 1)
    # Many labels of one class do not count.
    extra = np.concatenate([np.array([0, 1, 2]), np.zeros(60, dtype=int)])
    labelled = rng.normal(size=(63, 2)) + 1.5 * np.stack([extra, extra % 2], 1)
    sizes = {0: 0.5, 1: 0.3, 2: 0.2}
    spread = SpreadingClassifier(n_clusters=60, class_sizes=sizes, random_state=0)
    spread.fit(labelled, extra, X_unlabeled=rows)
    # 300 of 900 rows are asked: a share p of them has a standard error of at most sqrt(p (1 − p) / 300) = 0.029.
    np.testing.assert_allclose(spread.predict_proba(rows).mean(0), [0.5, 0.3, 0.2], atol=5 * 0.029)
    plain = SpreadingClassifier(n_clusters=60, random_state=0).fit(labelled, extra, X_unlabeled=rows)
    assert abs(plain.predict_proba(rows).mean(0) - [0.5, 0.3, 0.2]).max() > 0.1


def test_impossible_sizes_leave_finite_factors() -> None:
    p = np.repeat(np.eye(3), 10, axis=0)
    scale = scales_for(p, np.array([0.9, 0.05, 0.05]))
    assert scale.min() >= 1e-6 * scale.max()
    assert np.isfinite(scale).all()


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
    spread = SpreadingClassifier(n_clusters=24, class_sizes=sizes, random_state=0)
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
