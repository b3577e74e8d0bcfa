"""Pseudo-labeling: against loops, rows that no label reaches, the weight of labels, and that it helps."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats

from ebse import SpreadingClassifier
from ebse.semi_supervised import _propagation
from ebse.semi_supervised._class_prior import class_weights
from ebse.semi_supervised._propagation import (
    LABEL_WEIGHT,
    SOFTNESS,
    Clusterings,
    label_weights,
    propagate,
)

GENERATOR = np.random.default_rng(3)
N, K, C = 2, 5, 3
ROUNDS = 5


def with_kernels(kernels: Any, centers: Any = None) -> Clusterings:
    """Clusterings with a kernel that is given."""
    found = Clusterings(
        np.zeros((*kernels.shape[:2], 1)) if centers is None else centers, np.ones(len(kernels)), 0.9
    )
    found.kernels = kernels
    return found


def at_random(n: int) -> sparse.csr_matrix:
    """Random assignments of n rows."""
    weights = GENERATOR.random((n, N, K)) ** 3
    return sparse.csr_matrix((weights / weights.sum(2, keepdims=True) / N).reshape(n, N * K))


@pytest.mark.parametrize("prior", [None, np.array([0.2, 0.3, 0.5])])
def test_rounds_against_loops(prior: Any) -> None:
    """One center, one class and one row at a time, in two representations."""
    clusterings = [with_kernels(GENERATOR.random((N, K, K)) ** 3) for _ in range(2)]
    target = np.array([0, 1, 2, 2])
    labeled, unlabeled = [at_random(4) for _ in clusterings], [at_random(9) for _ in clusterings]

    def propagated(view: int, rows: Any, classes: Any) -> Any:
        found = np.zeros((N, K, C))
        for i in range(N):
            for to in range(K):
                for row, kind in enumerate(classes):
                    for source in range(K):
                        kernel = clusterings[view].kernels[i, to, source]
                        part = kernel * rows[view].toarray()[row, i * K + source]
                        found[i, to, kind] += part / list(classes).count(kind)
        return found

    def of_rows(scores: Any) -> Any:
        q = np.zeros((9, C))
        for view, held in enumerate(scores):
            q += unlabeled[view].toarray() @ held.reshape(N * K, C) / len(clusterings)
        return q

    own = [propagated(view, labeled, target) for view in range(2)]
    label_scores = scores = [x / x.sum(2, keepdims=True) for x in own]
    rounds = []
    for _ in range(ROUNDS):
        p = of_rows(scores) ** 4
        if prior is not None:
            p = p * class_weights(p, prior)
        pseudo = [max(range(C), key=row.__getitem__) for row in p]
        rounds.append(pseudo)
        mixed = [np.zeros((N, K, C)) for _ in clusterings]
        for kind in range(C):
            labels = LABEL_WEIGHT * list(target).count(kind)
            others = (1 - LABEL_WEIGHT) * (kind in pseudo)
            for view, x in enumerate(mixed):
                rows = propagated(view, unlabeled, pseudo)[:, :, kind]
                x[:, :, kind] = (labels * own[view][:, :, kind] + others * rows) / (labels + others)
        scores = [x / x.sum(2, keepdims=True) for x in mixed]
    found = propagate(clusterings, labeled, target, C, unlabeled, prior=prior, n_rounds=ROUNDS)
    # Pseudo-labels that are all the same would test little.
    assert len(np.unique(rounds)) > 1
    for one, expected in zip([*found.scores, *found.label_scores], [*scores, *label_scores], strict=True):
        np.testing.assert_allclose(one, expected.reshape(N * K, C), rtol=1e-10)
    expected = np.ones(C) if prior is None else class_weights(of_rows(scores) ** 4, prior, softness=SOFTNESS)
    np.testing.assert_allclose(found.class_weights, expected, rtol=1e-10)


SEPARATE = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
"""Centers 0 and 1 exchange labels, center 2 is alone."""


@pytest.mark.parametrize("prior", [None, np.array([0.9, 0.1])])
def test_rows_that_no_label_reaches_have_no_pseudo_label(prior: Any) -> None:
    """Most rows are at center 2, which stays undecided."""
    labeled, unlabeled = (sparse.csr_matrix(np.eye(3)[at]) for at in ([0, 1], [0, 1, 2, 2, 2, 2]))
    held = with_kernels(SEPARATE[np.newaxis])
    found = propagate([held], [labeled], np.array([0, 1]), 2, [unlabeled], prior=prior, n_rounds=ROUNDS)
    np.testing.assert_array_equal(found.scores[0][2], [0.5, 0.5])
    assert found.scores[0][0, 0] > 0.5


@pytest.mark.parametrize("trace", [1e-9, 1e-5])
def test_a_trace_of_a_label_decides_nothing(trace: float) -> None:
    """The same, where a label at 1 would have so much of itself at the separate center, and rows there at 1."""
    separate = 1 + np.sqrt(-np.log(trace))
    held = with_kernels(SEPARATE[np.newaxis], np.array([[[0.0], [1.0], [separate]]]))
    labeled, unlabeled = (
        held.assign(np.array(rows)[:, None]) for rows in ([0.0, 1.0], [0.0, 1.0, *[separate] * 4])
    )
    assert unlabeled.toarray()[2].tolist() == [0, 0, 1]
    found = propagate([held], [labeled], np.array([0, 1]), 2, [unlabeled], n_rounds=ROUNDS)
    np.testing.assert_array_equal(found.scores[0][2], [0.5, 0.5])


def test_rows_with_nearly_equal_scores_have_no_pseudo_label() -> None:
    """Most rows are at center 2, which both classes reach equally but for a trace."""
    kernel = np.array([[1.0, 0.0, 1e-3], [0.0, 1.0, 1e-3], [0.5, 0.5 + 1e-9, 1.0]])
    labeled, unlabeled = (sparse.csr_matrix(np.eye(3)[at]) for at in ([0, 1], [0, 1, 2, 2, 2, 2]))
    held = with_kernels(kernel[np.newaxis])
    found = propagate([held], [labeled], np.array([0, 1]), 2, [unlabeled], n_rounds=ROUNDS)
    np.testing.assert_allclose(found.scores[0][2], [0.5, 0.5], atol=1e-6)


def test_labels_have_weight_by_their_number() -> None:
    """0.3 for one label, 0.6 against 0.7 for two; all for a class without pseudo-labels."""
    target, pseudo = np.array([0, 1, 1, 2, 2]), np.array([0, 0, 1])
    np.testing.assert_allclose(label_weights(target, pseudo, 3), [0.3, 0.6 / 1.3, 1.0])


def overlapping(n: int = 600) -> tuple[Any, Any]:
    """Three classes, at the corners of a triangle, in a random order."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    return rng.normal(size=(n, 2)) + 3 * np.array([[0, 0], [1, 0], [0.5, 0.87]])[y], y


def chequered(n: int = 800) -> tuple[Any, Any]:
    """Two classes in the sixteen squares of a board: no part of a class is like the others."""
    X = np.random.default_rng(0).random((n, 2))
    return X, (np.floor(4 * X).sum(1) % 2).astype(int)


def gains(
    X: Any, y: Any, n_shots: int, *, n: int, n_clusters: int | str = "auto", n_rounds: int = ROUNDS
) -> Any:
    """Accuracy with rounds less that without, for n choices of n_shots labels of each class."""
    rng = np.random.default_rng(1)
    spreading = SpreadingClassifier(n_clusters=n_clusters, n_clusterings=2, random_state=0).fit(X)
    found: dict[int, list[float]] = {0: [], n_rounds: []}
    for _ in range(n):
        few = np.concatenate([rng.choice(np.flatnonzero(y == c), n_shots) for c in np.unique(y)])
        for rounds, accuracies in found.items():
            accuracies.append(spreading.set_params(n_rounds=rounds).relabel(X[few], y[few]).score(X, y))
    return np.subtract(found[n_rounds], found[0])


def test_pseudo_labeling_helps() -> None:
    """Labels at random places of classes that overlap; by a t-test, at 1 in 1,000."""
    found = gains(*overlapping(), 1, n=60, n_clusters=60)
    assert stats.ttest_1samp(found, 0, alternative="greater").pvalue < 1e-3


def test_pseudo_labels_without_weight_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: labels alone have weight, in every round."""
    monkeypatch.setattr(_propagation, "LABEL_WEIGHT", 1.0)
    assert not gains(*overlapping(), 1, n=10, n_clusters=60).any()


def test_many_labels_are_not_outvoted(monkeypatch: pytest.MonkeyPatch) -> None:
    """75 labels of each class on a chequered board lose less than 3 points; with the weight of one they lose more."""
    X, y = chequered()
    assert gains(X, y, 75, n=4).mean() > -0.03
    monkeypatch.setattr(_propagation, "label_weights", lambda target, pseudo, n: np.full(n, LABEL_WEIGHT))
    assert gains(X, y, 75, n=4).mean() < -0.03


def test_without_unlabeled_rows_there_are_no_pseudo_labels() -> None:
    X, y = overlapping(300)
    both = [SpreadingClassifier(n_clusterings=2, n_rounds=n, random_state=0).fit(X, y) for n in (0, ROUNDS)]
    between = X[:100] + 0.1
    np.testing.assert_array_equal(both[0].predict_proba(between), both[1].predict_proba(between))
    # With fewer labels the other rows have none; and all labels once more are those of the fit.
    few = [one.relabel(X[:3], y[:3]).predict_proba(between) for one in both]
    assert abs(few[0] - few[1]).max() > 0.01
    np.testing.assert_array_equal(
        both[0].relabel(y=y).predict_proba(between), both[1].relabel(X, y).predict_proba(between)
    )


def test_suggestions_depend_on_the_labels_alone() -> None:
    X, y = overlapping(300)
    found = [
        SpreadingClassifier(n_clusterings=2, n_rounds=n, class_prior=prior, random_state=0)
        .fit(X[:3], y[:3], X_unlabeled=X)
        .suggest(20)
        .tolist()
        for n, prior in ((0, None), (ROUNDS, None), (ROUNDS, {0: 0.2, 1: 0.2, 2: 0.6}))
    ]
    assert found[0] == found[1] == found[2]
