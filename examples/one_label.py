"""One label per class on scikit-learn's digits: label propagation, an ensemble, and a fair comparison.

    python examples/one_label.py

Writes components.png, the weights of the ensemble, and one_label.png, the ten least certain predictions.
"""

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from ebse import RBSE, SpreadingClassifier
from ebse.ensemble import RBSEClassifier
from ebse.evaluation import baselines, few_shot


def main() -> None:
    """Fit, predict, compare, plot."""
    X, y = load_digits(return_X_y=True)
    X = (X / 16).astype(np.float32)  # 16 is the largest gray value

    # 1. Ten labels, the first of each digit; all other entries of y are missing.
    labeled = np.array([np.flatnonzero(y == digit)[0] for digit in range(10)])
    rest = np.setdiff1d(np.arange(len(y)), labeled)
    y_few = np.full(len(y), np.nan)
    y_few[labeled] = y[labeled]

    # 2. Label propagation over all rows, and logistic regression on the ten labeled ones.
    spreading = SpreadingClassifier(random_state=0).fit(X, y_few)
    pixels = LogisticRegression(C=np.inf, max_iter=1000).fit(X[labeled], y[labeled])
    print(f"accuracy on the other {len(rest)} rows")
    print(f"SpreadingClassifier            {spreading.score(X[rest], y[rest]):.3f}")
    print(f"logistic regression on pixels  {pixels.score(X[rest], y[rest]):.3f}")
    print(f"rows to label next: {spreading.suggest(5)}")

    # 3. An ensemble that learns from all rows without labels, and a classifier on its representations.
    rbse = RBSE(n_components=100, random_state=0, verbose=1).fit(X)
    few = RBSEClassifier(FrozenEstimator(rbse), random_state=0)
    few.fit(X[labeled], y[labeled], X_unlabeled=X)
    print(f"RBSEClassifier                 {few.score(X[rest], y[rest]):.3f}")
    print(f"chain of {few.n_sweeps_} sweeps, representation: {few.source_}")

    # 4. One label set says little: a hundred label sets, the same for every method.
    methods = baselines(X, image_shape=(8, 8), ensemble=rbse) | {"RBSEClassifier": few}
    print(few_shot(methods, X, y, n_queries=20, random_state=0, progress=True))

    # 5. The weights of the ensemble, and the least certain predictions.
    entropy = few.uncertainty(X[rest]).entropy
    unsure = rest[np.argsort(entropy)[::-1][:10]]
    rbse.plot_components(64).savefig("components.png", dpi=150)
    figure = Figure(figsize=(8, 1.6), layout="constrained")
    for axes, row in zip(figure.subplots(1, 10), unsure, strict=True):
        axes.imshow(X[row].reshape(8, 8), cmap="gray_r")
        axes.set_title(f"{few.predict(X[row : row + 1])[0]} ({y[row]})", fontsize=9)
        axes.set_axis_off()
    figure.savefig("one_label.png", dpi=150)
    print("wrote components.png and one_label.png (predicted and true digit of the ten least certain rows)")


if __name__ == "__main__":
    main()
