"""Which rows to label next: what is chosen, and that following it is better than chance."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.datasets import load_digits

from ebse import SpreadingClassifier
from ebse.datasets import binarize, load_images
from ebse.semi_supervised._propagation import middles, most_covering
from semi_supervised.blobs import blobs

X, Y = load_digits(return_X_y=True)
X = X / 16
MNIST = Path(__file__).parents[3] / "shared" / "data" / "mnist"


def gains_by_suggestion(points: Any, y: Any, *, n_starts: int, backwards: bool = False) -> Any:
    """Accuracy with as many more labels as classes, chosen, less that with random ones, from several starts."""
    classes, gains = np.unique(y), []
    spread = SpreadingClassifier(n_clusters=300, n_clusterings=2, random_state=0)
    spread.fit(points[:2], [0, 1], X_unlabeled=points)
    for seed in range(n_starts):
        rng = np.random.default_rng(seed)
        first = np.concatenate([rng.choice(np.flatnonzero(y == c), 1) for c in classes])
        spread.relabel(points[first], y[first])
        n = len(classes)
        chosen = spread.suggest(points, len(points))[-n:] if backwards else spread.suggest(points, n)
        assert len(set(chosen.tolist())) == n
        score = []
        for more in (chosen, rng.choice(len(points), n, replace=False)):
            rows = np.concatenate([first, more])
            score.append(spread.relabel(points[rows], y[rows]).score(points, y))
        gains.append(score[0] - score[1])
    return np.array(gains)


def test_following_suggestions_beats_chance() -> None:
    """Paired gains over random labels from 16 starts have a mean above 0, by Student's law, at 1 in 1,000.

    Suggestions read from their end, the least useful ones, do not.
    """
    gains, last = (gains_by_suggestion(X, Y, n_starts=16, backwards=backwards) for backwards in (False, True))
    assert stats.ttest_1samp(gains, 0, alternative="greater").pvalue < 1e-3
    assert stats.ttest_1samp(last, 0, alternative="greater").pvalue > 1e-3
    assert stats.ttest_1samp(gains - last, 0, alternative="greater").pvalue < 1e-3


@pytest.mark.slow
@pytest.mark.skipif(not MNIST.is_dir(), reason="MNIST is not beside the project")
def test_following_suggestions_beats_chance_on_mnist() -> None:
    images = load_images(MNIST)
    gains = gains_by_suggestion(binarize(images.X[:6_000], "gray"), images.y[:6_000], n_starts=16)
    assert stats.ttest_1samp(gains, 0, alternative="greater").pvalue < 1e-3


def test_suggestions_cover_what_no_label_reaches() -> None:
    """Against a loop over all centers; what is known or chosen already adds nothing."""
    rng = np.random.default_rng(0)
    likeness = rng.random((5, 5))
    likeness = (likeness + likeness.T) / 2
    np.fill_diagonal(likeness, 1)
    weights = rng.random(5)
    chosen = [2]
    for _ in range(2):
        gains = {
            i: sum(
                weights[j] * (max(likeness[c, j] for c in [*chosen, i]) - max(likeness[c, j] for c in chosen))
                for j in range(5)
            )
            for i in (0, 1, 3)
            if i not in chosen
        }
        chosen.append(max(gains, key=gains.__getitem__))
    found = most_covering(likeness, weights, np.array([2]), np.array([0, 1, 3]), 2)
    assert found.tolist() == chosen[1:]
    assert len(most_covering(likeness, weights, np.array([2]), np.array([0, 1, 3]), 9)) == 3


def test_middles_are_the_rows_nearest_to_their_center() -> None:
    Z = np.array([[0.0], [0.4], [0.1], [5.0]])
    at = sparse.csr_matrix(np.eye(3)[[0, 0, 0, 2]])
    assert middles(Z, at, np.array([[0.15], [9.0], [5.2]])).tolist() == [2, -1, 3]


def test_suggestions_pass_over_clusters_with_a_label() -> None:
    points, y = blobs()
    spread = SpreadingClassifier(n_clusters=20, random_state=0).fit(points[:3], y[:3], X_unlabeled=points[3:])
    found = spread.suggest(points, 100)
    assert len(found) == len(set(found.tolist())) <= 17
    assert not set(found.tolist()) & {0, 1, 2}
