"""Semi-supervised classification of images with few labels: representations, classifiers, and peers.

    python benchmarks/few_labels.py --data FOLDER|digits --seeds 0 1 2 --shots 1 2 5 --json PATH

Labeled rows and test rows are images that no representation was learned from, but with ``--all-rows``: the
second half of these, or the first with ``--choose``, for choosing settings. Test rows are predicted
inductively. The last methods follow the paper's protocol, logistic regression on the labeled rows alone.
Results in the file of ``--json`` are not measured again, and representations in the folder of ``--keep`` are
not learned again, as long as the code is the same. Seconds are of CPU time, user and system; with
``--threads 1`` on one thread. Libraries that are not installed are left out by name. ``--tiny`` only shows
that everything runs.
"""

import argparse
import inspect
import json
import re
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

import ebse
import few_labels_peers as peers
from ebse import RBSE, ContrastiveFeatures, FewLabelClassifier, SpreadingClassifier
from ebse._atomic import in_place
from ebse.datasets import binarize, load_images
from ebse.evaluation import Episodes, draw_episodes
from ebse.semi_supervised import ImageViews, SlowFeatures
from ebse.semi_supervised._learned_views import LearnedViews

FLAGS = ("threads", "flip", "rbm_epochs", "choose", "shuffle", "all_rows", "tiny")
FEW_ROWS = 10_000
"""Rows up to which scikit-learn's LabelSpreading is run: it is fitted anew in every episode."""
MOST_SHOTS = 5
"""Labeled rows a class that episodes are drawn with, however few are used: all have the same test rows."""
N_TINY = 300
"""Images of a tiny run."""
PENALTIES = {"no penalty": np.inf, "C = 1": 1.0}
"""C of logistic regression, under the paper's protocol."""
N_DRAWS, N_SWEEPS, KEEP_PROB = 10, 50, 0.01
"""Of chain-sampled models."""


class Task(NamedTuple):
    """Unlabeled rows, rows and labels of the episodes, and which of these belong to each."""

    rows: Any
    pool: Any
    """Rows for choosing settings and rows for reporting."""
    part: slice
    """The rows of the pool that X and y are."""
    shape: tuple[int, ...]
    """Of an image."""
    X: Any
    y: Any
    episodes: Episodes
    shots: list[int]


class Represented(NamedTuple):
    """A representation of the rows and of the pool, and the CPU seconds it took to learn."""

    rows: Any
    """(N, K)"""
    pool: Any
    """(N, K), or (N, n_draws, K) of several draws of each row."""
    seconds: float


Predict = Callable[[Any, Any], Any]
"""From indices of labeled rows of X and indices of test rows to the labels of the latter."""

Fitted = tuple[list[Predict], float]
"""Predictors, and the seconds that fitting them took."""


def main() -> None:
    """Measure every method on the same episodes."""
    options = arguments()
    if options.threads:
        torch.set_num_threads(options.threads)
        threadpool_limits(options.threads)
    task = task_of(options)
    settings = {
        name: getattr(options, name) for name in ("data", "episodes", "n_components", "threads", *FLAGS)
    }
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
            wanted = not options.only or any(re.search(one, name) for name in names for one in options.only)
            left = [(name, k) for name in names for k in task.shots if (name, k) not in known]
            if not wanted or not left:
                continue
            try:
                predictors, fitted = made()
            except ImportError as error:
                print(f"left out: {', '.join(names)}: {error}", flush=True)
                continue
            for name, predict in zip(names, predictors, strict=True):
                for n_shots in (k for method, k in left if method == name):
                    began = time.process_time()
                    accuracies = accuracies_of(predict, task, n_shots)
                    row = {
                        "method": name,
                        "seed": seed,
                        "n_shots": n_shots,
                        "accuracies": accuracies,
                        "fit_seconds": fitted,
                        "episode_seconds": (time.process_time() - began) / len(accuracies),
                    }
                    found.append(row)
                    show(row)
                    if options.json:
                        with in_place(options.json) as temporary:
                            temporary.write_text(json.dumps({"settings": settings, "rows": found}))


def task_of(options: argparse.Namespace) -> Task:
    """The data, and its episodes."""
    images = load_images(options.data)
    if options.tiny:
        few = slice(len(images.y) - N_TINY, None)
        images = images._replace(X=images.X[few], y=images.y[few], n_unlabeled=N_TINY // 3)
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
    return Task(rows, pool, part, images.shape, pool[part], y, episodes, options.shots)


def methods(
    task: Task, options: argparse.Namespace, seed: int
) -> Iterator[tuple[list[str], Callable[[], Fitted]]]:
    """Names of methods, and a function that fits them and returns their predictors and its seconds."""
    brief: dict[str, Any] = {"n_updates": 5} if options.tiny else {}
    held: dict[str, Any] = {}
    # Files of other data, of another RBM, or of other code have other names.
    data = zlib.crc32(task.pool, zlib.crc32(task.rows))
    of_what = f"{data:08x} {options.n_components} {options.rbm_epochs} {options.threads} {sources():08x}"

    def ensemble() -> FrozenEstimator:
        path = options.keep / f"RBM {seed} {of_what}.safetensors" if options.keep else None
        if "rbse" not in held and path is not None and path.exists():
            held["rbse"] = RBSE.load(path)
        if "rbse" not in held:
            settings: dict[str, Any] = {"n_epochs": options.rbm_epochs} if options.rbm_epochs else {}
            began = time.process_time()
            held["rbse"] = RBSE(options.n_components, random_state=seed, **settings).fit(task.rows)
            print(f"RBM, seed {seed}: {time.process_time() - began:.0f} s, part of the next fit", flush=True)
            if path is not None:
                held["rbse"].save(path)
        return FrozenEstimator(held["rbse"])

    def means() -> Any:
        return make_pipeline(ensemble(), PCA(min(100, options.n_components), random_state=seed))

    made: dict[str, Callable[[], Any]] = {
        "inputs": lambda: None,
        "RBM means, PCA": means,
        "slow features": lambda: SlowFeatures(ensemble(), random_state=seed),
        CONTRASTIVE: lambda: ContrastiveFeatures(random_state=seed, **brief),
        NOT_REFINED: lambda: ContrastiveFeatures(refine=False, random_state=seed, **brief),
        INDEPENDENT: lambda: IndependentWeights(seed, **brief),
        NO_VIEWS: lambda: ContrastiveFeatures(views=None, random_state=seed, **brief),
        NEITHER: lambda: ContrastiveFeatures(refine=False, views=None, random_state=seed, **brief),
        "contrastive features, image views": lambda: ContrastiveFeatures(
            views=ImageViews(task.shape, flip=options.flip), random_state=seed, **brief
        ),
        "VAE (peer)": lambda: peers.Autoencoder(seed=seed, **brief),
        "UMAP (peer)": peers.umap,
    }

    def learned(name: str) -> Represented:
        path = options.keep / f"{name} {seed} {of_what}.npz" if options.keep else None
        return represented(made[name], task, path)

    def propagated(name: str) -> Fitted:
        return propagation(learned(name), task, seed, nearest=name == "UMAP (peer)")

    def on_graph(name: str) -> Fitted:
        return graphs(learned(name), task)

    def mean() -> Represented:
        return Represented(None, ensemble().transform(task.pool), 0.0)

    def sampled() -> Represented:
        drawn = ensemble().estimator.sample_transform(
            task.X, N_DRAWS, n_sweeps=N_SWEEPS, keep_prob=KEEP_PROB, random_state=seed
        )
        return Represented(None, drawn, 0.0)

    for name in made:
        names = [f"label propagation on {name}{prior}" for prior in ("", ", class prior")]
        names += ["UMAP, nearest label (peer)"] * (name == "UMAP (peer)")
        yield names, partial(propagated, name)
    yield (
        [f"FewLabelClassifier, columns in random order{prior}" for prior in ("", ", class prior")],
        lambda: permuted(task, seed, None if options.tiny else "auto"),
    )
    yield (
        ["autoencoder, UMAP, Gaussian mixture (N2D, peer)"],
        lambda: timed(lambda: [peers.clusters_of_embedding(task.rows, task.X, task.y, seed=seed, **brief)]),
    )
    for name in ("inputs", "RBM means", SAMPLED, NEITHER, INDEPENDENT, NOT_REFINED, CONTRASTIVE):
        names = [f"logistic regression on {name}, {penalty}" for penalty in PENALTIES]
        of_ensemble = {"RBM means": mean, SAMPLED: sampled}
        yield names, partial(regressions, of_ensemble.get(name, partial(learned, name)), task)
    if seed == options.seeds[0]:
        # Nothing is random on the inputs: another seed would give the same.
        for where, view in (("", "inputs"), (", means of a VAE", "VAE (peer)")):
            names = [f"{name}{where} (peer)" for name in peers.ON_GRAPHS]
            yield names, partial(on_graph, view)
        if len(task.rows) <= FEW_ROWS:
            names = ["scikit-learn's LabelSpreading (peer)"]
            yield names, lambda: ([peers.label_spreading(task.rows, task.X, task.y)], 0.0)


CONTRASTIVE = "contrastive features"
NOT_REFINED, NO_VIEWS = f"{CONTRASTIVE}, not refined", f"{CONTRASTIVE}, without views"
NEITHER = f"{CONTRASTIVE}, neither views nor refinement"
INDEPENDENT = f"{CONTRASTIVE}, not refined, views by independent weights"
SAMPLED = "chain-sampled models"


def sources() -> int:
    """A checksum of the code."""
    here, package = Path(__file__).parent, Path(inspect.getfile(ebse)).parent
    paths = sorted([*here.glob("few_labels*.py"), *package.rglob("*.py")])
    return zlib.crc32(b"".join(path.read_bytes() for path in paths))


def graphs(found: Represented, task: Task) -> Fitted:
    """Peers on the nearest-neighbor graph of all rows in a representation."""
    began = time.process_time()
    predictors = peers.on_graphs(found.rows, found.pool[task.part], task.y)
    return predictors, found.seconds + time.process_time() - began


def timed(made: Callable[[], list[Predict]]) -> Fitted:
    """Predictors, and the CPU seconds that making them took."""
    began = time.process_time()
    return made(), time.process_time() - began


class IndependentWeights:
    """Contrastive features, not refined, whose views draw each weight of the learned law by itself.

    Weights have the variances of the learned law, and no correlations: ŷ θ, θ_ab ~ N(W̄_ab, Σ_k A_kab²), which
    has the variance Σ_a ŷ_a² Σ_k A_kab² in component b.
    """

    def __init__(self, seed: int, **settings: Any) -> None:
        self.features = ContrastiveFeatures(refine=False, random_state=seed, **settings)

    def fit(self, X: Any) -> "IndependentWeights":
        """Learn, with other draws."""

        def drawn(views: LearnedViews, y: Any, *, generator: torch.Generator) -> Any:
            inputs, variances = views.inputs(y), (views.law.A**2).sum(0)
            moved = y.clone()
            noise = torch.randn(len(y), variances.shape[1], generator=generator)
            moved[:, : variances.shape[1]] += (inputs**2 @ variances).sqrt() * noise * views.scale
            return moved

        with patch.object(LearnedViews, "__call__", drawn):
            self.features.fit(X)
        return self

    def transform(self, X: Any) -> Any:
        """The features."""
        return self.features.transform(X)


def regressions(view: Callable[[], Represented], task: Task) -> Fitted:
    """Logistic regression on the labeled rows alone, with each of the penalties.

    Draws of a row share its weight, and their probabilities are averaged.
    """
    found = view()
    Z = found.pool if len(found.pool) == len(task.y) else found.pool[task.part]
    Z = Z.reshape(len(Z), -1, Z.shape[-1])

    def with_penalty(C: float) -> Predict:
        def predict(known: Any, queries: Any) -> Any:
            _, n, K = Z.shape
            # The penalty has weight 1 / C: n draws count as one row.
            model = LogisticRegression(C=C / n, max_iter=300)
            with warnings.catch_warnings():
                # Classes of so few rows are separable, and without penalty the minimum is at infinity.
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(Z[known].reshape(-1, K), np.repeat(task.y[known], n))
            p = model.predict_proba(Z[queries].reshape(-1, K)).reshape(len(queries), n, -1).mean(1)
            return model.classes_[p.argmax(1)]

        return predict

    return [with_penalty(C) for C in PENALTIES.values()], found.seconds


def permuted(task: Task, seed: int, features: Any) -> Fitted:
    """FewLabelClassifier on rows whose columns are in a random order, without and with a class prior."""
    order = np.random.default_rng(seed).permutation(task.rows.shape[1])
    X, began = task.X[:, order], time.process_time()
    classifier = FewLabelClassifier(features=features, random_state=seed)
    classifier.fit(task.rows[:, order])
    seconds = time.process_time() - began

    def with_prior(prior: str) -> Predict:
        def predict(known: Any, queries: Any) -> Any:
            # One fit, and a relabel an episode.
            classifier.set_params(class_prior=prior).relabel(X[known], task.y[known])
            return classifier.predict(X[queries])

        return predict

    return [with_prior(prior) for prior in ("estimate", "equal")], seconds


def represented(view: Callable[[], Any], task: Task, path: Path | None) -> Represented:
    """Rows and pool in the representation; from the file if it exists."""
    if path is not None and path.exists():
        with np.load(path) as held:
            return Represented(held["rows"], held["pool"], float(held["seconds"]))
    began = time.process_time()
    made = view()
    if made is None:
        return Represented(task.rows, task.pool, 0.0)
    rows = made.fit(task.rows).transform(task.rows)
    # UMAP transforms rows jointly, and less accurately from 10,000 on.
    half = len(task.pool) // 2
    pool = np.concatenate([made.transform(part) for part in (task.pool[:half], task.pool[half:])])
    seconds = time.process_time() - began
    if path is not None:
        with in_place(path) as temporary, temporary.open("wb") as file:
            np.savez(file, rows=rows, pool=pool, seconds=seconds)
    return Represented(rows, pool, seconds)


def propagation(found: Represented, task: Task, seed: int, *, nearest: bool) -> Fitted:
    """Label propagation on a representation, without and with a class prior; optionally the nearest label."""
    X, began = found.pool[task.part], time.process_time()
    # The clusters are fitted once, and each episode only changes the labels; any two labels serve at first.
    classifier = SpreadingClassifier(random_state=seed)
    classifier.fit(found.rows[:2], [0, 1], X_unlabeled=found.rows[2:])
    seconds = found.seconds + time.process_time() - began

    def with_prior(prior: Any) -> Predict:
        def predict(known: Any, queries: Any) -> Any:
            classifier.set_params(class_prior=prior).relabel(X[known], task.y[known])
            return classifier.predict(X[queries])

        return predict

    predictors = [
        with_prior(None),
        with_prior("equal"),
        *([peers.nearest_label(X, task.y)] if nearest else []),
    ]
    return predictors, seconds


def accuracies_of(predict: Predict, task: Task, n_shots: int) -> list[float]:
    """Accuracy in every episode."""
    found = []
    for support, queries in zip(task.episodes.support, task.episodes.queries, strict=True):
        known, unknown = support[:, :n_shots].ravel(), queries.ravel()
        found.append(float(np.mean(predict(known, unknown) == task.y[unknown])))
    return found


def show(row: dict[str, Any]) -> None:
    """One line of the table."""
    accuracies = 100 * np.array(row["accuracies"])
    half = 1.96 * accuracies.std(ddof=1) / len(accuracies) ** 0.5
    print(
        f"{row['method']:<52} seed {row['seed']}  {row['n_shots']} labels  {accuracies.mean():5.1f} "
        f"± {half:.1f}  median {np.median(accuracies):5.1f}  fit {row['fit_seconds']:.0f} s",
        flush=True,
    )


def arguments() -> argparse.Namespace:
    """The command line."""
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
    parser.add_argument("--rbm-epochs", type=int, default=0, help="0: the default")
    parser.add_argument("--only", nargs="*", help="methods whose names match a regular expression")
    parser.add_argument(
        "--choose", action="store_true", help="use the images for choosing settings, not the reported ones"
    )
    parser.add_argument("--shuffle", action="store_true", help="shuffle first: digits are ordered by writer")
    parser.add_argument(
        "--all-rows", action="store_true", help="learn from all rows, and draw episodes from all of them"
    )
    parser.add_argument("--flip", action="store_true", help="image views mirror half of the images")
    parser.add_argument("--threads", type=int, default=0, help="threads of PyTorch and BLAS; 0: the default")
    parser.add_argument("--keep", type=Path, help="folder for learned representations")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--tiny", action="store_true", help="few digits, updates and episodes")
    options = parser.parse_args()
    if options.tiny:
        options.episodes, options.n_components, options.rbm_epochs = 2, 12, 1
    return options


if __name__ == "__main__":
    main()
