"""Few-shot evaluation against loops: all kinds of methods, the same episodes, one call of an embedding."""

import os
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from ebse.evaluation import draw_episodes, few_shot, pixels
from ebse.evaluation.methods import classifier_accuracy
from evaluation.shots import SMALL, Noisy, X, Y

module = sys.modules[few_shot.__module__]  # The package has a function of the same name.
KNN = KNeighborsClassifier(1)


def accuracies(methods: dict[str, Any], **options: Any) -> dict[str, list[float]]:
    rows = few_shot(methods, X, Y, **{**SMALL, **options}).rows
    return {name: list(rows.accuracy[rows.method == name]) for name in methods}


def oracle(n_shots: int, n_averaged: int = 3) -> list[float]:
    """Accuracies of ``Noisy`` by scikit-learn, query by query, averaged over the first draws."""
    found = []
    for _, support, queries in zip(*draw_episodes(Y, n_shots=n_shots, **SMALL), strict=True):
        z = Noisy().representations(X)
        rows = support.ravel()
        model = LogisticRegression(C=np.inf).fit(np.concatenate(z[rows]), np.repeat(Y[rows], 3))
        right = 0
        for q in queries.ravel():
            p = model.predict_proba(z[q])[:n_averaged].mean(0)
            right += model.classes_[p.argmax()] == Y[q]
        found.append(right / queries.size)
    return found


@pytest.mark.parametrize("n_shots", [1, 4])
def test_draws_are_classified_as_by_loops(n_shots: int) -> None:
    own = accuracies({"noisy": Noisy()}, n_shots=n_shots)["noisy"]
    assert own == pytest.approx(oracle(n_shots))


def test_classifying_by_one_draw_is_detected() -> None:
    """The twin: queries classified by their first draw alone."""
    assert accuracies({"noisy": Noisy()})["noisy"] != pytest.approx(oracle(1, n_averaged=1))


def test_classifiers_are_fitted_on_the_support() -> None:
    own = accuracies({"knn": KNN}, n_shots=2)["knn"]
    for accuracy, (_, support, queries) in zip(
        own, zip(*draw_episodes(Y, n_shots=2, **SMALL), strict=True), strict=True
    ):
        s, q = support.ravel(), queries.ravel()
        assert accuracy == pytest.approx(KNeighborsClassifier(1).fit(X[s], Y[s]).score(X[q], Y[q]))
    assert not hasattr(KNN, "classes_")


def test_all_forms_of_an_embedding_agree() -> None:
    pca = PCA(3).fit(X)
    found = accuracies(
        {
            "transformer": pca,
            "function": pca.transform,
            "one draw": lambda X: pca.transform(X)[:, None],
            "tensor": lambda X: torch.from_numpy(pca.transform(X)),
            "sparse": lambda X: sparse.csr_matrix(pca.transform(X)),
            "pixels": "pixels",
        }
    )
    plain = found.pop("pixels")
    assert all(own == found["transformer"] for own in found.values())
    assert plain != found["transformer"]


def test_a_classifier_that_transforms_is_a_classifier() -> None:
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.5)
    assert accuracies({"lda": lda}, n_shots=3)["lda"] == accuracies({"lda": lda}, n_shots=3)["lda"]


def test_data_of_any_type() -> None:
    methods = {"pixels": pixels, "knn": KNN}
    expected = few_shot(methods, X, Y, **SMALL).rows
    for form in (X.tolist(), torch.from_numpy(X), sparse.coo_matrix(X)):
        assert few_shot(methods, form, list(Y), **SMALL).rows.equals(expected)
    images = few_shot({"pixels": "pixels"}, X.reshape(60, 2, 3), Y, **SMALL).rows
    assert images.equals(expected[expected.method == "pixels"])


def test_all_methods_see_the_same_episodes() -> None:
    found = accuracies({"one": "pixels", "two": pixels, "knn": KNN, "same": KNeighborsClassifier(1)})
    assert found["one"] == found["two"]
    assert found["knn"] == found["same"]
    assert found["one"] != accuracies({"one": "pixels"}, random_state=1)["one"]


def test_an_embedding_is_called_once_with_the_rows_of_all_episodes() -> None:
    noisy = Noisy()
    few_shot({"noisy": noisy}, X, Y, n_shots=[1, 3], **SMALL)
    episodes = draw_episodes(Y, n_shots=3, **SMALL)
    used = sorted({*episodes.support.ravel(), *episodes.queries.ravel()})
    assert len(noisy.calls) == 1
    np.testing.assert_array_equal(noisy.calls[0], X[used])


def test_several_shots_are_those_of_each_alone() -> None:
    rows = few_shot({"pixels": "pixels", "knn": KNN}, X, Y, n_shots=[3, 1], **SMALL).rows
    assert list(rows.columns) == ["method", "n_shots", "episode", "accuracy"]
    assert len(rows) == 2 * 2 * 6
    for k in (1, 3):
        alone = few_shot({"pixels": "pixels", "knn": KNN}, X, Y, n_shots=k, **SMALL).rows
        assert list(rows[rows.n_shots == k].accuracy) == list(alone.accuracy)


def test_small_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = accuracies({"noisy": Noisy()})
    sizes = []

    def spy(z: Any, support: Any, queries: Any, inner: Any = module.embedding_accuracies, **name: str) -> Any:
        sizes.append(len(support))
        return inner(z, support, queries, **name)

    monkeypatch.setattr(module, "embedding_accuracies", spy)
    monkeypatch.setattr(module, "BATCH_BYTES", 2 * 8 * 3 * 6 * 3 * (4 + 2 * 4))
    assert accuracies({"noisy": Noisy()}) == expected
    assert sizes == [2, 2, 2]


def test_fewer_ways_are_fewer_classes() -> None:
    """A classifier that records the classes it was fitted to."""
    seen = []

    class Spy(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
        def fit(self, X: Any, y: Any) -> Any:
            seen.append(set(y))
            self.classes_ = np.unique(y)
            return self

        def predict(self, X: Any) -> Any:
            return np.repeat(self.classes_[0], len(X))

    assert accuracies({"spy": Spy()}, n_ways=2)["spy"] == [0.5] * 6
    assert {len(labels) for labels in seen} == {2}


class Threads(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predicts whether torch has one thread."""

    def fit(self, X: Any, y: Any) -> Any:
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), torch.get_num_threads() == 1)


@pytest.mark.parametrize(("parent", "right"), [(-1, 1.0), (os.getpid(), 0.0)], ids=["worker", "caller"])
def test_a_worker_has_one_thread_and_the_caller_its_own(parent: int, right: float) -> None:
    """With a twin: in the caller's own process nothing is limited."""
    torch.set_num_threads(2)
    try:
        labels = np.full(5, True)
        assert classifier_accuracy(Threads(), X[:5], labels, X[:5], labels, parent=parent) == right
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


class Represented(KNeighborsClassifier):  # type: ignore[misc]
    """A classifier that represents all rows once."""

    calls = 0

    def represented(self, X: Any) -> tuple[Any, Any]:
        Represented.calls += 1
        return KNeighborsClassifier(1), 2 * X


def test_a_classifier_may_represent_rows_once() -> None:
    found = accuracies({"own": Represented(), "plain": KNN}, n_shots=[1, 2])
    assert found["own"] == found["plain"]
    assert Represented.calls == 1


@pytest.mark.slow
def test_processes_agree() -> None:
    assert accuracies({"knn": KNN}, n_jobs=2) == accuracies({"knn": KNN})


def test_progress_is_shown_on_request(capfd: pytest.CaptureFixture[str]) -> None:
    few_shot({"pixels": "pixels"}, X, Y, **SMALL)
    assert capfd.readouterr() == ("", "")
    few_shot({"my pixels": "pixels"}, X, Y, progress=True, **SMALL)
    out, err = capfd.readouterr()
    assert not out
    assert "my pixels" in err
    assert "6/6" in err


@pytest.mark.parametrize(
    ("methods", "options", "message"),
    [
        ({}, {}, "estimators must map names to methods, got {}; pass"),
        (["pixels"], {}, r"estimators must map names to methods, got \['pixels'\]; pass"),
        ({1: "pixels"}, {}, "estimators must have names as keys, got 1; pass strings"),
        (
            {"a": "voxels"},
            {},
            r"estimators\['a'\] must have representations or transform, or be a classifier, a function or 'pixels', got 'voxels'; pass a fitted",
        ),
        (
            {"a": PCA},
            {},
            r"estimators\['a'\] must have representations .*; pass a fitted transformer or an instance",
        ),
        (
            {"a": lambda X: X[:3]},
            {},
            r"estimators\['a'\] must give an array \(\d+, K\) or \(\d+, n_draws, K\), got shape \(3, 6\); return one row per row",
        ),
        (
            {"a": lambda X: X.astype(str)},
            {},
            r"estimators\['a'\] must give numbers, got <U32; return a float array",
        ),
        ({"a": lambda X: X * np.nan}, {}, "X must be finite, got nan"),
        ({"a": "pixels"}, {"baseline": "b"}, "baseline must be one of 'a', got 'b'; pick one of these"),
        (
            {"a": "pixels"},
            {"n_shots": []},
            r"n_shots must be a number or several different ones, got \[\]; pass",
        ),
        (
            {"a": "pixels"},
            {"n_shots": [2, 2]},
            r"n_shots must be a number or several different ones, got \[2, 2\]",
        ),
        (
            {"a": "pixels"},
            {"n_shots": 17},
            r"y must have at least n_shots \+ n_queries = 17 \+ 4 = 21 rows",
        ),
        (
            {"a": "pixels"},
            {"y": Y[:5]},
            r"X and y must have the same number of rows, got shapes \(60, 6\) and \(5,\); pass a label",
        ),
    ],
)
def test_errors(methods: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        few_shot(methods, X, **{"y": Y, **SMALL, **options})


def test_regressions_that_do_not_converge_warn() -> None:
    scales = X * np.array([1e-6, *[1e6] * (X.shape[1] - 1)])
    hard = np.random.default_rng(0).permutation(Y)
    with pytest.warns(ConvergenceWarning, match=r"logistic regressions on scales did not converge in 100"):
        few_shot(
            {"scales": lambda rows: scales[: len(rows)] + rows},
            X,
            hard,
            n_shots=5,
            n_queries=2,
            n_episodes=3,
            random_state=0,
        )


@pytest.mark.parametrize("missing", [np.nan, None])
def test_missing_labels_are_refused(missing: Any) -> None:
    y = np.array([missing, *Y[1:]], dtype=object)
    with pytest.raises(ValueError, match=r"y must have no missing labels \(NaN or None\), got 1; leave"):
        few_shot({"pixels": "pixels"}, X, y)


def test_an_estimator_fitted_to_a_frame_gets_a_frame() -> None:
    frame = pd.DataFrame(X, columns=[f"feature {i}" for i in range(X.shape[1])])
    found, plain = (
        few_shot({"PCA": PCA(2).fit(rows)}, rows, Y, n_queries=2, n_episodes=3, random_state=0).rows
        for rows in (frame, X)
    )
    pd.testing.assert_frame_equal(found, plain)
