"""Few labels and many rows without: labels that spread on several representations, and what else there is.

    python benchmarks/few_labels.py --data FOLDER|digits --seeds 0 1 2 --shots 1 2 5 --json few_labels.json

Labeled examples and queries are images that nothing was learned from: of these the second half; with
``--choose``, for choosing settings, the first. Queries are asked one at a time. What is in the file of
``--json`` already is not measured again; representations in the folder of ``--keep`` are not learned again:
both only where they are of the same code.
"""

import argparse
import inspect
import json
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

import ebse
import few_label_peers as peers
from ebse import RBSE, ContrastiveFeatures, SpreadingClassifier
from ebse._atomic import in_place
from ebse.datasets import binarize, load_images
from ebse.evaluation import Episodes, draw_episodes
from ebse.semi_supervised import SlowFeatures

FLAGS = ("rbm_epochs", "choose", "shuffle", "all_rows")
FEW_ROWS = 10_000
"""Up to which scikit-learn's LabelSpreading is asked: it begins anew in every episode."""
MOST_SHOTS = 5
"""Labeled examples that episodes are drawn with, however few are used: so all have the same queries."""


class Task(NamedTuple):
    """Rows without labels, rows and labels of the episodes, and which of these belong to each."""

    rows: Any
    pool: Any
    """Rows for choosing settings and rows for reporting."""
    part: slice
    """Of the pool, what X and y are."""
    X: Any
    y: Any
    episodes: Episodes
    shots: list[int]


class Seen(NamedTuple):
    """A representation of the rows and of the pool, and the seconds it took to learn."""

    rows: Any
    pool: Any
    seconds: float


Predict = Callable[[Any, Any], Any]
"""From numbers of labeled rows of X and numbers of queries to the labels of these."""


def main() -> None:
    """Measure every method on the same episodes."""
    options = arguments()
    task = task_of(options)
    settings = {name: getattr(options, name) for name in ("data", "episodes", "n_components", *FLAGS)}
    settings["sources"] = f"{sources():08x}"
    found: list[dict[str, Any]] = []
    if options.json and options.json.exists():
        held = json.loads(options.json.read_text())
        if held["settings"] != settings:
            raise SystemExit(
                f"{options.json} must have the same settings, got {held['settings']}; name another"
            )
        found = held["rows"]
    for seed in options.seeds:
        for names, made in methods(task, options, seed):
            known = {(r["method"], r["n_shots"]) for r in found if r["seed"] == seed}
            wanted = not options.only or any(word in name for name in names for word in options.only)
            left = [(name, k) for name in names for k in task.shots if (name, k) not in known]
            if not wanted or not left:
                continue
            predictors, fitted = made()
            for name, predict in zip(names, predictors, strict=True):
                for n_shots in (k for method, k in left if method == name):
                    began = time.perf_counter()
                    accuracies = asked(predict, task, n_shots)
                    row = {
                        "method": name,
                        "seed": seed,
                        "n_shots": n_shots,
                        "accuracies": accuracies,
                        "fit_seconds": fitted,
                        "episode_seconds": (time.perf_counter() - began) / len(accuracies),
                    }
                    found.append(row)
                    say(row)
                    if options.json:
                        with in_place(options.json) as temporary:
                            temporary.write_text(json.dumps({"settings": settings, "rows": found}))


def task_of(options: argparse.Namespace) -> Task:
    """The data, and its episodes."""
    images = load_images(options.data)
    if options.shuffle:
        order = np.random.default_rng(0).permutation(len(images.y))
        images = images._replace(X=images.X[order], y=images.y[order])
    pool, y = (images.X, images.y) if options.all_rows else images.episodes
    half = len(y) // 2
    part = slice(half) if options.choose else slice(half, None)
    y = y[part]
    least = int(np.unique(y, return_counts=True)[1].min())
    most = max(MOST_SHOTS, *options.shots)
    episodes = draw_episodes(
        y, n_shots=most, n_queries=min(99, least - most), n_episodes=options.episodes, random_state=0
    )
    rows, pool = (binarize(X, "gray") for X in (images.X if options.all_rows else images.unlabeled, pool))
    return Task(rows, pool, part, pool[part], y, episodes, options.shots)


def methods(
    task: Task, options: argparse.Namespace, seed: int
) -> Iterator[tuple[list[str], Callable[[], tuple[list[Predict], float]]]]:
    """What is compared, each made when it is its turn, in so many seconds: without and with class sizes."""
    held: dict[str, Any] = {}
    # Files of other data, of another RBM, or by other code, have other names.
    data = zlib.crc32(task.pool, zlib.crc32(task.rows))
    of_what = f"{data:08x} {options.n_components} {options.rbm_epochs} {sources():08x}"

    def ensemble() -> FrozenEstimator:
        path = options.keep / f"RBM {seed} {of_what}.safetensors" if options.keep else None
        if "rbse" not in held and path is not None and path.exists():
            held["rbse"] = RBSE.load(path)
        if "rbse" not in held:
            settings: dict[str, Any] = {"n_epochs": options.rbm_epochs} if options.rbm_epochs else {}
            began = time.perf_counter()
            held["rbse"] = RBSE(options.n_components, random_state=seed, **settings).fit(task.rows)
            print(f"RBM, seed {seed}: {time.perf_counter() - began:.0f} s, part of the next fit", flush=True)
            if path is not None:
                held["rbse"].save(path)
        return FrozenEstimator(held["rbse"])

    def means() -> Any:
        return make_pipeline(ensemble(), PCA(min(100, options.n_components), random_state=seed))

    made: dict[str, Callable[[], Any]] = {
        "inputs": lambda: None,
        "RBM means, PCA": means,
        "slow features": lambda: SlowFeatures(ensemble(), random_state=seed),
        "contrastive features": lambda: ContrastiveFeatures(random_state=seed),
        "VAE (peer)": lambda: peers.Autoencoder(seed=seed),
        "UMAP (peer)": peers.umap,
    }

    def learned(name: str) -> Seen:
        path = options.keep / f"{name} {seed} {of_what}.npz" if options.keep else None
        return seen(made[name], task, path)

    for name in made:
        names = [f"spreading on {name}{sizes}" for sizes in ("", ", sizes")]
        nearest = name == "UMAP (peer)"
        names += ["UMAP, nearest label (peer)"] * nearest
        yield names, lambda name=name, nearest=nearest: spreading(learned(name), task, seed, nearest=nearest)
    if seed == options.seeds[0]:
        # On the inputs nothing is drawn: another seed would give the same.
        for where, view in (("", "inputs"), (", a VAE's means", "VAE (peer)")):
            names = [f"{name}{where} (peer)" for name in peers.ON_GRAPHS]
            yield names, lambda view=view: graphs(learned(view), task)
        if len(task.rows) <= FEW_ROWS:
            names = ["scikit-learn's LabelSpreading (peer)"]
            yield names, lambda: ([peers.label_spreading(task.rows, task.X, task.y)], 0.0)


def sources() -> int:
    """A checksum of the code."""
    here, package = Path(__file__).parent, Path(inspect.getfile(ebse)).parent
    paths = sorted([*here.glob("few_label*.py"), *package.rglob("*.py")])
    return zlib.crc32(b"".join(path.read_bytes() for path in paths))


def graphs(found: Seen, task: Task) -> tuple[list[Predict], float]:
    """Labels on the graph of all rows in a representation."""
    began = time.perf_counter()
    predictors = peers.on_graphs(found.rows, found.pool[task.part], task.y)
    return predictors, found.seconds + time.perf_counter() - began


def seen(view: Callable[[], Any], task: Task, path: Path | None) -> Seen:
    """Rows and pool in the representation; from the file if it is there."""
    if path is not None and path.exists():
        with np.load(path) as held:
            return Seen(held["rows"], held["pool"], float(held["seconds"]))
    began = time.perf_counter()
    made = view()
    if made is None:
        return Seen(task.rows, task.pool, 0.0)
    rows = made.fit(task.rows).transform(task.rows)
    # UMAP places rows together, and takes less care of more than 10,000.
    half = len(task.pool) // 2
    pool = np.concatenate([made.transform(part) for part in (task.pool[:half], task.pool[half:])])
    seconds = time.perf_counter() - began
    if path is not None:
        with in_place(path) as temporary, temporary.open("wb") as file:
            np.savez(file, rows=rows, pool=pool, seconds=seconds)
    return Seen(rows, pool, seconds)


def spreading(found: Seen, task: Task, seed: int, *, nearest: bool) -> tuple[list[Predict], float]:
    """Labels that spread on a representation, without and with class sizes; if asked, the nearest label."""
    X, began = found.pool[task.part], time.perf_counter()
    # The representation is made once, and each episode only tells other labels; any two will do at first.
    classifier = SpreadingClassifier(random_state=seed)
    classifier.fit(found.rows[:2], [0, 1], X_unlabeled=found.rows[2:])
    seconds = found.seconds + time.perf_counter() - began

    def spread(sizes: Any) -> Predict:
        def predict(known: Any, queries: Any) -> Any:
            classifier.set_params(class_prior=sizes).relabel(X[known], task.y[known])
            return classifier.predict(X[queries])

        return predict

    predictors = [spread(None), spread("equal"), *([peers.nearest_label(X, task.y)] if nearest else [])]
    return predictors, seconds


def asked(predict: Predict, task: Task, n_shots: int) -> list[float]:
    """Accuracy in every episode."""
    found = []
    for support, queries in zip(task.episodes.support, task.episodes.queries, strict=True):
        known, unknown = support[:, :n_shots].ravel(), queries.ravel()
        found.append(float(np.mean(predict(known, unknown) == task.y[unknown])))
    return found


def say(row: dict[str, Any]) -> None:
    """One line of the table."""
    accuracies = 100 * np.array(row["accuracies"])
    half = 1.96 * accuracies.std(ddof=1) / len(accuracies) ** 0.5
    print(
        f"{row['method']:<52} seed {row['seed']}  {row['n_shots']} labels  {accuracies.mean():5.1f} "
        f"± {half:.1f}  median {np.median(accuracies):5.1f}  fit {row['fit_seconds']:.0f} s",
        flush=True,
    )


def arguments() -> argparse.Namespace:
    """Of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", default="digits", help="digits, mnist, fashion-mnist, or a folder of idx files"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--shots", type=int, nargs="+", default=[1])
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--n-components", type=int, default=1000, help="hidden units of the RBM")
    parser.add_argument("--rbm-epochs", type=int, default=0, help="0: the library's choice")
    parser.add_argument("--only", nargs="*", help="methods whose names have one of these words")
    parser.add_argument(
        "--choose", action="store_true", help="images for choosing settings, not those that are reported"
    )
    parser.add_argument(
        "--shuffle", action="store_true", help="first of all; digits are in the order of their writers"
    )
    parser.add_argument(
        "--all-rows", action="store_true", help="learn from all rows, and draw episodes from all of them"
    )
    parser.add_argument("--keep", type=Path, help="folder for what was learned; the RBM in it takes no time")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
