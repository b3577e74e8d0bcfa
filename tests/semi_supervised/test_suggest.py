"""Suggestions: which rows are chosen, which never, and that following them is better than chance."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_digits

from ebse import SpreadingClassifier
from ebse.datasets import binarize, load_images
from ebse.semi_supervised._propagation import most_covering, representatives
from semi_supervised.blobs import blobs

X, Y = load_digits(return_X_y=True)
X = X / 16
MNIST = Path(__file__).parents[3] / "shared" / "data" / "mnist"


def gains_by_suggestion(points: Any, y: Any, *, n_starts: int) -> tuple[Any, Any]:
    """Gains in accuracy of the rows over random labels, by as many suggestions as classes, from several starts.

    By the first suggestions, and by the last ones of an order of all clusters.
    """
    classes, gains = np.unique(y), []
    n = len(classes)
    spreading = SpreadingClassifier(n_clusters=300, n_clusterings=2, random_state=0).fit(points)

    def accuracy(rows: Any) -> float:
        some = np.full(len(y), None, dtype=object)
        some[rows] = y[rows]
        return float((spreading.relabel(y=some).transduction_ == y).mean())

    for seed in range(n_starts):
        rng = np.random.default_rng(seed)
        first = np.concatenate([rng.choice(np.flatnonzero(y == c), 1) for c in classes])
        accuracy(first)
        order = spreading.suggest(len(points))
        assert not set(order) & set(first)
        at_random = rng.choice(np.setdiff1d(np.arange(len(y)), first), n, replace=False)
        found = [accuracy([*first, *more]) for more in (order[:n], order[-n:], at_random)]
        gains.append((found[0] - found[2], found[1] - found[2]))
    chosen, last = np.transpose(gains)
    return chosen, last


def test_following_suggestions_beats_chance() -> None:
    """Paired gains over random labels from 32 starts have a mean above 0 by a t-test at 1 in 1,000.

    Suggestions read from their end, the least useful ones, do not.
    """
    gains, last = gains_by_suggestion(X, Y, n_starts=32)
    assert stats.ttest_1samp(gains, 0, alternative="greater").pvalue < 1e-3
    assert stats.ttest_1samp(last, 0, alternative="greater").pvalue > 1e-3
    assert stats.ttest_1samp(gains - last, 0, alternative="greater").pvalue < 1e-3


@pytest.mark.slow
@pytest.mark.skipif(not MNIST.is_dir(), reason="MNIST is not beside the project")
def test_following_suggestions_beats_chance_on_mnist() -> None:
    images = load_images(MNIST)
    gains, _ = gains_by_suggestion(binarize(images.X[:6_000], "gray"), images.y[:6_000], n_starts=48)
    assert stats.ttest_1samp(gains, 0, alternative="greater").pvalue < 1e-3


def test_suggestions_cover_most() -> None:
    """Against a loop over all centers; labeled centers and those chosen before add nothing."""
    rng = np.random.default_rng(0)
    similarity = rng.random((5, 5))
    similarity = (similarity + similarity.T) / 2
    np.fill_diagonal(similarity, 1)
    weights = rng.random(5)
    chosen = [2]
    for _ in range(2):
        gains = {
            i: sum(
                weights[j]
                * (max(similarity[c, j] for c in [*chosen, i]) - max(similarity[c, j] for c in chosen))
                for j in range(5)
            )
            for i in (0, 1, 3)
            if i not in chosen
        }
        chosen.append(max(gains, key=gains.__getitem__))
    found = most_covering(similarity, weights, np.array([2]), np.array([0, 1, 3]), 2)
    assert found.tolist() == chosen[1:]
    assert len(most_covering(similarity, weights, np.array([2]), np.array([0, 1, 3]), 9)) == 3


def test_without_labels_the_first_center_covers_most() -> None:
    similarity, weights = np.random.default_rng(0).random((5, 5)), np.arange(5.0)
    found = most_covering(similarity, weights, np.empty(0, dtype=np.intp), np.arange(5), 1)
    assert found.tolist() == [int((similarity @ weights).argmax())]


def test_representatives_are_the_closest_allowed_rows() -> None:
    nearest, distance = np.array([0, 0, 0, 2]), np.array([0.3, 0.2, 0.1, 0.5])
    allowed = np.array([True, True, True, True])
    assert representatives(nearest, distance, allowed, 3).tolist() == [2, -1, 3]
    allowed[2:] = False
    assert representatives(nearest, distance, allowed, 3).tolist() == [1, -1, -1]


def test_suggestions_pass_over_clusters_with_a_label() -> None:
    points, y = blobs()
    spreading = SpreadingClassifier(n_clusters=20, random_state=0)
    spreading.fit(points[:3], y[:3], X_unlabeled=points[3:])
    found = spreading.suggest(100)
    assert len(found) == len(set(found.tolist())) <= 17
    assert not set(found.tolist()) & {0, 1, 2}
    # Of the same rows given again, the same.
    np.testing.assert_array_equal(spreading.suggest(100, X=points), found)


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("labeled", [False, True])
def test_excluded_rows_are_never_suggested(given: bool, labeled: bool) -> None:
    """One after the other is excluded, until none is left; a cluster then has its next row suggested."""
    points, y = blobs()
    partly = [int(c) if i < 3 else None for i, c in enumerate(y)] if labeled else None
    spreading = SpreadingClassifier(n_clusters=20, random_state=0).fit(points, partly)
    excluded: list[int] = []
    while len(found := spreading.suggest(7, X=points if given else None, exclude=excluded)):
        assert not set(found.tolist()) & set(excluded)
        excluded.extend(found.tolist())
    assert len(excluded) == len(set(excluded))
    assert len(excluded) == 60 if not labeled else 40 < len(excluded) <= 57


def test_rows_equal_to_labeled_ones_are_not_suggested() -> None:
    """Each row twice; clusters of single pairs, so a labeled pair has no other row."""
    points, y = blobs()
    spreading = SpreadingClassifier(n_clusters=60, random_state=0).fit(np.repeat(points, 2, axis=0))
    spreading.relabel(points[:3], y[:3])
    assert set(spreading.suggest(200).tolist()).isdisjoint(range(6))


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"n": 0}, ValueError, "n must be >= 1"),
        ({"n": X}, TypeError, "n must be a whole number"),
        ({"exclude": [60]}, ValueError, "exclude must hold indices of rows, whole numbers from 0 to 59"),
        ({"exclude": [-1]}, ValueError, "exclude must hold indices of rows"),
        ({"exclude": [0.5]}, ValueError, "exclude must hold indices of rows"),
    ],
)
def test_bad_requests(options: Any, kind: type[Exception], message: str) -> None:
    points, y = blobs()
    with pytest.raises(kind, match=message):
        SpreadingClassifier(n_clusters=20, random_state=0).fit(points, y).suggest(**options)
