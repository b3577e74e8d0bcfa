"""Transductive baselines: scikit-learn's LabelSpreading, and nearest neighbors in a UMAP embedding."""

import importlib
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelSpreading

from ebse.evaluation import Episodes, draw_episodes

Array = npt.NDArray[Any]
Accuracies = dict[int, list[float]]


def spread_labels(
    X: Array, y: Array, *, shots: tuple[int, ...], n_queries: int, n_episodes: int, random_state: int
) -> Accuracies:
    """Accuracies of scikit-learn's LabelSpreading on the labeled rows and the test rows of each episode.

    Its settings are the defaults, but for the kernel: the ten nearest neighbors.

    References
    ----------
    D. Zhou et al., "Learning with local and global consistency", 2004.
    """
    episodes = _episodes(y, shots, n_queries, n_episodes, random_state)
    found: Accuracies = {k: [] for k in shots}
    for e in range(n_episodes):
        for k in shots:
            support, queries = episodes.support[e, :, :k].ravel(), episodes.queries[e].ravel()
            known = np.concatenate([y[support], np.full(len(queries), -1)])
            spread = LabelSpreading(kernel="knn", n_neighbors=min(10, len(known) - 1), max_iter=100)
            spread.fit(X[np.concatenate([support, queries])], known)
            right = spread.transduction_[len(support) :] == y[queries]
            found[k].append(float(right.mean()))
    return found


def umap_neighbors(
    X: Array, y: Array, *, shots: tuple[int, ...], n_queries: int, n_episodes: int, random_state: int
) -> Accuracies:
    """Accuracies of the nearest labeled row in a two-dimensional UMAP embedding of all rows.

    Rows of X without a label in y come first.

    References
    ----------
    L. McInnes, J. Healy, J. Melville, "UMAP: uniform manifold approximation and projection for dimension
    reduction", 2018.
    """
    umap: Any = importlib.import_module("umap")
    # Without a seed it uses all cores, and its embedding differs a little from run to run.
    mapped = umap.UMAP(n_components=2).fit_transform(X)[len(X) - len(y) :]
    episodes = _episodes(y, shots, n_queries, n_episodes, random_state)
    found: Accuracies = {}
    for k in shots:
        found[k] = []
        for e in range(n_episodes):
            support, queries = episodes.support[e, :, :k].ravel(), episodes.queries[e].ravel()
            nearest = KNeighborsClassifier(1).fit(mapped[support], y[support])
            found[k].append(float(nearest.score(mapped[queries], y[queries])))
    return found


def _episodes(
    y: Array, shots: tuple[int, ...], n_queries: int, n_episodes: int, random_state: int
) -> Episodes:
    return draw_episodes(
        y, n_shots=max(shots), n_queries=n_queries, n_episodes=n_episodes, random_state=random_state
    )
