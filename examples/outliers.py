"""Outlier detection: corrupted digits, ranked without labels by their distance to the ensemble's images.

    python examples/outliers.py

The models learn from half of the digits. Half of the others are corrupted; the area under the ROC curve says
how well a score ranks these above the clean ones (0.5 is chance, 1 is perfect).
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

from ebse import RBSE


def main() -> None:
    """Learn, corrupt, rank."""
    X = (load_digits().data / 16).astype(np.float32)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))
    train, test = X[order[: len(X) // 2]], X[order[len(X) // 2 :]]
    corrupt = np.arange(len(test)) % 2 == 0
    rbse = RBSE(n_components=100, random_state=0).fit(train)
    forest = IsolationForest(random_state=0).fit(train)
    print(f"{'corruption':<28}{'outlier_score':>14}{'-score_samples':>16}{'IsolationForest':>17}")
    for name, change in CORRUPTIONS.items():
        rows = test.copy()
        rows[corrupt] = change(rows[corrupt], rng)
        scores = rbse.outlier_score(rows), -rbse.score_samples(rows), -forest.score_samples(rows)
        areas = [roc_auc_score(corrupt, score) for score in scores]
        print(f"{name:<28}{areas[0]:>14.3f}{areas[1]:>16.3f}{areas[2]:>17.3f}")


def shuffled(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A quarter of the pixels of each digit in another order."""
    X = X.copy()
    for row in X:
        some = rng.permutation(X.shape[1])[: X.shape[1] // 4]
        row[some] = row[rng.permutation(some)]
    return X


def blocked(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A 3 × 3 block of each digit blackened or whitened."""
    X = X.reshape(-1, 8, 8).copy()
    for image in X:
        top, left = rng.integers(0, 6, 2)
        image[top : top + 3, left : left + 3] = rng.integers(0, 2)
    return X.reshape(len(X), -1)


def noisy(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Normal noise of a quarter of the range on every pixel."""
    return np.clip(X + rng.normal(0, 0.25, X.shape), 0, 1).astype(np.float32)


CORRUPTIONS = {
    "a quarter of pixels shuffled": shuffled,
    "a 3 × 3 block": blocked,
    "normal noise, 0.25": noisy,
}


if __name__ == "__main__":
    main()
