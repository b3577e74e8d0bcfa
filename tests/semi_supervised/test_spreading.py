"""SpreadingClassifier: labels in y, representations, labeled rows, relabeling, and forms of rows."""

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer

from ebse._stages import Stage, listening
from ebse.semi_supervised import spreading as module
from ebse.semi_supervised.spreading import SpreadingClassifier
from semi_supervised.blobs import blobs

X = np.random.default_rng(1).random((50, 4))
POINTS, Y = blobs()


def blob_classifier(**options: Any) -> SpreadingClassifier:
    return SpreadingClassifier(**{"n_clusters": 24, "random_state": 0, **options})


def test_one_label_for_each_blob() -> None:
    spreading = blob_classifier().fit(POINTS[:3], Y[:3], X_unlabeled=POINTS[3:])
    assert spreading.score(POINTS, Y) == 1
    p = spreading.predict_proba(POINTS)
    np.testing.assert_allclose(p.sum(1), 1)
    # A row is classified on its own.
    np.testing.assert_allclose(spreading.predict_proba(POINTS[5:6]), p[5:6], rtol=1e-5)


@pytest.mark.parametrize("mark", [None, np.nan, pd.NA, -1])
def test_unlabeled_rows_in_y(mark: Any) -> None:
    """As many rows, in another order, as with X_unlabeled."""
    partly = [int(Y[i]) if i < 3 else mark for i in range(60)]
    options = {"unlabeled_label": -1} if isinstance(mark, int) else {}
    spreading = blob_classifier(**options).fit(POINTS, partly)
    assert list(spreading.classes_) == [0, 1, 2]
    np.testing.assert_array_equal(spreading.transduction_, Y)
    split = blob_classifier().fit(POINTS[:3], Y[:3], X_unlabeled=POINTS[3:])
    np.testing.assert_array_equal(spreading.label_distributions_, split.label_distributions_)


def test_fit_without_labels() -> None:
    """Rows are clustered, suggestions cover them, and labels come later."""
    spreading = blob_classifier().fit(POINTS)
    for what in ("predict", "predict_proba"):
        with pytest.raises(NotFittedError, match=r"fitted without labels .* call relabel"):
            getattr(spreading, what)(POINTS)
    assert not hasattr(spreading, "classes_")
    assert not hasattr(spreading, "transduction_")
    first = spreading.suggest(3)
    # One row of each of the three blobs.
    assert sorted(Y[first].tolist()) == [0, 1, 2]
    assert spreading.relabel(POINTS[first], Y[first]).score(POINTS, Y) == 1
    # Another fit without labels, and labels that are removed, leave none.
    for again in (spreading.relabel(), spreading.relabel(POINTS[first], Y[first]).fit(POINTS)):
        assert not hasattr(again, "classes_")
        np.testing.assert_array_equal(again.suggest(3), first)


def test_other_labels_on_the_same_clusters() -> None:
    spreading = blob_classifier().fit(POINTS[:3], Y[:3], X_unlabeled=POINTS[3:])
    before = spreading._clusterings[0].centers
    words = np.array(["a", "b", "c"])[Y]
    spreading.relabel(POINTS[6:12], words[6:12])
    assert (spreading.predict(POINTS) == words).all()
    assert spreading._clusterings[0].centers is before
    fresh = blob_classifier().fit(POINTS[:3], Y[:3], X_unlabeled=POINTS[3:])
    fresh.relabel(POINTS[6:12], words[6:12])
    np.testing.assert_array_equal(fresh.predict_proba(POINTS), spreading.predict_proba(POINTS))


def test_labels_of_fitted_rows_by_position() -> None:
    """The same as with the rows themselves: assignments are kept."""
    spreading = blob_classifier().fit(POINTS[:20], X_unlabeled=POINTS[20:])
    rows = np.array([3, 25, 40, 59])
    y = np.full(60, np.nan)
    y[rows] = Y[rows]
    by_position = spreading.relabel(y=y).predict_proba(POINTS)
    np.testing.assert_array_equal(spreading.relabel(POINTS[rows], Y[rows]).predict_proba(POINTS), by_position)


def overlapping() -> tuple[Any, Any]:
    y = np.arange(600) % 3
    return np.random.default_rng(0).normal(size=(600, 5)) + 2 * np.eye(5)[y], y


def test_kept_assignments_change_no_probability() -> None:
    """By more than 1e-7; 32-bit, and at most ten for each clustering."""
    rows, y = overlapping()
    spreading = SpreadingClassifier(n_clusters=100, random_state=0).fit(rows[:9], y[:9], X_unlabeled=rows[9:])
    kept, anew = spreading.label_distributions_, spreading.predict_proba(rows)
    np.testing.assert_allclose(kept, anew, rtol=0, atol=1e-7)
    assert kept[9:].std() > 0.1
    (assigned,) = spreading._rows.assigned
    assert (assigned.data.dtype, assigned.indices.dtype) == (np.float32, np.int32)
    assert assigned.nnz <= 600 * 6 * 10
    # A twin whose kept rows are in another order does change them.
    spreading._rows = spreading._rows.take(np.arange(600)[::-1])
    assert abs(spreading.label_distributions_ - anew).max() > 0.1


def test_several_representations_are_averaged() -> None:
    """Their scores q ∝ p^¼ are, on unlabeled rows."""
    # In rounds pseudo-labels depend on both representations together.
    settings: dict[str, Any] = {"n_clusters": 24, "n_clusterings": 2, "n_rounds": 0, "random_state": 0}

    def fitted(representation: Any) -> Any:
        return SpreadingClassifier(representation, **settings).fit(X[:3], [0, 1, 2], X_unlabeled=X[3:])

    def scores(representation: Any) -> Any:
        q = fitted(representation).predict_proba(X[3:]) ** 0.25
        return q / q.sum(1, keepdims=True)

    alone = [scores(one) for one in (None, PCA(1))]
    assert abs(alone[0] - alone[1]).max() > 0.01
    np.testing.assert_allclose(scores([None, PCA(1)]), np.mean(alone, axis=0), rtol=1e-6)
    assert [c.centers.shape for c in fitted([None, PCA(1)])._clusterings] == [(2, 24, 4), (2, 24, 1)]


@pytest.mark.parametrize(("scale", "offset"), [(1.0, 1e5), (1e18, 0.0), (1e-20, 0.0), (255.0, -1e3)])
def test_units_and_offsets_of_columns_change_nothing(scale: float, offset: float) -> None:
    moved = POINTS * scale + offset
    assert blob_classifier().fit(moved[:3], Y[:3], X_unlabeled=moved[3:]).score(moved, Y) == 1


def test_equal_rows_of_a_representation_are_one_point() -> None:
    """Two columns of noise that the representation drops: no more clusters than its distinct rows."""
    kind = np.arange(400) % 4
    rows = np.stack([kind, *np.random.default_rng(0).normal(size=(2, 400))], 1)
    first = FunctionTransformer(lambda x: x[:, :1])
    # Four labeled rows are distinct in the representation, too.
    spreading = SpreadingClassifier(first, random_state=0).fit(rows[:4], kind[:4], X_unlabeled=rows)
    assert spreading.n_clusters_ == 4
    assert spreading.score(rows, kind) == 1


@pytest.mark.parametrize(
    ("n_rows", "n_labeled", "expected"),
    [(60, 0, 30), (60, 10, 30), (60, 45, 45), (60, 60, 60), (3, 2, 2), (2, 2, 2)],
)
def test_auto_clusters_are_at_least_as_many_as_labeled_rows(
    n_rows: int, n_labeled: int, expected: int
) -> None:
    y = None if not n_labeled else [int(Y[i]) if i < n_labeled else None for i in range(n_rows)]
    assert SpreadingClassifier(random_state=0).fit(POINTS[:n_rows], y).n_clusters_ == expected


def test_auto_clusters_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CLUSTERS", 20)
    assert SpreadingClassifier(random_state=0).fit(POINTS, Y).n_clusters_ == 20


def test_labeled_rows_keep_their_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels that are all wrong, in the middle of other classes; without the rule most are outvoted."""
    rows, y = overlapping()
    wrong = (y + 1) % 3
    partly = [int(c) if i < 60 else None for i, c in enumerate(wrong)]
    spreading = SpreadingClassifier(n_clusters=20, random_state=0).fit(rows, partly)
    for found in (spreading.predict(rows), spreading.transduction_):
        np.testing.assert_array_equal(found[:60], wrong[:60])
    # In single precision, too, where that has the same values; in any order; and after relabel.
    whole = np.round(rows * 8)
    spreading.fit(whole[np.unique(whole, axis=0, return_index=True)[1]])
    labeled = np.unique(whole, axis=0)[:9]
    spreading.relabel(labeled, [0, 1, 2] * 3)
    assert spreading.predict(labeled[::-1].astype(np.float32)).tolist() == [2, 1, 0] * 3
    monkeypatch.setattr(module.KnownLabels, "find", lambda self, keys: (np.zeros(len(keys), bool), []))
    assert (spreading.predict(labeled) != np.array([0, 1, 2] * 3)).any()


def test_equal_rows_with_different_labels_have_the_most_frequent() -> None:
    rows = np.concatenate([POINTS, POINTS[[0, 0]]])
    y = [0, 1, 2, *[None] * 57, 1, 1]
    with pytest.warns(UserWarning, match="distinct rows with several labels: 1.* most frequent"):
        spreading = blob_classifier().fit(rows, y)
    np.testing.assert_allclose(spreading.predict_proba(rows[:1]), [[1 / 3, 2 / 3, 0]])
    assert spreading.predict(rows[[0, 60, 61]]).tolist() == [1, 1, 1]
    assert spreading.transduction_[[0, 60, 61]].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "rows",
    [
        np.ones((6, 3)),
        np.arange(6.0)[:, None],
        np.repeat(np.eye(3), 2, axis=0),
        np.zeros((6, 1)),
        np.column_stack([np.arange(6.0), np.ones(6)]),
    ],
    ids=["constant", "one column", "duplicated", "one constant column", "a constant column"],
)
@pytest.mark.filterwarnings("ignore:.*several labels:UserWarning")
def test_degenerate_rows(rows: Any) -> None:
    y = [0, 0, 1, 1, None, None]
    spreading = SpreadingClassifier(random_state=0).fit(rows, y)
    p = spreading.predict_proba(rows)
    np.testing.assert_allclose(p.sum(1), 1)
    np.testing.assert_allclose(spreading.label_distributions_, p, atol=1e-7)
    if len(np.unique(rows, axis=0)) > 1:
        assert spreading.predict(rows[:4]).tolist() == [0, 0, 1, 1]
    assert len(SpreadingClassifier(random_state=0).fit(rows).suggest(2)) >= 1


def test_a_pickled_classifier_predicts_the_same() -> None:
    spreading = blob_classifier().fit(POINTS[:3], Y[:3], X_unlabeled=POINTS[3:])
    again = pickle.loads(pickle.dumps(spreading))
    np.testing.assert_array_equal(again.predict_proba(POINTS), spreading.predict_proba(POINTS))


def test_frames_and_series() -> None:
    """Names are kept, without a warning; a prior as pandas counts it."""
    frame = pd.DataFrame(POINTS, columns=["a", "b"])
    prior = pd.Series(Y).value_counts(normalize=True)
    spreading = blob_classifier(class_prior=prior).fit(frame[:3], Y[:3], X_unlabeled=frame[3:])
    assert spreading.score(frame, Y) == 1
    assert len(spreading.suggest(2, X=frame)) == 2
    y = pl.Series([int(c) if i < 3 else None for i, c in enumerate(Y)])
    np.testing.assert_array_equal(blob_classifier().fit(pl.DataFrame(POINTS), y).transduction_, Y)


def test_fewer_distinct_rows_than_clusters() -> None:
    rows = np.repeat(np.eye(4), 5, axis=0)
    with pytest.warns(UserWarning, match="n_clusters is 9, but there are 4 distinct rows"):
        spreading = SpreadingClassifier(n_clusters=9, random_state=0).fit(rows, np.repeat([0, 1], 10))
    assert spreading.n_clusters_ == 4


IMAGES = np.random.default_rng(0).integers(0, 256, size=(40, 30)).astype(float)


def test_mixed_scales_warn() -> None:
    spreading = SpreadingClassifier(random_state=0).fit(IMAGES / 255, [0, 1] * 20)
    for use in (spreading.predict, lambda rows: spreading.suggest(1, X=rows)):
        with pytest.warns(UserWarning, match="X has entries from 0 to 255, .* divide it by 255"):
            use(IMAGES)
    with pytest.warns(UserWarning, match="X_unlabeled has entries from 0 to 1, .* multiply it by 255"):
        SpreadingClassifier(random_state=0).fit(IMAGES[:2], [0, 1], X_unlabeled=IMAGES[2:] / 255)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spreading.predict(IMAGES / 255)


def test_stages_are_announced() -> None:
    seen: list[Stage] = []
    with listening(seen.append):
        blob_classifier(n_clusterings=3).fit(POINTS[:3], Y[:3], X_unlabeled=POINTS[3:])
    finished = [(at.name, at.done, at.total) for at in seen if at.finished]
    assert finished == [("clustering", 3, 3), ("propagation", 5, 5)]


def test_verbose_shows_bars(capsys: pytest.CaptureFixture[str]) -> None:
    blob_classifier(verbose=1).fit(POINTS, Y)
    assert "clustering: 100%" in capsys.readouterr().err
    blob_classifier().fit(POINTS, Y)
    assert capsys.readouterr().err == ""


def test_columns_selected_by_name() -> None:
    """Representations see the names of the columns, and may have sparse output."""
    frame = pd.DataFrame(POINTS, columns=["a", "b"]).assign(
        noise=np.random.default_rng(0).normal(size=len(Y))
    )
    chosen = ColumnTransformer([("kept", "passthrough", ["a", "b"])])
    np.testing.assert_array_equal(blob_classifier(representation=chosen).fit(frame, Y).predict(frame), Y)
    bins = make_pipeline(chosen, KBinsDiscretizer(4, encode="onehot", strategy="uniform"))
    some = pd.Series(Y, dtype="Int64").where(np.arange(len(Y)) < 30)
    assert blob_classifier(representation=bins, n_clusters="auto").fit(frame, some).score(frame, Y) > 0.8


@pytest.mark.parametrize("dtypes", [(np.float32, np.float64), (np.float64, np.float32)])
def test_labels_are_kept_in_the_other_precision(dtypes: tuple[Any, Any]) -> None:
    """A wrong label, which only the row itself is predicted as."""
    rows = np.random.default_rng(0).random((60, 3))
    wrong = np.arange(60) % 2
    made = blob_classifier().fit(rows.astype(dtypes[0]), wrong)
    # Values in double precision that single precision rounds, or the rounded ones themselves.
    given = rows.astype(np.float32).astype(dtypes[1])
    np.testing.assert_array_equal(made.predict_proba(given), np.eye(2)[wrong])
    assert (made.predict_proba(given + np.float32(1e-3)) < 1).any()


def test_rows_that_differ_in_double_precision_only_keep_their_own_labels() -> None:
    """Seconds since 1970: single precision has steps of 128 there."""
    rows = 1.7e9 + 10 * np.arange(60.0)[:, np.newaxis]
    y = np.arange(60) // 30
    made = blob_classifier().fit(rows, y)
    np.testing.assert_array_equal(made.predict_proba(rows), np.eye(2)[y])
