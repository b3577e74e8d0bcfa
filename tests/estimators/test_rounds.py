"""Rows without a label that speak: against loops, who is silent, and that it helps."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats

from ebse import SpreadingClassifier
from ebse.estimators import spreading
from ebse.estimators.few_known import Labels
from ebse.estimators.spreading import OWN, ROUNDS, SHARPER, Clusterings, scales_for, spread_labels

GENERATOR = np.random.default_rng(3)
N, K, C = 2, 5, 3


def clusterings() -> Clusterings:
    """Two clusterings of five centres, between which anything flows."""
    return Clusterings(np.zeros((N, K, 1)), np.ones(N), GENERATOR.random((N, K, K)) ** 3)


def at_random(n: int) -> sparse.csr_matrix:
    """Rows that are anywhere."""
    weights = GENERATOR.random((n, N, K)) ** 3
    return sparse.csr_matrix((weights / weights.sum(2, keepdims=True) / N).reshape(n, N * K))


@pytest.mark.parametrize("sizes", [None, np.array([0.2, 0.3, 0.5])])
def test_rounds_against_loops(sizes: Any) -> None:
    """One centre, one class and one row at a time, in two representations."""
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
    scores = [x / x.sum(2, keepdims=True) for x in own]
    guesses = []
    for _ in range(ROUNDS):
        p = read(scores)
        if sizes is not None:
            p = p**SHARPER * scales_for(p**SHARPER, sizes)
        guess = [max(range(C), key=row.__getitem__) for row in p]
        guesses.append(guess)
        said = [OWN * own[view] + (1 - OWN) * arriving(view, others, guess) for view in range(2)]
        scores = [x / x.sum(2, keepdims=True) for x in said]
    told = spread_labels(views, known, Labels(np.arange(C), target, sizes), others)
    # Rows that all said the same would test little.
    assert len(np.unique(guesses)) > 1
    for found, expected in zip(told.scores, scores, strict=True):
        np.testing.assert_allclose(found, expected.reshape(N * K, C), rtol=1e-10)
    expected = np.ones(C) if sizes is None else scales_for(read(scores), sizes)
    np.testing.assert_allclose(told.scales, expected, rtol=1e-10)


@pytest.mark.parametrize("sizes", [None, np.array([0.9, 0.1])])
def test_a_row_that_nothing_reaches_is_silent(sizes: Any) -> None:
    """Centres 0 and 1 exchange labels; most rows are at centre 2, which is alone, and stays undecided."""
    flow = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    held = Clusterings(np.zeros((1, 3, 1)), np.ones(1), flow[np.newaxis])
    known, others = (sparse.csr_matrix(np.eye(3)[at]) for at in ([0, 1], [0, 1, 2, 2, 2, 2]))
    told = spread_labels([held], [known], Labels(np.arange(2), np.array([0, 1]), sizes), [others])
    np.testing.assert_array_equal(told.scores[0][2], [0.5, 0.5])
    assert told.scores[0][0, 0] > 0.5


def overlapping(seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = np.arange(600) % 3
    return rng.normal(size=(600, 2)) + 3 * np.array([[0, 0], [1, 0], [0.5, 0.87]])[y], y


def gains(monkeypatch: pytest.MonkeyPatch, own: float) -> Any:
    """Accuracy with rounds less that without, for 30 choices of a label of each class."""
    X, y = overlapping(0)
    rng = np.random.default_rng(1)
    spread = SpreadingClassifier(n_clusterings=2, random_state=0).fit(X[:3], y[:3], X_unlabeled=X)
    found: dict[int, list[float]] = {0: [], ROUNDS: []}
    monkeypatch.setattr(spreading, "OWN", own)
    for _ in range(30):
        few = np.array([rng.choice(np.flatnonzero(y == c)) for c in range(3)])
        for n, accuracies in found.items():
            monkeypatch.setattr(spreading, "ROUNDS", n)
            accuracies.append(spread.relabel(X[few], y[few]).score(X, y))
    return np.subtract(found[ROUNDS], found[0])


def test_rows_that_speak_help(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels at random places of classes that overlap; by Student's law, at 1 in 1,000."""
    assert stats.ttest_1samp(gains(monkeypatch, OWN), 0, alternative="greater").pvalue < 1e-3


def test_without_their_voice_nothing_is_gained(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: labels alone are heard, in every round."""
    assert not gains(monkeypatch, 1.0).any()
