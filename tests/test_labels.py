"""Labels: which rows have one, in every form of y, and what is refused."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ebse import RBSE, FewLabelClassifier, SpreadingClassifier
from ebse._labels import read_labels
from ebse.ensemble import RBSEClassifier

FORMS: dict[str, tuple[Any, list[Any]]] = {
    "list of words": (["a", None, "b", "a"], ["a", "b"]),
    "list of numbers": ([3, None, 7, 3], [3, 7]),
    "floats with NaN": (np.array([3, np.nan, 7, 3]), [3, 7]),
    "objects": (np.array([3, pd.NA, 7, 3], dtype=object), [3, 7]),
    "NaT": (["a", pd.NaT, "b", "a"], ["a", "b"]),
    "words with NaN": (["a", np.nan, "b", "a"], ["a", "b"]),
    "booleans": ([False, None, True, False], [False, True]),
    "pandas nullable integers": (pd.Series([3, None, 7, 3], dtype="Int64"), [3, 7]),
    "pandas array": (pd.array([3, pd.NA, 7, 3]), [3, 7]),
    "pandas strings": (pd.Series(["a", None, "b", "a"], dtype="string"), ["a", "b"]),
    "pandas categories": (pd.Series(["a", None, "b", "a"], dtype="category"), ["a", "b"]),
    "pandas booleans": (pd.Series([False, None, True, False], dtype="boolean"), [False, True]),
    "a shuffled index": (pd.Series(["a", None, "b", "a"], index=[3, 1, 0, 2]), ["a", "b"]),
    "polars integers": (pl.Series([3, None, 7, 3]), [3, 7]),
    "polars words": (pl.Series(["a", None, "b", "a"]), ["a", "b"]),
    "polars categories": (pl.Series(["a", None, "b", "a"], dtype=pl.Categorical), ["a", "b"]),
    "a masked array": (np.ma.array([3, 9, 7, 3], mask=[False, True, False, False]), [3, 7]),
}


@pytest.mark.parametrize("form", FORMS)
def test_missing_entries_are_unlabeled_rows(form: str) -> None:
    y, classes = FORMS[form]
    found = read_labels(y, 4)
    assert found is not None
    assert found.rows.tolist() == [0, 2, 3]
    assert found.classes.tolist() == classes
    assert found.target.tolist() == [0, 1, 0]
    assert found.classes.dtype != object


@pytest.mark.parametrize(
    ("y", "mark"),
    [
        ([0, -1, 1, 0], -1),
        ([0, None, 1, 0], -1),
        (["a", "?", "b", "a"], "?"),
        ([0, np.nan, 1, 0], np.nan),
        (pd.Series([0, pd.NA, 1, 0], dtype="Int64"), None),
    ],
)
def test_unlabeled_label_marks_unlabeled_rows(y: Any, mark: Any) -> None:
    found = read_labels(y, 4, unlabeled_label=mark)
    assert found is not None
    assert found.rows.tolist() == [0, 2, 3]
    assert found.target.tolist() == [0, 1, 0]


def test_the_mark_and_missing_entries_together() -> None:
    found = read_labels([0, -1, None, 1, np.nan], 5, unlabeled_label=-1)
    assert found is not None
    assert found.rows.tolist() == [0, 3]


def test_no_labels() -> None:
    assert read_labels(None, 4) is None


def test_labels_keep_their_type() -> None:
    found = read_labels(np.array([2, 1], dtype=np.uint8), 2)
    assert found is not None
    assert found.classes.dtype == np.uint8


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        ([1, "1"], {}, "y must be words or numbers, one kind, got numbers and words"),
        (np.array([1, "1"], dtype=object), {}, "one kind, got numbers and words"),
        ([True, 2], {}, "one kind, got booleans and numbers"),
        ([None, np.nan], {}, "y must have labels, got none.* pass y=None to fit without labels"),
        ([-1, None], {"unlabeled_label": -1}, "y must have labels, got none.* pass y=None"),
        ([1, 1], {}, "y must have at least 2 classes, got one class, 1"),
        ([1, None], {}, "y must have at least 2 classes, got one class, 1"),
        ([0, 1, 2], {}, "y must have one entry for each of the 2 rows of X, got 3"),
        ([0.5, 1.7], {}, "Unknown label type"),
        ([0.0, np.inf], {}, "y must have finite labels, got inf"),
        ([[0, 1], [1, 0]], {}, "1d array"),
        ([0, 1], {"unlabeled_label": [1, 2]}, "unlabeled_label must be one value"),
    ],
)
def test_refused_labels(y: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_labels(y, 2, **options)


def test_a_mark_that_does_not_occur_warns() -> None:
    with pytest.warns(UserWarning, match="no row has the label -1"):
        read_labels([0, 1], 2, unlabeled_label=-1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_labels([0, 1], 2, unlabeled_label=-1, more_unlabeled=True)
        read_labels([0, -1, 1], 3, unlabeled_label=-1)


def test_minus_one_as_most_frequent_class_warns() -> None:
    with pytest.warns(UserWarning, match="-1 is treated as a class"):
        read_labels([0, 1, -1, -1, -1], 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_labels([1, -1, -1, -1], 4)


@pytest.mark.parametrize("word", ["nan", "None", "<NA>", "NaT"])
def test_missing_entries_as_strings_warn(word: str) -> None:
    y = np.array(["cat", "dog", word])
    with pytest.warns(UserWarning, match=rf"'{word}' in y is treated as a class.*unlabeled_label='{word}'"):
        found = read_labels(y, 3)
    assert found is not None
    assert word in found.classes
    # With the mark, and for words that only contain one, there is no warning.
    marked = read_labels(y, 3, unlabeled_label=word)
    assert marked is not None
    assert marked.classes.tolist() == ["cat", "dog"]
    assert read_labels(["Nancy", "nan bread", "None of these"], 3) is not None


@pytest.mark.parametrize(
    ("classifier", "mark"),
    [
        (SpreadingClassifier(n_clusterings=2, random_state=0), np.nan),
        (FewLabelClassifier(features=None, random_state=0), None),
        (FewLabelClassifier(features=None, unlabeled_label="?", random_state=0), "?"),
        (RBSEClassifier(RBSE(4, n_epochs=1), random_state=0), None),
    ],
)
def test_score_counts_labeled_rows_alone(classifier: Any, mark: Any) -> None:
    X = np.random.default_rng(0).random((40, 3))
    X[20:] += 1
    y = np.repeat(["a", "b"], 20)
    fitted = classifier.fit(X, y) if mark != "?" else classifier.fit(X, y, X_unlabeled=X)
    few = y.astype(object)
    few[5:35] = mark
    kept = [*range(5), *range(35, 40)]
    few[0] = "b"  # not what is predicted: 0 < score < 1
    assert fitted.score(X, few) == np.mean(fitted.predict(X)[kept] == few[kept].astype(str))
    weights = np.arange(40.0)
    right = fitted.predict(X)[kept] == few[kept].astype(str)
    assert fitted.score(X, few, weights) == pytest.approx(np.average(right, weights=weights[kept]))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "y must be labels, got None"),
        ([None] * 40, "y must have labels, got none"),
        (["a"] * 3, "one entry for each of the 40 rows"),
    ],
)
def test_score_refuses_labels(y: Any, message: str) -> None:
    X = np.random.default_rng(0).random((40, 3))
    fitted = SpreadingClassifier(n_clusterings=2, random_state=0).fit(X, np.repeat(["a", "b"], 20))
    with pytest.raises(ValueError, match=message):
        fitted.score(X, y)
