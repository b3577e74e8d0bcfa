"""Few labels and many rows without: labels that spread on several representations, and what else there is.

    python benchmarks/few_labels.py --data FOLDER|digits --seeds 0 1 2 --shots 1 2 5 --json few_labels.json

Episodes as in the paper: labelled examples and queries from images that nothing was learned from.
``--choose`` draws other episodes than those that are reported, for choosing settings.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from ebse import RBSE, SlowFeatures, SpreadingClassifier
from ebse.data import Images, binarise, load_images
from ebse.evaluation import Episodes, draw_episodes

CHOOSING, REPORTED = 1_000, 0
"""Seeds of the episodes."""


def main() -> None:
    """Measure every method on the same episodes."""
    options = arguments()
    images = load_images(options.data)
    pool, y = images.episodes
    pool = binarise(pool, options.binarisation)
    least = int(np.unique(y, return_counts=True)[1].min())
    episodes = draw_episodes(
        y,
        n_shots=max(options.shots),
        n_queries=min(99, least - max(options.shots)),
        n_episodes=options.episodes,
        random_state=CHOOSING if options.choose else REPORTED,
    )
    rows = []
    for seed in options.seeds:
        for name, made in methods(images, options, seed):
            if options.only and not any(word in name for word in options.only):
                continue
            began = time.perf_counter()
            classify = made()
            fitted = time.perf_counter() - began
            for n_shots in options.shots:
                found = accuracies(classify, pool, y, episodes, n_shots)
                row = {
                    "method": name,
                    "seed": seed,
                    "n_shots": n_shots,
                    "accuracies": found,
                    "fit_seconds": fitted,
                }
                rows.append(row)
                half = 1.96 * np.std(found, ddof=1) / len(found) ** 0.5
                print(
                    f"{name:<44} seed {seed}  {n_shots} labels  {100 * np.mean(found):5.1f} "
                    f"± {100 * half:.1f}   fit {fitted:.0f} s",
                    flush=True,
                )
    if options.json:
        options.json.write_text(json.dumps({"data": images.name, "rows": rows}, indent=1))


Classify = Callable[[Any, Any, Any], Any]
"""From labelled rows, their labels and queries to the labels of these."""


def methods(
    images: Images, options: argparse.Namespace, seed: int
) -> Iterator[tuple[str, Callable[[], Classify]]]:
    """What is compared, each made when it is its turn."""
    rows = binarise(images.unlabelled, options.binarisation)
    learned: dict[str, Any] = {}

    def ensemble() -> RBSE:
        if "rbse" not in learned:
            settings: dict[str, Any] = {"n_epochs": options.rbm_epochs} if options.rbm_epochs else {}
            learned["rbse"] = RBSE(options.n_components, random_state=seed, **settings).fit(rows)
        return learned["rbse"]  # type: ignore[no-any-return]

    def slow(walk: str) -> SlowFeatures:
        if walk not in learned:
            made = SlowFeatures(FrozenEstimator(ensemble()), walk=walk, random_state=seed)
            learned[walk] = made.fit(rows)
        return learned[walk]  # type: ignore[no-any-return]

    def means() -> Any:
        if "means" not in learned:
            pca = PCA(min(100, options.n_components), random_state=seed)
            learned["means"] = make_pipeline(FrozenEstimator(ensemble()), pca).fit(rows)
        return learned["means"]

    views: dict[str, Callable[[], Any]] = {
        "inputs": lambda: None,
        "RBM means, PCA": means,
        "slow features, ensemble's walk": lambda: slow("ensemble"),
        "slow features, neighbours' walk": lambda: slow("neighbours"),
        "both slow features": lambda: [slow("ensemble"), slow("neighbours")],
    }
    for name, view in views.items():
        for sizes in (None, "equal"):
            label = f"spreading on {name}{', sizes' if sizes else ''}"
            yield label, lambda view=view, sizes=sizes: spreading(view(), sizes, rows, seed)
    yield "umap, nearest label", lambda: mapped(rows)


def spreading(view: Any, sizes: Any, rows: Any, seed: int) -> Classify:
    """Clusters of the rows, made once; each episode only tells other labels."""
    held = view if isinstance(view, list) else [view]
    frozen = [None if one is None else FrozenEstimator(one) for one in held]
    classifier = SpreadingClassifier(frozen, class_sizes=sizes, random_state=seed)
    # Any two labels will do for the first time.
    classifier.set_params(class_sizes=None).fit(rows[:2], [0, 1], X_unlabeled=rows[2:])
    classifier.set_params(class_sizes=sizes)
    return lambda X, y, queries: classifier.relabel(X, y).predict(queries)


def mapped(rows: Any) -> Classify:
    """umap-learn's map of the rows, into which others are put one by one; the nearest label decides."""
    import umap

    made = umap.UMAP(n_components=2).fit(rows)
    known: dict[bytes, Any] = {}

    def place(X: Any) -> Any:
        new = [x for x in X if x.tobytes() not in known]
        if new:
            known.update(zip((x.tobytes() for x in new), made.transform(np.stack(new)), strict=True))
        return np.stack([known[x.tobytes()] for x in X])

    return lambda X, y, queries: KNeighborsClassifier(1).fit(place(X), y).predict(place(queries))


def accuracies(classify: Classify, X: Any, y: Any, episodes: Episodes, n_shots: int) -> list[float]:
    """Of every episode."""
    found = []
    for support, queries in zip(episodes.support, episodes.queries, strict=True):
        known, asked = support[:, :n_shots].ravel(), queries.ravel()
        found.append(float(np.mean(classify(X[known], y[known], X[asked]) == y[asked])))
    return found


def arguments() -> argparse.Namespace:
    """Of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", default="digits", help="digits, mnist, fashion-mnist, or a folder of idx files"
    )
    parser.add_argument("--binarisation", default="threshold", choices=["threshold", "grey"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--shots", type=int, nargs="+", default=[1])
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--n-components", type=int, default=400)
    parser.add_argument("--rbm-epochs", type=int, default=0, help="0: the library's choice")
    parser.add_argument("--only", nargs="*", help="methods whose names have one of these words")
    parser.add_argument(
        "--choose", action="store_true", help="episodes for choosing, not those that are reported"
    )
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
