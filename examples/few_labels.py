"""One label per class on scikit-learn's digits: learn without labels, classify with ten of them.

    python examples/few_labels.py

Writes components.png, what was learned, and few_labels.png, the digits the classifier is least sure of.
"""

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from ebse import RBSE
from ebse.ensemble import RBSEClassifier
from ebse.evaluation import baselines, few_shot


def main() -> None:
    """Fit, predict, compare, draw."""
    X, y = load_digits(return_X_y=True)
    X = (X / 16).astype(np.float32)  # 16 is the largest gray value

    # 1. An ensemble that learns from all digits; no label is looked at.
    rbse = RBSE(n_components=100, random_state=0, verbose=1).fit(X)

    # 2. Ten labels, the first of each digit.
    labeled = np.array([np.flatnonzero(y == digit)[0] for digit in range(10)])
    rest = np.setdiff1d(np.arange(len(y)), labeled)
    few = RBSEClassifier(FrozenEstimator(rbse), random_state=0)
    few.fit(X[labeled], y[labeled], X_unlabeled=X)
    pixels = LogisticRegression(C=np.inf, max_iter=1000).fit(X[labeled], y[labeled])
    print(f"walks {few.n_sweeps_} sweeps, draws from the {few.source_}")
    print(f"accuracy on the other {len(rest)}: {few.score(X[rest], y[rest]):.3f}")
    print(f"logistic regression on pixels:  {pixels.score(X[rest], y[rest]):.3f}")

    # 3. Ten labels are a matter of luck: a hundred such choices, the same for every method.
    methods = baselines(X, image_shape=(8, 8), ensemble=rbse) | {"RBSEClassifier": few}
    print(few_shot(methods, X, y, n_queries=20, random_state=0, progress=True))

    # 4. What was learned, and where it is unsure.
    entropy = few.uncertainty(X[rest]).entropy
    unsure = rest[np.argsort(entropy)[::-1][:10]]
    rbse.plot_components(64).savefig("components.png", dpi=150)
    figure = Figure(figsize=(8, 1.6), layout="constrained")
    for place, row in zip(figure.subplots(1, 10), unsure, strict=True):
        place.imshow(X[row].reshape(8, 8), cmap="gray_r")
        place.set_title(f"{few.predict(X[row : row + 1])[0]} ({y[row]})", fontsize=9)
        place.set_axis_off()
    figure.savefig("few_labels.png", dpi=150)
    print("wrote components.png and few_labels.png (predicted and true digit of the ten least sure)")


if __name__ == "__main__":
    main()
