"""Rows without a label that speak: against loops, who is silent, and that it helps."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats

from ebse import SpreadingClassifier
from ebse.semi_supervised import _propagation
from ebse.semi_supervised._labels import Labels
from ebse.semi_supervised._propagation import (
    OWN,
    SHARPER,
    YIELDING,
    Clusterings,
    own_part,
    scales_for,
    spread_labels,
)

GENERATOR = np.random.default_rng(3)
N, K, C = 2, 5, 3
ROUNDS = 5


def clusterings() -> Clusterings:
    """Two clusterings of five centers, between which anything flows."""
    return Clusterings(np.zeros((N, K, 1)), np.ones(N), GENERATOR.random((N, K, K)) ** 3)


def at_random(n: int) -> sparse.csr_matrix:
    """Rows that are anywhere."""
    weights = GENERATOR.random((n, N, K)) ** 3
    return sparse.csr_matrix((weights / weights.sum(2, keepdims=True) / N).reshape(n, N * K))


@pytest.mark.parametrize("sizes", [None, np.array([0.2, 0.3, 0.5])])
def test_rounds_against_loops(sizes: Any) -> None:
    """One center, one class and one row at a time, in two representations."""
    views = [clusterings(), clusterings()]
    target = np.array([0, 1, 2, 2])
    known, others = [at_random(4) for _ in views], [at_random(9) for _ in views]

    def arriving(view: int, rows: Any, classes: Any) -> Any:
        found = np.zeros((N, K, C))
        for i in range(N):
            for to in range(K):
                for row, kind in enumerate(classes):
                    for here in range(K):
                        flow = views[view].flows[i, to, here] * rows[view].toarray()[row, i * K + here]
                        found[i, to, kind] += flow / list(classes).count(kind)
        return found

    def read(scores: Any) -> Any:
        p = np.zeros((9, C))
        for view, held in enumerate(scores):
            p += others[view].toarray() @ held.reshape(N * K, C) / len(views)
        return p

    own = [arriving(view, known, target) for view in range(2)]
    alone = scores = [x / x.sum(2, keepdims=True) for x in own]
    guesses = []
    for _ in range(ROUNDS):
        p = read(scores) ** SHARPER
        if sizes is not None:
            p = p * scales_for(p, sizes)
        guess = [max(range(C), key=row.__getitem__) for row in p]
        guesses.append(guess)
        said = [np.zeros((N, K, C)) for _ in views]
        for kind in range(C):
            labels = OWN * list(target).count(kind)
            spoken = (1 - OWN) * (kind in guess)
            for view, x in enumerate(said):
                rows = arriving(view, others, guess)[:, :, kind]
                x[:, :, kind] = (labels * own[view][:, :, kind] + spoken * rows) / (labels + spoken)
        scores = [x / x.sum(2, keepdims=True) for x in said]
    told = spread_labels(views, known, Labels(np.arange(C), target, sizes), others, n_rounds=ROUNDS)
    # Rows that all said the same would test little.
    assert len(np.unique(guesses)) > 1
    for found, expected in zip([*told.scores, *told.alone], [*scores, *alone], strict=True):
        np.testing.assert_allclose(found, expected.reshape(N * K, C), rtol=1e-10)
    expected = np.ones(C) if sizes is None else scales_for(read(scores) ** SHARPER, sizes, yielding=YIELDING)
    np.testing.assert_allclose(told.scales, expected, rtol=1e-10)


@pytest.mark.parametrize("sizes", [None, np.array([0.9, 0.1])])
def test_a_row_that_nothing_reaches_is_silent(sizes: Any) -> None:
    """Centers 0 and 1 exchange labels; most rows are at center 2, which is alone, and stays undecided."""
    flow = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    held = Clusterings(np.zeros((1, 3, 1)), np.ones(1), flow[np.newaxis])
    known, others = (sparse.csr_matrix(np.eye(3)[at]) for at in ([0, 1], [0, 1, 2, 2, 2, 2]))
    labels = Labels(np.arange(2), np.array([0, 1]), sizes)
    told = spread_labels([held], [known], labels, [others], n_rounds=ROUNDS)
    np.testing.assert_array_equal(told.scores[0][2], [0.5, 0.5])
    assert told.scores[0][0, 0] > 0.5


@pytest.mark.parametrize("trace", [1e-9, 1e-5])
def test_a_trace_of_a_label_decides_nothing(trace: float) -> None:
    """The same, where a label at 1 would have so much of itself at the lonely center, and rows there at 1."""
    flow = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    lonely = 1 + np.sqrt(-np.log(trace))
    held = Clusterings(np.array([[[0.0], [1.0], [lonely]]]), np.ones(1), flow[np.newaxis])
    known, others = (held.places(np.array(rows)[:, None]) for rows in ([0.0, 1.0], [0.0, 1.0, *[lonely] * 4]))
    assert others.toarray()[2].tolist() == [0, 0, 1]
    labels = Labels(np.arange(2), np.array([0, 1]), None)
    told = spread_labels([held], [known], labels, [others], n_rounds=ROUNDS)
    np.testing.assert_array_equal(told.scores[0][2], [0.5, 0.5])


def test_a_row_that_hardly_anything_reaches_is_silent() -> None:
    """Most rows are at center 2, which both classes reach alike but for a trace."""
    flow = np.array([[1.0, 0.0, 1e-3], [0.0, 1.0, 1e-3], [0.5, 0.5 + 1e-9, 1.0]])
    held = Clusterings(np.zeros((1, 3, 1)), np.ones(1), flow[np.newaxis])
    known, others = (sparse.csr_matrix(np.eye(3)[at]) for at in ([0, 1], [0, 1, 2, 2, 2, 2]))
    labels = Labels(np.arange(2), np.array([0, 1]), None)
    told = spread_labels([held], [known], labels, [others], n_rounds=ROUNDS)
    np.testing.assert_allclose(told.scores[0][2], [0.5, 0.5], atol=1e-6)


def test_labels_are_heard_by_their_number() -> None:
    """0.3 of one label, 0.6 against 0.7 of two; a class that no row is taken for has its labels alone."""
    target, guess = np.array([0, 1, 1, 2, 2]), np.array([0, 0, 1])
    np.testing.assert_allclose(own_part(target, guess, 3), [0.3, 0.6 / 1.3, 1.0])


def overlapping(n: int = 600) -> tuple[Any, Any]:
    """Three classes, at the corners of a triangle, in a random order."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    return rng.normal(size=(n, 2)) + 3 * np.array([[0, 0], [1, 0], [0.5, 0.87]])[y], y


def chequered(n: int = 1_200) -> tuple[Any, Any]:
    """Two classes in the sixteen squares of a board: no part of a class speaks for the others."""
    X = np.random.default_rng(0).random((n, 2))
    return X, (np.floor(4 * X).sum(1) % 2).astype(int)


def gains(X: Any, y: Any, n_shots: int, *, n: int = 60, n_rounds: int = ROUNDS) -> Any:
    """Accuracy with rounds less that without, for n choices of n_shots labels of each class."""
    rng = np.random.default_rng(1)
    spread = SpreadingClassifier(n_clusterings=2, random_state=0).fit(X[:9], y[:9], X_unlabeled=X)
    found: dict[int, list[float]] = {0: [], n_rounds: []}
    for _ in range(n):
        few = np.concatenate([rng.choice(np.flatnonzero(y == c), n_shots) for c in np.unique(y)])
        for rounds, accuracies in found.items():
            accuracies.append(spread.set_params(n_rounds=rounds).relabel(X[few], y[few]).score(X, y))
    return np.subtract(found[n_rounds], found[0])


def test_rows_that_speak_help() -> None:
    """Labels at random places of classes that overlap; by Student's law, at 1 in 1,000."""
    assert stats.ttest_1samp(gains(*overlapping(), 1), 0, alternative="greater").pvalue < 1e-3


def test_without_their_voice_nothing_is_gained(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: labels alone are heard, in every round."""
    monkeypatch.setattr(_propagation, "OWN", 1.0)
    assert not gains(*overlapping(), 1).any()


def test_many_labels_are_not_outvoted(monkeypatch: pytest.MonkeyPatch) -> None:
    """75 labels of each class on a chequered board lose less than 3 points; heard as one they lose more."""
    X, y = chequered()
    assert gains(X, y, 75, n=10).mean() > -0.03
    monkeypatch.setattr(_propagation, "own_part", lambda target, guess, n: np.full(n, OWN))
    assert gains(X, y, 75, n=10).mean() < -0.03


def test_where_every_row_has_a_label_none_speaks() -> None:
    X, y = overlapping(300)
    several = [
        SpreadingClassifier(n_clusterings=2, n_rounds=n, random_state=0).fit(X, y) for n in (0, ROUNDS)
    ]
    assert (several[0].predict_proba(X) == several[1].predict_proba(X)).all()
    # Told fewer labels, the others have none.
    few = [one.relabel(X[:3], y[:3]).predict_proba(X) for one in several]
    assert abs(few[0] - few[1]).max() > 0.01


def test_suggestions_go_by_the_labels_alone() -> None:
    X, y = overlapping(300)
    found = [
        SpreadingClassifier(n_clusterings=2, n_rounds=n, class_prior=sizes, random_state=0)
        .fit(X[:3], y[:3], X_unlabeled=X)
        .suggest(X, 20)
        .tolist()
        for n, sizes in ((0, None), (ROUNDS, None), (ROUNDS, {0: 0.2, 1: 0.2, 2: 0.6}))
    ]
    assert found[0] == found[1] == found[2]
