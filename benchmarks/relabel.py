"""CPU seconds of one step of interactive labeling: new labels, probabilities of all rows, rows to label next.

    python benchmarks/relabel.py [--tiny]

One thread. 50,000 rows of 50 columns in single precision, 6 clusterings of 1,000 clusters, 10 classes, 100
labels. "Kept" uses the cluster assignments that SpreadingClassifier keeps; "anew" computes them again, as for
other rows. The last two lines are those of FewLabelClassifier, which relabels propagation alone, or all
members. CPU seconds are user and system time of the process; the median of several repetitions.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

# Before NumPy is imported: its libraries count threads then.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402

from ebse import FewLabelClassifier, SpreadingClassifier  # noqa: E402


def cpu_seconds(run: Callable[[], Any], n: int) -> float:
    """Median CPU seconds of n calls."""
    found = []
    for _ in range(n):
        begin = time.process_time()
        run()
        found.append(time.process_time() - begin)
    return statistics.median(found)


def main() -> None:
    """Fit once, then time labeling steps with kept and with new assignments, and compare probabilities."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true", help="300 rows and 20 clusters, to try the script")
    tiny = parser.parse_args().tiny
    n_rows, n_clusters, n_repeats = (300, 20, 1) if tiny else (50_000, 1_000, 5)
    rng = np.random.default_rng(0)
    kind = rng.integers(10, size=n_rows)
    X = (rng.normal(size=(n_rows, 50)) + 1.5 * rng.normal(size=(10, 50))[kind]).astype(np.float32)
    spreading = SpreadingClassifier(n_clusters=n_clusters, random_state=0).fit(X)
    y = np.full(n_rows, np.nan)
    few = rng.choice(n_rows, 100, replace=False)
    y[few] = kind[few]

    def kept() -> Any:
        spreading.relabel(y=y)
        p = spreading.label_distributions_
        spreading.suggest(8)
        return p

    def anew() -> Any:
        spreading.relabel(X[few], kind[few])
        p = spreading.predict_proba(X)
        spreading.suggest(8, X=X)
        return p

    difference = float(abs(kept() - anew()).max())
    print(f"{n_rows} rows, 6 x {n_clusters} clusters, 1 thread; CPU seconds (user + system), median:")
    print(f"kept assignments  {cpu_seconds(kept, n_repeats):8.3f}")
    print(f"computed anew     {cpu_seconds(anew, min(n_repeats, 2)):8.3f}")
    print(f"largest difference of probabilities {difference:.1e}")
    model = FewLabelClassifier(random_state=0).fit(X, y)
    for members in ("propagation", "all"):

        def step(members: str = members) -> None:
            model.relabel(X[few], kind[few], members=members)
            _ = model.label_distributions_
            model.suggest(8)

        step()
        print(f"few-label, {members:<12}{cpu_seconds(step, n_repeats):8.3f}")


if __name__ == "__main__":
    main()
