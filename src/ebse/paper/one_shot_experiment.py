"""Section 3.2: one label per class, and what each representation makes of it (Figure 3)."""

import shutil
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ebse.datasets import Images, binarize, load_images
from ebse.ensemble import RBSE
from ebse.ensemble._fit import fit_in_folder
from ebse.evaluation import few_shot
from ebse.paper.one_shot_config import ALGORITHM_1, ALGORITHM_1_RBM, BY_ALGORITHM_1, NAMES, OneShotConfig
from ebse.paper.one_shot_methods import (
    SIZES,
    SPREADING,
    Method,
    fixed_methods,
    model_methods,
    spreading_methods,
)
from ebse.paper.one_shot_pictures import save_pictures
from ebse.paper.transductive import spread_labels, umap_neighbors
from ebse.workflow.run_folder import Run, Step


def one_shot(config: OneShotConfig, folder: str | Path, *, download: bool = True) -> Iterator[Step]:
    """Carry the experiment out, or what is left of it, in a run folder."""
    images = load_images(config.data, download=download)
    config = config.resolved(images)
    run = Run(folder, "one-shot", config, data=zlib.crc32(images.y.tobytes(), zlib.crc32(images.X.tobytes())))
    study = _Study(run, config, images)
    tasks = study.tasks()
    total, done = sum(cost for cost, _, _ in tasks), 0.0
    for cost, text, work in tasks:
        yield Step(text, done, total)
        work()
        done += cost
    yield Step("done", total, total)


Task = tuple[float, str, Any]
"""About how many seconds of work, what it is called, and the work itself."""

MANY = 10_000
"""Unlabeled images from which on features are learned for labels to spread on."""
RATE, ALGORITHM_1_RATE, SWEEP_RATE, DRAW_RATE, LARGE = 5e4, 5e3, 1e5, 5e4, 784 * 400
"""Examples of training, chain-sweeps and draws a second on two cores, for a forecast; of so many weights."""


class _Study:
    """The pieces of work of a run, each of which leaves a result or a file."""

    def __init__(self, run: Run, config: OneShotConfig, images: Images) -> None:
        # Any: the settings are resolved, and nothing in them is left open.
        self.config: Any = config
        self.run, self.images = run, images
        self.pool, self.labels = images.episodes
        self.pool = binarize(self.pool, self._binarization(), random_state=config.episode_seed)

    def tasks(self) -> list[Task]:
        """Everything that is left to do, in order."""
        config, tasks = self.config, []
        for seed in config.seeds:
            tasks += [self._training(seed, law) for law in self._models() if self._untrained(seed, law)]
        left = [
            m for m in fixed_methods(config, self.images, self._unlabeled) if not self._known(None, m.name)
        ]
        tasks += [(5.0, m.name, lambda m=m: self._evaluate(None, m)) for m in left]
        for name, wanted in (("label spreading", config.label_spreading), ("UMAP, 1-NN", config.umap)):
            if wanted and not self._known(None, name):
                tasks.append((60.0, name, lambda name=name: self._transductive(name)))
        for seed in config.seeds:
            for model in self._models():
                for method in model_methods(config, model):
                    if not self._known(seed, method.name):
                        text = f"{method.name}, seed {seed}"
                        tasks.append(
                            (self._cost(method), text, lambda s=seed, k=model, m=method: self._draws(s, k, m))
                        )
        for seed in config.seeds if config.spreading else ():
            # On few rows the pixels themselves are best.
            for view in SPREADING if self.images.n_unlabeled >= MANY else SPREADING[:1]:
                if not all(self._known(seed, f"spreading on {view}{end}") for end in SIZES):
                    text = f"spreading on {view}, seed {seed}"
                    tasks.append((60.0, text, lambda s=seed, v=view: self._spreading(s, v)))
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
        """Connections, in parts of those that the forecast knows."""
        return float(self.images.X.shape[1] * self.config.n_components / LARGE)

    def _train(self, seed: int, model: str) -> None:
        """Learn without labels, and keep the model."""
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

    def _draws(self, seed: int, model: str, method: Method) -> None:
        """Accuracies of a method that needs a trained model."""
        rbse = RBSE.load(self._path(seed, model))
        self._evaluate(seed, method, rbse)

    def _evaluate(self, seed: int | None, method: Method, rbse: RBSE | None = None) -> None:
        """Accuracies of one method in all episodes; broken off, it goes on where it was."""
        config, began = self.config, time.perf_counter()
        name = f"{method.name} {'' if seed is None else seed}".strip()
        part = self.run.folder / "unfinished" / f"{name}.jsonl"
        part.parent.mkdir(parents=True, exist_ok=True)
        found = few_shot(
            {method.name: method.made(rbse)},
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

    def _spreading(self, seed: int, view: str) -> None:
        """Accuracies of labels that spread over the unlabeled images."""
        rbse = RBSE.load(self._path(seed, self._shown_law()))
        for method in spreading_methods(view, self._unlabeled(), rbse, seed):
            if not self._known(seed, method.name):
                self._evaluate(seed, method)

    def _transductive(self, name: str) -> None:
        """Accuracies of a method that sees the queries, or all images, beside the labels."""
        config, began = self.config, time.perf_counter()
        spreads = name == "label spreading"
        # A map is made of all images, those for learning first; labels spread over an episode's alone.
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

    def _known(self, seed: int | None, method: str) -> bool:
        shots = self.config.shots
        return all(self.run.has(kind="accuracy", seed=seed, method=method, n_shots=k) for k in shots)

    def _pictures(self) -> None:
        config = self.config
        rbse = RBSE.load(self._path(config.seeds[0], self._shown_law()))
        path = self.run.folder / "pictures.npz"
        save_pictures(path, rbse, self.pool, self.labels, self.images.shape, n_sweeps=config.sweeps[-1])

    def _shown_law(self) -> str:
        """The law of the ensemble that stands for all: their likelihoods are alike."""
        return next(law for law in ("bernoulli", "gaussian", "point") if law in self.config.laws)

    def _cost(self, method: Method) -> float:
        config = self.config
        n = len(self.pool) * config.n_draws
        draws = n * method.n_sweeps / SWEEP_RATE + (n / DRAW_RATE if method.draws else 0)
        return float(1 + 10 * n / 200_000 + draws * self._size())

    def _binarization(self) -> Any:
        how = self.config.binarization
        return "sampled" if how == "sampled-per-epoch" else how
