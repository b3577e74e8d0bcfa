"""FewLabelClassifier: labels, relabel, class prior, files, other columns, warnings, and accuracy."""

import copy
import datetime
import re
import struct
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from ebse import FewLabelClassifier, SpreadingClassifier, _archive
from ebse.semi_supervised import SlowFeatures, _members, few_label
from ebse.semi_supervised._class_prior import caution, estimated_prior, prior_weights
from ebse.semi_supervised._members import (
    COLUMNS,
    COMPONENTS,
    FEATURES,
    LINEAR,
    LINEAR_RANKS,
    TREES,
    combined,
    expected_accuracy,
    folds,
    recalls,
    sharpness,
    weight_factors,
)

N = 120


@pytest.fixture(autouse=True, scope="module")
def few_trees() -> Iterator[None]:
    """Five trees instead of a hundred, and one clustering, except where accuracy matters."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_members, "N_TREES", 5)
        patch.setattr(_members, "MOST_FOLDS", 3)
        patch.setattr(few_label, "N_CLUSTERINGS", 1)
        yield


def table_of(n: int = N, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """Columns of every kind that tell three classes apart, and the classes."""
    rng = np.random.default_rng(seed)
    k = np.arange(n) % 3
    words = np.array([["ship", "port", "crew"], ["wind", "rain", "snow"], ["bread", "milk", "salt"]])
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n) + 4 * k,
            "price": np.where(rng.random(n) < 0.1, np.nan, rng.exponential(size=n) * (1 + 3 * k)),
            "color": np.array(["red", "green", "blue", "gray"])[np.where(rng.random(n) < 0.1, 3, k)],
            "new": rng.random(n) < 0.2 + 0.6 * (k == 1),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 200, n) + 300 * k, unit="D"),
            "note": [" ".join(rng.choice(words[c], 3)) + f" word{i}" for i, c in enumerate(k)],
        }
    )
    return frame, np.array(["a", "b", "c"])[k]


X, Y = table_of()
FEW = [str(c) if i < 12 else None for i, c in enumerate(Y)]
NEW, NEW_Y = table_of(60, seed=1)


@pytest.fixture(scope="module")
def held() -> FewLabelClassifier:
    return FewLabelClassifier(random_state=0).fit(X, FEW)


@pytest.fixture
def fitted(held: FewLabelClassifier) -> FewLabelClassifier:
    """A copy that a test may change."""
    return copy.deepcopy(held)


@pytest.fixture(scope="module")
def held_bare() -> FewLabelClassifier:
    return FewLabelClassifier(random_state=0).fit(X)


@pytest.fixture
def bare(held_bare: FewLabelClassifier) -> FewLabelClassifier:
    """Fitted without labels."""
    return copy.deepcopy(held_bare)


def numbers(n: int = 60) -> tuple[Any, Any]:
    """A small table of numbers, for tests that fit often."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 3)) + 4 * y[:, np.newaxis], y


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The smallest members there can be."""
    monkeypatch.setattr(_members, "N_TREES", 2)
    monkeypatch.setattr(_members, "MOST_FOLDS", 2)


# The checks round X to whole numbers and draw y at random: equal rows have several labels, and members disagree.
@pytest.mark.filterwarnings("ignore:distinct rows with several labels:UserWarning")
@pytest.mark.filterwarnings("ignore:the members:UserWarning")
@pytest.mark.usefixtures("small")
@parametrize_with_checks([FewLabelClassifier(random_state=0)])  # type: ignore[untyped-decorator]
def test_scikit_learn_accepts(estimator: Any, check: Any) -> None:
    check(estimator)


def test_new_rows_are_predicted(held: FewLabelClassifier) -> None:
    """Above the frequency of the largest class, a third, by a binomial test at 1 in 1,000."""
    n_right = int((held.predict(NEW) == NEW_Y).sum())
    assert stats.binomtest(n_right, len(NEW), 1 / 3, alternative="greater").pvalue < 1e-3
    p = held.predict_proba(NEW)
    np.testing.assert_allclose(p.sum(1), 1)
    assert held.classes_.tolist() == ["a", "b", "c"]


def test_attributes(held: FewLabelClassifier) -> None:
    assert held.n_features_in_ == 6
    assert held.feature_names_in_.tolist() == list(X.columns)
    assert held.columns_["column"].tolist() == list(X.columns)
    assert held.columns_["kind"].tolist() == ["quantity", "quantity", "category", "binary", "date", "text"]
    assert set(held.members_["member"]) == {COLUMNS, COMPONENTS, LINEAR, LINEAR_RANKS, TREES}
    np.testing.assert_allclose(held.members_["weight"].sum(), 1)
    assert held.class_prior_["class"].tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(held.class_prior_["probability"].sum(), 1)


def test_rows_of_fit(held: FewLabelClassifier) -> None:
    """As predict_proba has them, up to single precision; labeled rows have their labels."""
    np.testing.assert_allclose(held.label_distributions_, held.predict_proba(X), atol=1e-5)
    np.testing.assert_array_equal(held.transduction_, held.predict(X))
    np.testing.assert_array_equal(held.transduction_[:12], Y[:12])
    np.testing.assert_array_equal(held.label_distributions_[:12].max(1), 1)
    assert held.label_distributions_[12:].max() < 1


def test_label_distributions_are_a_copy(fitted: FewLabelClassifier) -> None:
    fitted.label_distributions_[:] = 0
    assert fitted.label_distributions_.min() > -1
    np.testing.assert_allclose(fitted.label_distributions_.sum(1), 1)


def test_a_wrong_label_is_kept(bare: FewLabelClassifier) -> None:
    """Also in a row equal to the labeled one, which all members predict otherwise."""
    y = [*FEW[:11], "a", *([None] * (N - 12))]
    assert Y[11] == "c"
    fitted = bare.relabel(y=y)
    assert fitted.predict(X.iloc[[11, 11]]).tolist() == ["a", "a"]
    assert fitted.transduction_[11] == "a"
    without = bare.relabel(y=[*FEW[:11], *([None] * (N - 11))])
    assert without.predict(X.iloc[[11]]).tolist() == ["c"]


def forms_of_y() -> dict[str, Any]:
    unlabeled = N - 12
    return {
        "list with None": (FEW, None),
        "NaN": ([*FEW[:12], *([np.nan] * unlabeled)], None),
        "pd.NA": ([*FEW[:12], *([pd.NA] * unlabeled)], None),
        "series": (pd.Series(FEW, index=range(N, 0, -1)), None),
        "string dtype": (pd.Series(FEW, dtype="string"), None),
        "category": (pd.Series(FEW, dtype="category"), None),
        "polars": (pl.Series(FEW), None),
        "array": (np.array(FEW, dtype=object), None),
        "a word": ([*FEW[:12], *(["?"] * unlabeled)], "?"),
    }


@pytest.mark.parametrize("form", forms_of_y())
def test_forms_of_y(form: str, held: FewLabelClassifier, bare: FewLabelClassifier) -> None:
    """Labels after fit give what labels in fit do, whatever the form of y."""
    y, mark = forms_of_y()[form]
    found = bare.set_params(unlabeled_label=mark).relabel(y=y)
    np.testing.assert_allclose(found.predict_proba(NEW), held.predict_proba(NEW))


@pytest.mark.usefixtures("small")
def test_forms_of_y_in_fit() -> None:
    rows, y = numbers()
    expected = FewLabelClassifier(random_state=0).fit(rows, np.where(np.arange(60) < 6, y, np.nan))
    for labels, mark in ((np.where(np.arange(60) < 6, y, -1), -1), ([*y[:6].tolist(), *([None] * 54)], None)):
        found = FewLabelClassifier(random_state=0, unlabeled_label=mark).fit(rows, labels)
        np.testing.assert_allclose(found.predict_proba(rows), expected.predict_proba(rows))
    more = FewLabelClassifier(random_state=0).fit(rows[:6], y[:6], X_unlabeled=rows[6:])
    np.testing.assert_allclose(more.predict_proba(rows), expected.predict_proba(rows))
    np.testing.assert_array_equal(more.transduction_, expected.transduction_.astype(int))
    assert len(more.transduction_) == 60
    nothing = FewLabelClassifier(random_state=0).fit(rows, labels, X_unlabeled=rows[:0])
    assert len(nothing.transduction_) == 60


def test_without_labels(bare: FewLabelClassifier) -> None:
    uses: list[Callable[[], Any]] = [
        lambda: bare.predict(X),
        lambda: bare.predict_proba(X),
        lambda: bare.transduction_,
    ]
    for use in uses:
        with pytest.raises(NotFittedError, match=r"fitted without labels .*; call relabel"):
            use()
    assert not hasattr(bare, "classes_")
    first = bare.suggest(6)
    assert len(set(first)) == 6
    assert not set(bare.suggest(6, exclude=first)) & set(first)
    chosen = bare.suggest(3, X=NEW)
    assert max(chosen) < len(NEW)
    labeled = bare.relabel(X.iloc[first], Y[first])
    assert not set(labeled.suggest(6)) & set(first)
    np.testing.assert_array_equal(labeled.predict(X.iloc[first]), Y[first])


def test_empty_rows_are_not_suggested(tmp_path: Path) -> None:
    """Nobody can label them; before and after a file, of the rows of fit and of others."""
    frame = pd.concat([X, pd.DataFrame(index=range(3), columns=X.columns)], ignore_index=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = FewLabelClassifier(random_state=0).fit(frame)
        made.save(tmp_path / "a.safetensors")
        for one in (made, FewLabelClassifier.load(tmp_path / "a.safetensors")):
            assert set(one.suggest(200)) & {N, N + 1, N + 2} == set()
        assert len(made.suggest(1, X=frame.iloc[N:])) == 0
    made._empty = np.empty(0, dtype=np.intp)
    assert set(made.suggest(200)) & {N, N + 1, N + 2}


def test_suggest_needs_a_number(held: FewLabelClassifier) -> None:
    with pytest.raises(TypeError, match=r"n must be a whole number, got an array; pass rows as X="):
        held.suggest(np.eye(2))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="exclude must hold indices of rows"):
        held.suggest(2, exclude=[N])


def test_before_fit() -> None:
    for use in ("predict", "predict_proba", "suggest", "save", "relabel"):
        with pytest.raises(NotFittedError):
            getattr(FewLabelClassifier(), use)(*([] if use in ("suggest", "relabel") else [X]))


def test_relabel_is_fit_with_these_labels(held: FewLabelClassifier, bare: FewLabelClassifier) -> None:
    expected = held.predict_proba(NEW)
    np.testing.assert_allclose(bare.relabel(y=FEW).predict_proba(NEW), expected)
    other = [None if label else str(c) for label, c in zip(FEW, Y, strict=True)]
    changed = bare.relabel(y=other).predict_proba(NEW)
    assert abs(changed - expected).max() > 0.01
    for rows, y in ((X, FEW), (X.iloc[:12], Y[:12])):
        np.testing.assert_allclose(bare.relabel(rows, y).predict_proba(NEW), expected, atol=1e-6)


def test_relabel_with_rows_that_fit_did_not_have(bare: FewLabelClassifier) -> None:
    fitted = bare.relabel(NEW, NEW_Y)
    np.testing.assert_array_equal(fitted.predict(NEW), NEW_Y)
    assert (
        stats.binomtest(int((fitted.transduction_ == Y).sum()), N, 1 / 3, alternative="greater").pvalue < 1e-3
    )


def test_relabel_of_propagation_leaves_the_others(fitted: FewLabelClassifier) -> None:
    before = dict(fitted._supervised)
    p = fitted.predict_proba(NEW)
    y = [str(c) if i < 30 else None for i, c in enumerate(Y)]
    fitted.relabel(y=y, members="propagation")
    assert all(fitted._supervised[name] is one for name, one in before.items())
    np.testing.assert_array_equal(fitted.transduction_[:30], Y[:30])
    np.testing.assert_allclose(fitted.label_distributions_, fitted.predict_proba(X), atol=1e-5)
    assert abs(fitted.predict_proba(NEW) - p).max() > 1e-3
    assert "10 labels per class" in fitted.members_["why"][4]
    fitted.relabel(y=y)
    assert all(fitted._supervised[name] is not one for name, one in before.items())


def test_a_new_class(fitted: FewLabelClassifier) -> None:
    """Supervised members learn it also where propagation alone was wanted."""
    y = [*FEW[:12], "d", *([None] * (N - 13))]
    fitted.relabel(y=y, members="propagation")
    assert fitted.classes_.tolist() == ["a", "b", "c", "d"]
    assert fitted.predict_proba(NEW).shape == (60, 4)
    assert fitted.transduction_[12] == "d"
    assert len(fitted.class_prior_) == 4


def test_a_lost_class_is_named_once(fitted: FewLabelClassifier) -> None:
    y = [label if label != "a" else None for label in FEW]
    with pytest.warns(
        UserWarning, match="no label is 'a' any more, and no row will be predicted as that"
    ) as seen:
        fitted.relabel(y=y)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert fitted.classes_.tolist() == ["b", "c"]


def test_labels_are_removed(fitted: FewLabelClassifier) -> None:
    fitted.relabel()
    with pytest.raises(NotFittedError):
        fitted.predict(X)
    assert not any(hasattr(fitted, name) for name in ("classes_", "members_", "class_prior_"))
    with pytest.raises(NotFittedError):
        _ = fitted.transduction_


def test_arguments_of_relabel(fitted: FewLabelClassifier) -> None:
    with pytest.raises(ValueError, match="y must be given with X, got None"):
        fitted.relabel(X)
    with pytest.raises(ValueError, match="members must be one of 'all', 'propagation'"):
        fitted.relabel(y=FEW, members="trees")
    with pytest.raises(ValueError, match=f"y must have one entry for each of the {N} rows of X, got 5"):
        fitted.relabel(y=FEW[:5])


def attributes_of(model: Any) -> dict[str, Any]:
    return {name: id(value) for name, value in vars(model).items()}


@pytest.mark.parametrize(
    ("rows", "y", "error"),
    [
        (X, ["a"] * N, "at least 2 classes, got one class"),
        (X, [None] * N, "y must have labels, got none"),
        (X, FEW[:5], "y must have one entry for each"),
        (X.assign(size=np.inf), FEW, "got infinity in row 0, column 'size'"),
        (X.assign(**dict.fromkeys(X.columns, 1)), FEW, "X must have a column that tells rows apart"),
        (X.iloc[:0], [], "X must have rows, got 0 sample"),
        (X[[]], FEW, "X must have columns, got 0 feature"),
    ],
)
def test_a_failed_fit_leaves_the_classifier(
    rows: Any, y: Any, error: str, fitted: FewLabelClassifier
) -> None:
    before, p = attributes_of(fitted), fitted.predict_proba(NEW)
    with pytest.raises(ValueError, match=error):
        fitted.fit(rows, y)
    assert attributes_of(fitted) == before
    np.testing.assert_array_equal(fitted.predict_proba(NEW), p)


def test_a_failure_in_the_middle_leaves_the_classifier(
    fitted: FewLabelClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, p = attributes_of(fitted), fitted.predict_proba(NEW)

    def interrupted(*args: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(few_label, "member_weights", interrupted)
    uses: list[Callable[[], Any]] = [lambda: fitted.fit(NEW, NEW_Y), lambda: fitted.relabel(NEW, NEW_Y)]
    for use in uses:
        with pytest.raises(KeyboardInterrupt):
            use()
        assert attributes_of(fitted) == before
        np.testing.assert_array_equal(fitted.predict_proba(NEW), p)
    fitted.set_params(class_prior={"a": 0.5, "b": 0.5})
    with pytest.raises(ValueError, match="class_prior must have a probability for each"):
        fitted.relabel(y=FEW)
    np.testing.assert_array_equal(fitted.set_params(class_prior="estimate").predict_proba(NEW), p)


def test_class_priors(bare: FewLabelClassifier) -> None:
    """A given prior is used as it is, and moves predictions toward its larger classes."""
    y = [*FEW[:12], *Y[12:18:3], *([None] * (N - 14))]
    given = {"a": 0.8, "b": 0.1, "c": 0.1}
    found = {}
    for name, prior in {"estimate": "estimate", "equal": "equal", "labels": None, "given": given}.items():
        fitted = bare.set_params(class_prior=prior).relabel(y=y)
        found[name] = fitted.class_prior_["probability"].tolist()
        error = fitted.class_prior_["standard error"]
        assert (error > 0).all() if name == "estimate" else (error == 0).all()
        if name == "given":
            assert all(one.class_prior == {0: 0.8, 1: 0.1, 2: 0.1} for one in fitted._propagators.values())
            as_given = fitted.predict_proba(NEW)[:, 0].mean()
        if name == "equal":
            as_equal = fitted.predict_proba(NEW)[:, 0].mean()
    assert found["equal"] == [1 / 3] * 3
    assert found["given"] == [0.8, 0.1, 0.1]
    np.testing.assert_allclose(found["labels"], [6 / 14, 4 / 14, 4 / 14])
    assert as_given > as_equal
    series = bare.set_params(class_prior=pd.Series(given)).relabel(y=y)
    np.testing.assert_allclose(series.predict_proba(NEW)[:, 0].mean(), as_given)


def test_a_given_prior_weighs_the_classes(bare: FewLabelClassifier) -> None:
    """By the weights with which the unlabeled rows have it."""
    prior = np.array([0.8, 0.1, 0.1])
    fitted = bare.set_params(class_prior=dict(zip("abc", prior, strict=True))).relabel(y=FEW)
    answers, weights = fitted._sampled_answers(), fitted.members_.set_index("member")["weight"].to_dict()
    unlabeled = {name: p[12:] for name, p in answers.items()}
    balanced = prior_weights(combined(unlabeled, weights, np.ones(3)), prior)
    p = combined(answers, weights, balanced) ** fitted._sharpness
    np.testing.assert_allclose(fitted.label_distributions_[12:], (p / p.sum(1, keepdims=True))[12:])


def test_an_unequal_prior_is_estimated() -> None:
    """Nine rows of ten are of one class: it is estimated as the larger one, and equal classes are not."""
    rng = np.random.default_rng(0)
    y = (np.arange(200) % 10 == 0).astype(int)
    rows = rng.normal(size=(200, 2)) + 6 * y[:, np.newaxis]
    few = [int(c) if i in (0, 1, 10, 11) else None for i, c in enumerate(y)]
    fitted = FewLabelClassifier(random_state=0).fit(rows, few)
    found = fitted.class_prior_["probability"].to_numpy()
    # Shrunk toward equal classes: (0.9 + 0.05) / 1.1.
    np.testing.assert_allclose(found, [0.95 / 1.1, 0.15 / 1.1], atol=0.1)
    # Predictions use a power of it.
    answers, weights = fitted._sampled_answers(), fitted.members_.set_index("member")["weight"].to_dict()
    power = caution(found, 2)
    p = combined(answers, weights, found**power) ** fitted._sharpness
    unlabeled = np.flatnonzero([label is None for label in few])
    expected = (p / p.sum(1, keepdims=True))[unlabeled]
    np.testing.assert_allclose(fitted.label_distributions_[unlabeled], expected)
    assert power == 0.2


def test_the_prior_is_estimated_from_unlabeled_rows(held: FewLabelClassifier) -> None:
    answers, weights = held._sampled_answers(), held.members_.set_index("member")["weight"].to_dict()
    without = {name: p[12:] for name, p in answers.items()}
    for found, column in zip(
        estimated_prior(without, weights), ("probability", "standard error"), strict=True
    ):
        np.testing.assert_allclose(held.class_prior_[column], found)
    assert abs(estimated_prior(answers, weights)[0] - held.class_prior_["probability"]).max() > 1e-5


def test_the_mean_confidence_is_the_accuracy_that_is_expected(fitted: FewLabelClassifier) -> None:
    """By agreement and confidence of the members, and by cross-validated recall."""
    answers = {name: p[12:] for name, p in fitted._sampled_answers().items()}
    unlabeled = np.zeros(N - 12, dtype=bool), np.empty(0, dtype=np.intp)
    sharp = fitted._combined(answers, *unlabeled)
    fitted._sharpness = 1.0
    plain = fitted._combined(answers, *unlabeled)
    assert fitted._recall is not None
    by_recall = float(fitted._recall @ fitted.class_prior_["probability"])
    expected = expected_accuracy(
        answers, plain, np.array([4, 4, 4]), cross_validated=by_recall, n_cross_validated=12
    )
    np.testing.assert_allclose(sharp.max(1).mean(), expected, atol=1e-4)
    assert abs(plain.max(1).mean() - expected) > 1e-3


def test_left_out_rows_are_answered_without_their_labels(bare: FewLabelClassifier) -> None:
    """By members that learn from the other folds alone, as if their labels were the only ones."""
    rows, target = bare._kept_rows("a test").take(np.arange(12)), np.unique(Y[:12], return_inverse=True)[1]
    found, known = bare._left_out_answers(rows, target, 3)
    order = np.random.default_rng(bare._seed).permutation(
        np.unique(bare._propagators[COLUMNS]._keys(rows.spreads[COLUMNS]), return_index=True)[1]
    )
    parts = folds(target[order], 3, seed=bare._seed)
    np.testing.assert_array_equal(known, target[order][np.concatenate([test for _, test in parts])])
    train, test = (order[part] for part in parts[0])
    other = copy.deepcopy(bare).relabel(X.iloc[train], target[train])
    expected = other._member_answers(rows.take(test))
    assert set(found) == set(expected)
    for name, p in expected.items():
        np.testing.assert_allclose(found[name][: len(test)], p, atol=1e-6)
    seen = copy.deepcopy(bare).relabel(X.iloc[:12], target)._member_answers(rows.take(test))
    for name in (LINEAR, LINEAR_RANKS, TREES):
        assert abs(found[name][: len(test)] - seen[name]).max() > 1e-3


@pytest.mark.parametrize("n_copies", [1, 3])
def test_random_labels_are_not_confirmed_by_cross_validation(n_copies: int) -> None:
    """Labels that have nothing to do with the rows: by chance, also where each row is there several times.

    In an interval at 1 in a million.
    """
    rng = np.random.default_rng(0)
    rows = np.repeat(rng.normal(size=(100, 3)), n_copies, axis=0)
    noise = np.repeat(rng.permutation(np.arange(100) % 2), n_copies)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = FewLabelClassifier(random_state=0).fit(rows, noise)
    low, high = stats.binom.interval(1 - 1e-6, 100, 0.5)
    assert made._n_left_out == 100
    assert made._recall is not None
    assert low <= 50 * made._recall.sum() <= high
    seen = made._member_answers(made._kept_rows("a test"))
    assert not low <= (seen[TREES].argmax(1) == noise)[::n_copies].sum() <= high


@pytest.mark.parametrize("prior", ["estimate", {"a": 0.6, "b": 0.3, "c": 0.1}])
def test_weights_and_confidence_are_from_left_out_rows(prior: Any, bare: FewLabelClassifier) -> None:
    bare.set_params(class_prior=prior).relabel(y=FEW)
    rows, target = bare._kept_rows("a test").take(np.arange(12)), np.unique(Y[:12], return_inverse=True)[1]
    left_out, known = bare._left_out_answers(rows, target, 3)
    assert bare._factors == pytest.approx(weight_factors(left_out, known))
    assert bare._recall is not None
    np.testing.assert_allclose(bare._recall, recalls(bare._mixed(left_out), known))
    assert bare._n_left_out == 12


def test_cross_validation_needs_three_labels_of_two_classes(bare: FewLabelClassifier) -> None:
    few = [label if i < 6 else None for i, label in enumerate(FEW)]
    bare.relabel(y=few)
    assert bare._factors == {}
    assert (bare._recall, bare._n_left_out) == (None, 0)
    assert not bare.members_["why"].str.contains("cross-validation").any()


def test_a_class_of_few_labels_is_always_learned(bare: FewLabelClassifier) -> None:
    """And the other classes are cross-validated all the same."""
    target = np.unique(Y, return_inverse=True)[1]
    few = [
        Y[i] if (target[i] < 2 and i < 40) or i in np.flatnonzero(target == 2)[:2] else None for i in range(N)
    ]
    bare.relabel(y=few)
    assert bare._n_left_out == sum(label in ("a", "b") for label in few)
    assert bare.members_["why"].str.contains("by cross-validation").all()


def test_relabel_of_propagation_keeps_what_cross_validation_found(fitted: FewLabelClassifier) -> None:
    """With the number of labels that it is from: many new ones do not make it more certain."""
    before = fitted._factors, fitted._recall, fitted._n_left_out
    fitted.relabel(y=Y, members="propagation")
    assert (fitted._factors, fitted._recall, fitted._n_left_out) == before
    fitted.relabel(y=Y)
    assert fitted._n_left_out == N


def test_many_labels_are_cross_validated_in_part(
    bare: FewLabelClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(few_label, "MOST_LEFT_OUT", 50)
    assert bare.relabel(y=Y)._n_left_out == 50


@pytest.mark.parametrize("n_labels", [6, 12])
def test_confidence_after_load(n_labels: int, fitted: FewLabelClassifier, file: Path) -> None:
    """The rows of fit are not there: by the left-out rows, or as it was."""
    loaded = FewLabelClassifier.load(file)
    before = loaded._sharpness
    loaded.relabel(X.iloc[:n_labels], Y[:n_labels])
    if n_labels == 6:
        assert loaded._sharpness == before
        return
    rows = loaded._rows_in(X.iloc[:n_labels])
    target = np.unique(Y[:n_labels], return_inverse=True)[1]
    left_out, known = loaded._left_out_answers(rows, target, 3)
    p = loaded._mixed(left_out)
    recall = float(recalls(p, known) @ loaded._prior)
    expected = expected_accuracy(left_out, p, np.full(3, 4), cross_validated=recall, n_cross_validated=12)
    assert loaded._sharpness == pytest.approx(sharpness(p, expected))


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ("eqal", "class_prior must be 'estimate', 'equal', None or a mapping, got 'eqal'"),
        (0.5, "class_prior must be None, 'equal' or a mapping, got 0.5"),
        ({"a": 0.5, "b": 0.5}, r"got none for 'c'"),
        ({"a": 0.5, "b": 0.3, "c": 0.3}, "sum to 1"),
        ({"a": -1, "b": 1, "c": 1}, "class_prior must be positive"),
        ({"a": 0.2, "b": 0.3, "c": 0.4, "d": 0.1}, "one for 'd', which no row is labeled with"),
    ],
)
def test_wrong_priors(prior: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FewLabelClassifier(class_prior=prior).fit(X, FEW)


@pytest.mark.parametrize("features", ["pca", PCA, 3, StandardScaler])
def test_wrong_features(features: Any) -> None:
    with pytest.raises(
        TypeError, match=r"features must be an estimator with transform, got .*; pass an instance"
    ):
        FewLabelClassifier(features=features).fit(X, FEW)


@pytest.mark.usefixtures("small")
def test_features() -> None:
    rows, y = numbers()
    few = [int(c) if i < 6 else None for i, c in enumerate(y)]
    plain = FewLabelClassifier(features=None, random_state=0).fit(rows, few)
    automatic = FewLabelClassifier(random_state=0).fit(rows, few)
    assert FEATURES not in set(automatic.members_["member"])
    np.testing.assert_array_equal(plain.predict_proba(rows), automatic.predict_proba(rows))
    of_sparse = FunctionTransformer(sparse.csr_matrix)
    for features in (PCA(2), of_sparse, FrozenEstimator(StandardScaler().fit(rows))):
        fitted = FewLabelClassifier(features=features, random_state=0).fit(rows, few)
        weights = fitted.members_.set_index("member")["weight"]
        assert weights[FEATURES] == max(weights)
        np.testing.assert_array_equal(fitted.transduction_[:6], y[:6])
        assert len(fitted.suggest(2)) == 2
    assert not hasattr(features.estimator, "classes_")


@pytest.mark.usefixtures("small")
def test_features_are_learned_from_many_rows_and_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few_label, "MANY_COLUMNS", 3)
    monkeypatch.setattr(few_label, "MANY_ROWS", 60)
    # Training takes seconds: that it is ContrastiveFeatures is all that matters.
    monkeypatch.setattr("ebse.semi_supervised.contrastive.ContrastiveFeatures", lambda: PCA(2))
    rows, y = numbers()
    fitted = FewLabelClassifier(random_state=0).fit(rows, y)
    assert FEATURES in set(fitted.members_["member"])
    assert isinstance(fitted._features, PCA)
    assert FEATURES not in set(FewLabelClassifier(features=None).fit(rows, y).members_["member"])
    words = pd.DataFrame(rows, columns=list("abc")).assign(d=np.array(["x", "y", "z"])[np.arange(60) % 3])
    assert FEATURES not in set(FewLabelClassifier(random_state=0).fit(words, y).members_["member"])
    assert FEATURES not in set(FewLabelClassifier(random_state=0).fit(rows[1:], y[1:]).members_["member"])


@pytest.fixture(scope="module")
def file(held: FewLabelClassifier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("file") / "a.safetensors"
    held.save(path)
    return path


def test_a_file_predicts_the_same(held: FewLabelClassifier, file: Path, tmp_path: Path) -> None:
    loaded = FewLabelClassifier.load(file)
    np.testing.assert_array_equal(loaded.predict_proba(NEW), held.predict_proba(NEW))
    np.testing.assert_array_equal(loaded.predict_proba(X), held.predict_proba(X))
    for name in ("columns_", "members_", "class_prior_"):
        pd.testing.assert_frame_equal(getattr(loaded, name), getattr(held, name))
    assert loaded.get_params() == held.get_params()
    assert loaded.feature_names_in_.tolist() == held.feature_names_in_.tolist()
    # The same estimator gives the same bytes, also after it was loaded.
    loaded.save(tmp_path / "b.safetensors")
    assert (tmp_path / "b.safetensors").read_bytes() == file.read_bytes()


def test_rows_must_be_given_after_load(held: FewLabelClassifier, file: Path) -> None:
    loaded = FewLabelClassifier.load(file)
    for name in ("transduction_", "label_distributions_"):
        # AttributeError, so that hasattr and the display of notebooks work.
        assert not hasattr(loaded, name)
        with pytest.raises(AttributeError, match=r"about the rows of fit, .* call predict\(X\)"):
            getattr(loaded, name)
    with pytest.raises(ValueError, match=r"relabel without X needs the rows of fit, .*; pass rows as X"):
        loaded.relabel(y=FEW)
    np.testing.assert_array_equal(loaded.suggest(5), held.suggest(5))
    np.testing.assert_array_equal(loaded.suggest(5, X=NEW), held.suggest(5, X=NEW))


@pytest.mark.parametrize("members", ["all", "propagation"])
def test_labels_after_load(members: str, fitted: FewLabelClassifier, file: Path) -> None:
    """All members count, with the weights that they have in memory."""
    loaded = FewLabelClassifier.load(file)
    both = [one.relabel(X.iloc[:30], Y[:30], members=members) for one in (loaded, fitted)]
    pd.testing.assert_frame_equal(both[0].members_, both[1].members_)
    np.testing.assert_array_equal(loaded.predict(X.iloc[:30]), Y[:30])
    n_right = int((loaded.predict(NEW) == NEW_Y).sum())
    assert stats.binomtest(n_right, len(NEW), 1 / 3, alternative="greater").pvalue < 1e-3
    for name in (LINEAR, LINEAR_RANKS):
        np.testing.assert_allclose(loaded._supervised[name].coef, fitted._supervised[name].coef, atol=1e-4)


def test_a_file_without_labels(bare: FewLabelClassifier, tmp_path: Path) -> None:
    bare.save(tmp_path / "a.safetensors")
    loaded = FewLabelClassifier.load(tmp_path / "a.safetensors")
    with pytest.raises(NotFittedError, match="call relabel"):
        loaded.predict(X)
    np.testing.assert_array_equal(loaded.suggest(5), bare.suggest(5))
    loaded.relabel(X, FEW)
    np.testing.assert_array_equal(loaded.predict(X.iloc[:12]), Y[:12])


@pytest.mark.usefixtures("small")
def test_parameters_of_a_file(tmp_path: Path) -> None:
    """Columns by number, a prior, and features of ours; another fit with them works."""
    rows, y = numbers()
    rows[:, 2] = np.arange(60) % 4
    prior = {0: 0.3, 1: 0.7}
    columns = {2: "category", np.int64(0): "quantity"}
    options: dict[str, Any] = {
        "class_prior": prior,
        "columns": columns,
        "unlabeled_label": -1,
        "random_state": 3,
    }
    labels = np.where(np.arange(60) < 8, y, -1)
    for features in (None, SlowFeatures(n_components=3, n_random=5, random_state=0)):
        fitted = FewLabelClassifier(features=features, **options).fit(rows, labels)
        fitted.save(tmp_path / "a.safetensors")
        loaded = FewLabelClassifier.load(tmp_path / "a.safetensors")
        assert {name: getattr(loaded, name) for name in options} == options
        np.testing.assert_array_equal(loaded.predict_proba(rows), fitted.predict_proba(rows))
        again = clone(loaded).fit(rows, labels)
        np.testing.assert_allclose(again.predict_proba(rows), fitted.predict_proba(rows), atol=1e-6)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "labels", [np.array([5, 7]), np.array([1.0, 3.0]), np.array([False, True]), np.array(["ä", "b"])]
)
def test_classes_of_a_file(labels: Any, tmp_path: Path) -> None:
    rows, y = numbers(20)
    fitted = FewLabelClassifier(random_state=0).fit(rows, labels[y])
    fitted.save(tmp_path / "a.safetensors")
    loaded = FewLabelClassifier.load(tmp_path / "a.safetensors")
    assert loaded.classes_.dtype == fitted.classes_.dtype
    np.testing.assert_array_equal(loaded.predict(rows), labels[y])


@pytest.mark.usefixtures("small")
def test_foreign_features_are_not_saved(tmp_path: Path) -> None:
    rows, y = numbers()
    fitted = FewLabelClassifier(features=PCA(2), random_state=0).fit(rows, y)
    with pytest.raises(
        TypeError, match="features must be an estimator of ebse to be saved, got PCA; fit with features=None"
    ):
        fitted.save(tmp_path / "a.safetensors")
    assert not list(tmp_path.iterdir())


def test_rows_are_not_in_the_file(tmp_path: Path) -> None:
    """Neither a word of one row nor a number of one; the twin, words of two rows and the median, are."""
    frame, y = table_of(300)
    frame.loc[100, "note"] += " xylophone"
    frame.loc[[7, 200], "note"] += " theodolite"
    frame.loc[150, "size"] = 3.14159
    few = [str(c) if i < 12 else None for i, c in enumerate(y)]
    fitted = FewLabelClassifier(random_state=0).fit(frame, few)
    fitted.save(tmp_path / "a.safetensors")
    content = (tmp_path / "a.safetensors").read_bytes()
    assert b"theodolite" in content
    assert b"xylophone" not in content
    assert b"word100" not in content

    def holds(value: float) -> bool:
        return any(struct.pack(form, value) in content for form in ("<d", "<f"))

    assert holds(float(np.quantile(frame["size"], 0.5)))
    assert not holds(3.14159)
    assert not any(holds(x) for x in frame["size"].sort_values()[1:-1])


def test_files_of_others(file: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.safetensors"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    with pytest.raises(ValueError, match=r"damaged\.safetensors is damaged"):
        FewLabelClassifier.load(damaged)
    damaged.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"damaged\.safetensors must be a file written by ebse"):
        FewLabelClassifier.load(damaged)
    with pytest.raises(
        ValueError, match=r"a\.safetensors must hold kind 'SpreadingClassifier', got 'FewLabelClassifier'"
    ):
        SpreadingClassifier.load(file)
    with pytest.raises(FileNotFoundError, match=r"none\.safetensors does not exist"):
        FewLabelClassifier.load(tmp_path / "none.safetensors")


def outcome(path: Path, state: Any) -> str:
    """Of loading and using a state: nothing, "refused" in the words of the project, or another message."""
    _archive.write(path, "FewLabelClassifier", *state)
    try:
        loaded = FewLabelClassifier.load(path)
    except ValueError as error:
        return "refused" if f"{path.name} must hold what ebse wrote" in str(error) else str(error)
    loaded.suggest(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return "" if not hasattr(loaded, "classes_") or len(loaded.predict_proba(NEW)) == 60 else "other rows"


def test_contradictory_files_are_refused(held: FewLabelClassifier, tmp_path: Path) -> None:
    """Each fact and array is left out, each array cut: refused with the name of the file, or harmless."""
    path = tmp_path / "a.safetensors"
    facts, arrays = held._state()
    assert outcome(path, (facts, arrays)) == ""
    own = [name for name in arrays if not name.startswith("propagation")]
    changed = {f"no {name}": ({k: v for k, v in facts.items() if k != name}, arrays) for name in facts}
    changed |= {f"no {name}": (facts, {k: v for k, v in arrays.items() if k != name}) for name in own}
    for name in own:
        cut = arrays[name][..., :-1]
        changed[f"cut {name}"] = (facts, {**arrays, name: cut})
    found = {name: outcome(path, state) for name, state in changed.items()}
    assert set(found.values()) == {"", "refused"}
    # Other rows by which members are compared, a tree less, and no cross-validation.
    assert {name for name, message in found.items() if not message} == {
        "cut empty",
        "cut sample",
        "cut trees.roots",
        "no recall",
    }


def doctored(facts: Any, arrays: Any, where: list[Any], value: Any) -> Any:
    facts = copy.deepcopy(facts)
    at = facts
    for key in where[:-1]:
        at = at[key]
    at[where[-1]] = value
    return facts, arrays


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (["parameters", "size"], 3),
        (["given_prior"], "eqal"),
        (["classes", "values"], ["a", "b"]),
        (["classes", "values"], ["c", "b", "a"]),
        (["n_features"], 5),
        (["feature_names"], ["size"]),
        (["feature_names"], ["price", "size", "color", "new", "day", "note"]),
        (["seed"], "x"),
        (["members", "weight"], [0.2, 0.2, 0.2, 0.2, "x"]),
        (["members", "weight"], [float("inf"), 0.2, 0.2, 0.2, 0.2]),
        (["members", "weight"], [0.5, 0.5, 0.5, 0.5, 0.5]),
        (["members", "member"], ["a", "b", "c", "d", "e"]),
        (["sharpness"], 0.0),
        (["sharpness"], float("nan")),
        (["factors"], {COLUMNS: 0.5}),
        (["factors"], dict.fromkeys((COLUMNS, COMPONENTS, LINEAR, LINEAR_RANKS, TREES), 2.0)),
        (["factors"], 1),
        (["n_left_out"], -1),
        (["propagators"], [COLUMNS]),
        (["propagators"], []),
        (["linear"], []),
        (["linear"], [[LINEAR, "standard"], [LINEAR_RANKS, "views"]]),
        ([COLUMNS, "class"], "RBSE"),
        ([COLUMNS, "n_features"], 2),
        (["features"], "omitted"),
        (["table", "columns", 0, 0], "color"),
        (["table", "columns", 0, 4], -1),
    ],
)
def test_doctored_facts_are_refused(where: Any, value: Any, held: FewLabelClassifier, tmp_path: Path) -> None:
    assert outcome(tmp_path / "a.safetensors", doctored(*held._state(), where, value)) == "refused"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sample", np.array([0, N])),
        ("sample", np.array([-1, 2])),
        ("sample", np.array([0.0, 2.0])),
        ("sample", np.array([], dtype=np.int64)),
        ("prior", np.array([0.5, 0.5, 0.0])),
        ("prior", np.array([0.5, np.nan, 0.5])),
        ("center", np.zeros(3, dtype=np.float32)),
        ("axes", np.zeros((10, 3), dtype=np.float32)),
        ("recall", np.zeros(2)),
        (f"{LINEAR}.coef", np.zeros((3, 2), dtype=np.float32)),
        (f"{LINEAR_RANKS}.coef", np.zeros((3, 2), dtype=np.float32)),
        (f"{TREES}.roots", np.array([10**6], dtype=np.int32)),
    ],
)
def test_doctored_arrays_are_refused(name: str, value: Any, held: FewLabelClassifier, tmp_path: Path) -> None:
    facts, arrays = held._state()
    assert name in arrays
    assert outcome(tmp_path / "a.safetensors", (facts, {**arrays, name: value})) == "refused"


def test_doctored_files_without_labels_are_refused(bare: FewLabelClassifier, tmp_path: Path) -> None:
    facts, arrays = bare._state()
    path = tmp_path / "a.safetensors"
    assert outcome(path, (facts, arrays)) == ""
    for name, value in (("sample", np.array([N])), ("axes", np.zeros((10, 3))), ("center", np.zeros(3))):
        assert outcome(path, (facts, {**arrays, name: value})) == "refused"
    assert outcome(path, doctored(facts, arrays, ["propagators"], [])) == "refused"


def test_columns_that_are_missing(held: FewLabelClassifier) -> None:
    message = "X must have the columns of fit, got none named 'color', 'day'; add them, with missing values"
    with pytest.raises(ValueError, match=message):
        held.predict(NEW.drop(columns=["color", "day"]))
    with pytest.raises(ValueError, match="X_unlabeled must have the columns of fit, got none named 'color'"):
        FewLabelClassifier().fit(X, FEW, X_unlabeled=NEW.drop(columns="color"))


def test_columns_beyond_those_of_fit(held: FewLabelClassifier) -> None:
    with pytest.warns(
        UserWarning, match="X has columns that fit did not have, and they are not used: 'more', 'x'$"
    ):
        found = held.predict_proba(NEW.assign(more=1, x=2))
    np.testing.assert_array_equal(found, held.predict_proba(NEW))


def test_columns_in_another_order(held: FewLabelClassifier) -> None:
    found = held.predict_proba(NEW[list(reversed(NEW.columns))])
    np.testing.assert_array_equal(found, held.predict_proba(NEW))


def test_columns_of_another_type(held: FewLabelClassifier) -> None:
    """The same values in other types give the same; values that cannot be read are missing."""
    other = NEW.assign(
        size=NEW["size"].astype(object),
        price=[None if pd.isna(x) else repr(float(x)) for x in NEW["price"]],
        color=NEW["color"].astype("category"),
        new=NEW["new"].astype(int),
        day=[f"{day:%d.%m.%Y}" for day in NEW["day"]],
    )
    np.testing.assert_array_equal(held.predict_proba(other), held.predict_proba(NEW))
    odd = NEW.assign(size="large", day=3.5, color=pd.Timestamp("2020-01-01"), note=7)
    empty = NEW.assign(size=np.nan, day=None, color=None, note=None)
    with pytest.warns(UserWarning, match="column '") as said:
        found = held.predict_proba(odd)
    assert [str(w.message).partition(":")[0] for w in said] == [
        "column 'size' held numbers in fit, and 60 of 60 entries such as 'large' cannot be read so",
        "column 'color'",
        "column 'day' held dates in fit, and 60 of 60 entries such as '3.5' cannot be read so",
    ]
    np.testing.assert_allclose(found, held.predict_proba(empty), atol=1e-6)
    assert np.isfinite(found).all()


@pytest.mark.usefixtures("small")
def test_columns_that_were_dropped_are_not_needed() -> None:
    rows, y = numbers()
    frame = pd.DataFrame(rows, columns=list("abc")).assign(same=1)
    fitted = FewLabelClassifier(random_state=0).fit(frame, y)
    assert fitted.columns_["kind"].tolist()[-1] == "drop"
    np.testing.assert_array_equal(
        fitted.predict_proba(frame.drop(columns="same")), fitted.predict_proba(frame)
    )


def test_indices_are_no_rows(held: FewLabelClassifier) -> None:
    with pytest.raises(ValueError, match=r"X must hold rows, got one dimension; .*relabel\(y=y\)"):
        held.relabel([1, 2], ["a", "b"])


@pytest.mark.usefixtures("small")
def test_a_few_words_among_numbers() -> None:
    """They are missing, and columns_ says so; more than a tenth of them in new rows warn."""
    rows, y = numbers()
    frame = pd.DataFrame(rows, columns=list("abc")).astype({"a": object})
    frame.loc[1, "a"] = "broken"
    fitted = FewLabelClassifier(random_state=0).fit(frame, y)
    kind, why = fitted.columns_.set_index("column").loc["a"]
    assert (kind, "1 missing, 1 of them words such as 'broken'" in why) == ("quantity", True)
    gap = frame.assign(a=pd.to_numeric(frame["a"], errors="coerce"))
    np.testing.assert_array_equal(
        FewLabelClassifier(random_state=0).fit(gap, y).predict(gap), fitted.predict(gap)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(fitted.predict(frame), fitted.predict(gap))
    with pytest.warns(
        UserWarning, match="column 'a' held numbers in fit, and 1 of 5 entries such as 'broken'"
    ):
        fitted.predict(frame[:5])


@pytest.mark.parametrize(
    "write",
    [
        lambda x: f"{x:.{2 + int(10 * x) % 2}f}".replace(".", ","),
        lambda x: f"{x:.1f} kg",
        lambda x: f"${1000 * x:,.0f}",
        lambda x: f"{1 + int(7 * abs(x)) % 12}/{1 + int(90 * abs(x)) % 28}/2024",
        lambda x: f"{1 + int(90 * abs(x)) % 28}.{1 + int(7 * abs(x)) % 12}.2024",
    ],
)
@pytest.mark.usefixtures("small")
def test_words_mean_the_same_alone_as_together(write: Any) -> None:
    """The style of numbers and dates is that of fit, whatever the other rows of a call are."""
    rows, y = numbers()
    frame = pd.DataFrame(rows, columns=list("abc"))
    frame["word"] = [write(x) for x in frame.pop("a")]
    fitted = FewLabelClassifier(random_state=0).fit(frame, y)
    assert dict(fitted.columns_[["column", "kind"]].to_numpy())["word"] in ("quantity", "date")
    together = fitted._rows_in(frame).views.standard
    alone = np.concatenate([fitted._rows_in(frame.iloc[[i]]).views.standard for i in range(len(frame))])
    np.testing.assert_array_equal(alone, together)


@pytest.mark.usefixtures("small")
def test_labels_of_rows_may_be_repeated() -> None:
    rows, y = numbers()
    frame = pd.DataFrame(rows, columns=list("abc"))
    frame["word"] = [f"{x:.1f} kg" for x in frame.pop("a")]
    frame["day"] = [f"{1 + i % 28}-Mar-2024" for i in range(len(frame))]
    expected = FewLabelClassifier(random_state=0).fit(frame, y).predict_proba(frame)
    frame.index = pd.Index([0] * len(frame))
    np.testing.assert_array_equal(
        FewLabelClassifier(random_state=0).fit(frame, y).predict_proba(frame), expected
    )


def test_words_of_another_case_are_the_same_level(held: FewLabelClassifier) -> None:
    loud = NEW.assign(color=[None if x is None else x.upper() for x in NEW["color"]])
    np.testing.assert_array_equal(held.predict_proba(loud), held.predict_proba(NEW))


def test_other_units_and_empty_rows_warn(held: FewLabelClassifier) -> None:
    with pytest.warns(UserWarning, match=r"column 'size': 60 of 60 entries lie far outside of what fit had"):
        held.predict_proba(NEW.assign(size=NEW["size"] * 1000 + 1e5))
    empty = NEW.astype(object)
    empty.iloc[:2] = None
    with pytest.warns(UserWarning, match="2 of 60 rows have no entry in any column that is used"):
        held.predict_proba(empty)


def test_a_level_that_fit_did_not_have(held: FewLabelClassifier) -> None:
    with pytest.warns(
        UserWarning, match=r"column 'color': 60 of 60 entries, such as 'purple', are levels that"
    ):
        found = held.predict_proba(NEW.assign(color="purple"))
    np.testing.assert_array_equal(found, held.predict_proba(NEW.assign(color=None)))
    assert abs(found - held.predict_proba(NEW)).max() > 1e-3


@pytest.mark.usefixtures("small")
def test_arrays_for_columns_with_names(held: FewLabelClassifier) -> None:
    rows, y = numbers()
    frame = pd.DataFrame(rows, columns=list("abc"))
    fitted = FewLabelClassifier(random_state=0).fit(frame, y)
    expected = fitted.predict_proba(frame)
    for other in (rows, rows.tolist()):
        with pytest.warns(UserWarning, match="X does not have valid feature names"):
            np.testing.assert_array_equal(fitted.predict_proba(other), expected)
    unnamed = FewLabelClassifier(random_state=0).fit(rows, y)
    assert not hasattr(unnamed, "feature_names_in_")
    with pytest.raises(ValueError, match="X has 2 features, but FewLabelClassifier is expecting 3"):
        unnamed.predict(rows[:, :2])
    with pytest.warns(UserWarning, match="X has feature names, but FewLabelClassifier was fitted without"):
        np.testing.assert_array_equal(unnamed.predict_proba(frame), expected)


@pytest.mark.usefixtures("small")
def test_images(tmp_path: Path) -> None:
    """Images (N, height, width) are rows of pixels, also in a file."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    images = (rng.integers(0, 100, (40, 5, 4)) + 155 * y[:, np.newaxis, np.newaxis]).astype(np.uint8)
    fitted = FewLabelClassifier(random_state=0).fit(images, y)
    assert fitted.n_features_in_ == 20
    flat = FewLabelClassifier(random_state=0).fit(images.reshape(40, -1), y)
    np.testing.assert_array_equal(fitted.predict_proba(images), flat.predict_proba(images.reshape(40, -1)))
    fitted.save(tmp_path / "a.safetensors")
    np.testing.assert_array_equal(FewLabelClassifier.load(tmp_path / "a.safetensors").predict(images), y)


def in_polars(frame: pd.DataFrame) -> pl.DataFrame:
    found = {name: [None if pd.isna(x) else x for x in frame[name].astype(object)] for name in frame}
    return pl.DataFrame(found)


def test_polars_and_pandas(held: FewLabelClassifier) -> None:
    np.testing.assert_array_equal(held.predict_proba(in_polars(NEW)), held.predict_proba(NEW))
    fitted = FewLabelClassifier(random_state=0).fit(in_polars(X), pl.Series(FEW))
    assert fitted.feature_names_in_.tolist() == list(X.columns)
    np.testing.assert_array_equal(fitted.predict_proba(in_polars(NEW)), held.predict_proba(NEW))


def test_results_repeat(held: FewLabelClassifier) -> None:
    again = clone(held).fit(X, FEW)
    np.testing.assert_array_equal(again.predict_proba(NEW), held.predict_proba(NEW))
    other = clone(held).set_params(random_state=1).fit(X, FEW)
    assert (other.predict_proba(NEW) != held.predict_proba(NEW)).any()


def test_parameters() -> None:
    options = {
        "columns": {"size": "quantity"},
        "class_prior": "equal",
        "features": None,
        "unlabeled_label": -1,
        "random_state": 5,
        "verbose": 1,
    }
    made = FewLabelClassifier(**options)  # type: ignore[arg-type]
    assert made.get_params() == options
    assert clone(made).get_params() == options
    assert FewLabelClassifier().get_params()["class_prior"] == "estimate"


@pytest.mark.usefixtures("small")
def test_progress(capsys: pytest.CaptureFixture[str]) -> None:
    rows, y = numbers()
    FewLabelClassifier(random_state=0, verbose=1).fit(rows, y)
    shown = capsys.readouterr().err
    assert all(name in shown for name in ("columns", "components", "clustering", "classifiers"))
    FewLabelClassifier(random_state=0).fit(rows, y)
    assert capsys.readouterr().err == ""


def warnings_of(rows: Any, y: Any, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        FewLabelClassifier(random_state=0, **options).fit(rows, y)
    return [str(one.message) for one in seen]


@pytest.mark.usefixtures("small")
def test_one_class_for_almost_all_rows_warns() -> None:
    """A label far away from all rows; the twin has labels in both of two groups."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(100, 2))
    rows[1:4] = [[200, 200], [201, 199], [199, 201]]
    y = [0, 1, 1, 1] + [None] * 96
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = FewLabelClassifier(random_state=0).fit(rows, y)
    some = made._sampled_answers()
    made._prior = np.array([0.5, 0.5])
    with pytest.warns(
        UserWarning, match="9[0-9] % of the rows are predicted as .*0.*, whose class prior is 0.50"
    ):
        made._warn_of_result(some)
    assert warnings_of(*numbers()) == []
    # Where one class is expected to have nearly all rows there is nothing to say.
    made._prior = np.array([0.97, 0.03])
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        made._warn_of_result(some)
    assert not any("of the rows are predicted" in str(one.message) for one in found)


@pytest.mark.usefixtures("small")
def test_a_given_prior_is_met_where_the_rows_allow_it() -> None:
    """Three classes on a line, of which the rare one is found with its prior; not with that of another."""
    rng = np.random.default_rng(0)
    target = np.repeat([0, 1, 2], [140, 40, 20])
    rows = rng.normal(size=(200, 2)) + 2.5 * target[:, np.newaxis]
    few = [int(c) if i in (0, 1, 140, 141, 180, 181) else None for i, c in enumerate(target)]
    for prior in ((0.7, 0.2, 0.1), (0.1, 0.2, 0.7)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = FewLabelClassifier(class_prior=dict(enumerate(prior)), random_state=0).fit(rows, few)
        parts = np.bincount(made.transduction_, minlength=3) / 200
        assert parts.argmax() == np.argmax(prior)
        np.testing.assert_allclose(parts, prior, atol=0.15)


@pytest.mark.usefixtures("small")
def test_labels_in_another_order_warn() -> None:
    rows, y = numbers()
    frame, few = pd.DataFrame(rows), pd.Series([int(c) if i < 6 else None for i, c in enumerate(y)])
    text = "y has the index of X in another order, and is used by position; pass y.loc"
    assert any(text in x for x in warnings_of(frame, few.iloc[::-1]))
    assert not any(text in x for x in warnings_of(frame, few))
    # Other indices, as those of a filtered frame, say nothing.
    assert not any(text in x for x in warnings_of(frame, few.set_axis(few.index + 1_000)))


@pytest.mark.usefixtures("small")
def test_labels_left_among_the_columns_warn() -> None:
    rows, y = numbers()
    few = [f"class {c}" if i < 6 else None for i, c in enumerate(y)]
    frame = pd.DataFrame(rows, columns=list("abc")).assign(label=few)
    text = "column 'label' of X holds the labels y and nothing else; leave it out"
    assert any(text in x for x in warnings_of(frame, few))
    other = frame.assign(label=[*few[:7], "class 0", *few[8:]])
    assert not any("holds the labels" in x for x in warnings_of(other, few))


@pytest.mark.parametrize("y", ["label", {"a": 1}])
def test_labels_are_no_name_and_no_mapping(y: Any) -> None:
    with pytest.raises(ValueError, match=r"y must have one entry for each row of X, got .*frame\['label'\]"):
        FewLabelClassifier().fit(X, y)


@pytest.mark.usefixtures("small")
def test_members_that_disagree_warn() -> None:
    """Labels that have nothing to do with the rows; the twin has those of two groups."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 20))
    y = [int(c) if i < 20 else None for i, c in enumerate(rng.integers(0, 5, 200))]
    found = warnings_of(rows, y)
    assert sum("disagree on" in x for x in found) == 1
    assert all(re.search(r"the members '.*' and '.*' disagree on \d\d % of the rows", x) for x in found)
    assert warnings_of(*numbers()) == []


@pytest.mark.usefixtures("small")
def test_labels_that_are_spelled_differently_warn() -> None:
    rows, y = numbers()
    for other in ("Cat", "cat ", " CAT"):
        labels = np.array(["cat", "dog"], dtype=object)[y]
        labels[0] = other
        found = warnings_of(rows, labels)
        assert sum("differ by blanks or case alone" in x for x in found) == 1
        assert f"{min(other, 'cat')!r} and {max(other, 'cat')!r}" in found[0]
    assert warnings_of(rows, np.array(["cat", "dog"])[y]) == []


@pytest.mark.usefixtures("small")
def test_equal_rows_with_several_labels_warn_once() -> None:
    rows, y = numbers()
    rows[2] = rows[1]
    found = warnings_of(rows, y)
    assert found == [
        "distinct rows with several labels: 1, equal in all columns that are used; the most frequent label is "
        "predicted for them; check the labels"
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        p = FewLabelClassifier(random_state=0).fit(rows, y).predict_proba(rows[1:3])
    np.testing.assert_array_equal(p, np.full((2, 2), 0.5))


@pytest.mark.usefixtures("small")
def test_dates_with_the_day_first_in_new_rows() -> None:
    """25/12/2020 in the rows of fit says how 1/2/2020 in new ones is read."""
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=3 * i) for i in range(80)]
    y = np.arange(80) // 40
    as_dates = pd.DataFrame({"d": days})
    as_words = pd.DataFrame({"d": [f"{day:%d/%m/%Y}" for day in days]})
    fitted = FewLabelClassifier(random_state=0).fit(as_words, np.where(np.arange(80) % 8 < 2, y, np.nan))
    one_by_one = np.concatenate([fitted.predict_proba(as_words.iloc[[i]]) for i in range(0, 80, 7)])
    np.testing.assert_allclose(one_by_one, fitted.predict_proba(as_dates.iloc[::7]), atol=1e-6)


def test_few_labels_of_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two labels per class, eight choices of them, by paired t-tests at 1 in 1,000.

    Better than logistic regression with the same labels; and than chance, a tenth, by a binomial test.
    """
    monkeypatch.setattr(_members, "N_TREES", 30)
    monkeypatch.setattr(few_label, "N_CLUSTERINGS", 3)
    pixels, digits = load_digits(return_X_y=True)
    pixels, digits = pixels[:400], digits[:400]
    model = FewLabelClassifier(random_state=0).fit(pixels)
    assert set(model.columns_["why"]) <= {"numbers on a common scale, as pixels are", "constant"}
    rng = np.random.default_rng(0)
    own, linear = [], []
    for _ in range(8):
        few = np.concatenate([rng.choice(np.flatnonzero(digits == c), 2, replace=False) for c in range(10)])
        rest = np.setdiff1d(np.arange(400), few)
        model.relabel(pixels[few], digits[few])
        own.append((model.transduction_[rest] == digits[rest]).mean())
        other = LogisticRegression(max_iter=1000).fit(pixels[few] / 16, digits[few])
        linear.append(other.score(pixels[rest] / 16, digits[rest]))
        n_right = round(own[-1] * len(rest))
        assert stats.binomtest(n_right, len(rest), 0.1, alternative="greater").pvalue < 1e-3
    assert stats.ttest_rel(own, linear, alternative="greater").pvalue < 1e-3
