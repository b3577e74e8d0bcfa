"""Section 3.2, Figure 3: one-shot classification, the accuracy of each representation with few labels."""

import shutil
import time
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ebse._validation import option
from ebse.datasets import Images, binarize, load_images
from ebse.ensemble import RBSE
from ebse.ensemble._fit import fit_in_folder
from ebse.evaluation import few_shot
from ebse.paper.one_shot_config import ALGORITHM_1, ALGORITHM_1_RBM, BY_ALGORITHM_1, NAMES, OneShotConfig
from ebse.paper.one_shot_methods import (
    Method,
    fixed_methods,
    model_methods,
    propagation_methods,
    propagation_names,
)
from ebse.paper.one_shot_pictures import save_pictures
from ebse.paper.transductive import spread_labels, umap_neighbors
from ebse.workflow.run_folder import Run, Step


def run_one_shot(config: OneShotConfig, folder: str | Path, *, download: bool = True) -> Iterator[Step]:
    """Run the one-shot experiment in a run folder; continues where an earlier call stopped."""
    images = load_images(config.data, download=download)
    config = config.resolved(images)
    study = _Study(config, images)
    study.require_methods()
    run = Run(folder, "one-shot", config, data=zlib.crc32(images.y.tobytes(), zlib.crc32(images.X.tobytes())))
    tasks = study.tasks(run)
    total, done = sum(cost for cost, _, _ in tasks), 0.0
    for cost, text, work in tasks:
        yield Step(text, done, total)
        work()
        done += cost
    yield Step("done", total, total)


LABEL_SPREADING, UMAP = "scikit-learn LabelSpreading", "UMAP, 1-NN"

Task = tuple[float, str, Any]
"""Estimated seconds, name, and the work itself."""

RATE, ALGORITHM_1_RATE, SWEEP_RATE, DRAW_RATE, LARGE = 5e4, 5e3, 1e5, 5e4, 784 * 400
"""Training rows, chain sweeps and samples per second on two cores with LARGE weights, to estimate times."""


class _Study:
    """The tasks of a run; each adds rows or a file."""

    def __init__(self, config: OneShotConfig, images: Images) -> None:
        # Any: no setting of a resolved configuration is None.
        self.config: Any = config
        self.run: Run
        self.images = images
        self.pool, self.labels = images.episodes
        self.pool = binarize(self.pool, self._binarization(), random_state=config.episode_seed)

    def require_methods(self) -> None:
        """Refuse names that no method of this configuration has."""
        config = self.config
        names = [m.name for m in fixed_methods(config, self.images, self._unlabeled)]
        names += [LABEL_SPREADING] * config.label_spreading + [UMAP] * config.umap
        names += [m.name for model in self._models() for m in model_methods(config, model)]
        names += [name for view in config.propagation for name in propagation_names(view)]
        for name in config.methods:
            option("methods", name, names)

    def tasks(self, run: Run) -> list[Task]:
        """The tasks that are left in a run, in order."""
        self.run = run
        config, tasks = self.config, []
        for seed in config.seeds:
            tasks += [self._training(seed, law) for law in self._models() if self._untrained(seed, law)]
        left = [
            m for m in fixed_methods(config, self.images, self._unlabeled) if not self._is_done(None, m.name)
        ]
        tasks += [(5.0, m.name, lambda m=m: self._evaluate(None, m)) for m in left]
        for name, wanted in ((LABEL_SPREADING, config.label_spreading), (UMAP, config.umap)):
            if wanted and not self._is_done(None, name):
                tasks.append((60.0, name, lambda name=name: self._transductive(name)))
        for seed in config.seeds:
            for model in self._models():
                for method in model_methods(config, model):
                    if not self._is_done(seed, method.name):
                        text = f"{method.name}, seed {seed}"
                        work = partial(self._with_model, seed, model, method)
                        tasks.append((self._cost(method), text, work))
        for seed in config.seeds:
            for view in config.propagation:
                names = propagation_names(view)
                if not all(self._is_done(seed, name) for name in names):
                    text = f"{names[0]}, seed {seed}"
                    tasks.append((20.0, text, lambda s=seed, v=view: self._propagation(s, v)))
        if not (self.run.folder / "pictures.npz").exists():
            tasks.append((5.0, "pictures", self._pictures))
        return tasks

    def _models(self) -> list[str]:
        return [*self.config.laws, *([ALGORITHM_1, ALGORITHM_1_RBM] if self.config.algorithm_1 else [])]

    def _path(self, seed: int, model: str) -> Path:
        return self.run.folder / "models" / f"{model}-{seed}.safetensors"

    def _checkpoints(self, seed: int, model: str) -> Path:
        return self.run.folder / "unfinished" / f"{model}-{seed}"

    def _untrained(self, seed: int, model: str) -> bool:
        return (
            not self.run.has(kind="training", seed=seed, model=model) or not self._path(seed, model).exists()
        )

    def _training(self, seed: int, model: str) -> Task:
        rate = ALGORITHM_1_RATE if model == ALGORITHM_1 else RATE
        cost = 1 + self._size() * self.images.n_unlabeled * self._n_epochs(model) / rate
        return cost, f"training {NAMES[model]}, seed {seed}", lambda: self._train(seed, model)

    def _n_epochs(self, model: str) -> int:
        name = "algorithm_1_epochs" if model in BY_ALGORITHM_1 else "n_epochs"
        return int(getattr(self.config, name))

    def _size(self) -> float:
        """Number of weights relative to LARGE."""
        return float(self.images.X.shape[1] * self.config.n_components / LARGE)

    def _train(self, seed: int, model: str) -> None:
        """Train a model without labels, and save it."""
        config, began = self.config, time.perf_counter()
        n_epochs = self._n_epochs(model)
        rbse = RBSE(
            config.n_components,
            law=BY_ALGORITHM_1.get(model, model),
            bias_law=config.bias_law,
            n_epochs=n_epochs,
            learning_rate=config.learning_rate,
            algorithm="algorithm1" if model in BY_ALGORITHM_1 else "pcd",
            random_state=seed,
        )
        gray = self.images.unlabeled
        if config.binarization == "sampled-per-epoch":
            for epoch in range(n_epochs):
                rbse.partial_fit(binarize(gray, "sampled", random_state=1000 * seed + epoch))
        else:
            rows = binarize(gray, self._binarization(), random_state=seed)
            fit_in_folder(rbse, rows, self._checkpoints(seed, model), callback=lambda _: None)
        path = self._path(seed, model)
        path.parent.mkdir(parents=True, exist_ok=True)
        rbse.save(path)
        shutil.rmtree(self._checkpoints(seed, model), ignore_errors=True)
        seconds = time.perf_counter() - began
        row = {"kind": "training", "seed": seed, "model": model, "seconds": seconds, "history": rbse.history_}
        self.run.add(row)

    def _with_model(self, seed: int, model: str, method: Method) -> None:
        """Accuracies of a method that uses a trained model."""
        rbse = RBSE.load(self._path(seed, model))
        self._evaluate(seed, method, rbse)

    def _evaluate(self, seed: int | None, method: Method, rbse: RBSE | None = None) -> None:
        """Accuracies of one method in all episodes; continues where an earlier call stopped."""
        config, began = self.config, time.perf_counter()
        name = f"{method.name} {'' if seed is None else seed}".strip()
        part = self.run.folder / "unfinished" / f"{name}.jsonl"
        part.parent.mkdir(parents=True, exist_ok=True)
        found = few_shot(
            {method.name: method.build(rbse)},
            self.pool,
            self.labels,
            n_shots=config.shots,
            n_queries=config.n_queries,
            n_episodes=config.n_episodes,
            random_state=config.episode_seed,
            checkpoint=part,
        ).rows
        accuracies = {k: rows["accuracy"].tolist() for k, rows in found.groupby("n_shots")}
        self._keep(seed, method.name, accuracies, time.perf_counter() - began)
        part.unlink()

    def _propagation(self, seed: int, view: str) -> None:
        """Accuracies of label propagation over the unlabeled images."""
        rbse = RBSE.load(self._path(seed, self._shown_law()))
        for method in propagation_methods(self.config, view, self._unlabeled(), rbse, seed):
            if not self._is_done(seed, method.name):
                self._evaluate(seed, method)

    def _transductive(self, name: str) -> None:
        """Accuracies of a method that uses the test rows, or all rows, without their labels."""
        config, began = self.config, time.perf_counter()
        spreads = name == LABEL_SPREADING
        # UMAP embeds all images, unlabeled ones first; LabelSpreading has the rows of an episode alone.
        rows = self.pool if spreads else np.concatenate([self._unlabeled(), self.pool])
        work = spread_labels if spreads else umap_neighbors
        accuracies = work(
            rows,
            self.labels,
            shots=config.shots,
            n_queries=config.n_queries,
            n_episodes=config.n_episodes,
            random_state=config.episode_seed,
        )
        self._keep(None, name, accuracies, time.perf_counter() - began)

    def _unlabeled(self) -> Any:
        return binarize(self.images.unlabeled, self._binarization(), random_state=self.config.episode_seed)

    def _keep(self, seed: int | None, method: str, accuracies: dict[int, Any], seconds: float) -> None:
        for n_shots, values in accuracies.items():
            if self.run.has(kind="accuracy", seed=seed, method=method, n_shots=int(n_shots)):
                continue
            self.run.add(
                {
                    "kind": "accuracy",
                    "seed": seed,
                    "method": method,
                    "n_shots": int(n_shots),
                    "accuracies": list(values),
                    "seconds": seconds,
                }
            )

    def _is_done(self, seed: int | None, method: str) -> bool:
        """Whether nothing is left to do: a method has its rows, or is not to be run."""
        shots, methods = self.config.shots, self.config.methods
        if methods and method not in methods:
            return True
        return all(self.run.has(kind="accuracy", seed=seed, method=method, n_shots=k) for k in shots)

    def _pictures(self) -> None:
        config = self.config
        rbse = RBSE.load(self._path(config.seeds[0], self._shown_law()))
        path = self.run.folder / "pictures.npz"
        save_pictures(path, rbse, self.pool, self.labels, self.images.shape, n_sweeps=config.sweeps[-1])

    def _shown_law(self) -> str:
        """The law of the ensemble whose figures are drawn."""
        return next(law for law in ("bernoulli", "gaussian", "point") if law in self.config.laws)

    def _cost(self, method: Method) -> float:
        config = self.config
        n = len(self.pool) * config.n_draws
        draws = n * method.n_sweeps / SWEEP_RATE + (n / DRAW_RATE if method.draws else 0)
        return float(1 + 10 * n / 200_000 + draws * self._size())

    def _binarization(self) -> Any:
        how = self.config.binarization
        return "sampled" if how == "sampled-per-epoch" else how
