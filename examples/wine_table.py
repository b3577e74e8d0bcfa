"""Write a table for the command line: scikit-learn's wines, with labels for fifteen of them.

    python examples/wine_table.py

Writes wine.csv, 178 wines by 13 measurements with a column "grower" that is mostly empty, and wine_known.csv,
the same with all growers.
"""

import csv

import numpy as np
from sklearn.datasets import load_wine

N_LABELED = 5
"""Wines of each grower that have a label."""


def main() -> None:
    """Write both tables."""
    wine = load_wine()
    growers = np.array(["Aldo", "Berta", "Carla"])[wine.target]
    rng = np.random.default_rng(0)
    labeled = np.concatenate(
        [rng.permutation(np.flatnonzero(wine.target == k))[:N_LABELED] for k in range(3)]
    )
    for path, known in (("wine.csv", labeled), ("wine_known.csv", np.arange(len(growers)))):
        given = set(known.tolist())
        with open(path, "w", newline="") as file:
            table = csv.writer(file)
            table.writerow([*wine.feature_names, "grower"])
            table.writerows(
                [*row, growers[i] if i in given else ""] for i, row in enumerate(wine.data.tolist())
            )
        print(f"{path}: {len(growers)} wines, {len(given)} with a grower")


if __name__ == "__main__":
    main()
