"""Settings of the one-shot experiment and the names of its models."""

import importlib.util
import math
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from ebse._validation import count, option
from ebse.datasets import Images

ALGORITHM_1, ALGORITHM_1_RBM = "algorithm_1", "algorithm_1_rbm"
"""Models trained by Algorithm 1: a Bernoulli ensemble, and an RBM as its baseline."""
BY_ALGORITHM_1 = {ALGORITHM_1: "bernoulli", ALGORITHM_1_RBM: "point"}
"""Their laws."""
LAWS = ("point", "bernoulli", "gaussian")
NAMES = {
    "point": "RBM",
    "bernoulli": "Bernoulli",
    "gaussian": "Gaussian",
    ALGORITHM_1: "Algorithm 1",
    ALGORITHM_1_RBM: "Algorithm 1 on an RBM",
}
BINARIZATIONS = ("gray", "threshold", "sampled", "sampled-per-epoch")
LARGE = 28 * 28
"""Number of pixels from which on the defaults are those for MNIST."""
PROPAGATION = ("pixels", "slow", "contrastive")
"""Representations for label propagation: none, SlowFeatures, ContrastiveFeatures."""


@final
@dataclass(frozen=True)
class OneShotConfig:
    """Settings of the one-shot experiment. None or (): a default that depends on the data.

    Every law is trained in the same way. Of ``shots``, ``sweeps`` and ``keep_probs`` all values are run.
    """

    data: str = "digits"
    """"digits", "mnist-sample", "mnist", "fashion-mnist", or a folder with idx files."""
    binarization: str = "threshold"
    """"gray", "threshold", "sampled", or "sampled-per-epoch" (constant learning rate)."""
    seeds: tuple[int, ...] = (0,)
    """Random seeds of training."""
    shots: tuple[int, ...] = (1,)
    """Labels per class."""
    n_episodes: int = 100
    """Random choices of labeled rows and test rows, the same for every method."""
    n_queries: int | None = None
    """Test rows per class: 99 as in the paper, or as many as the data has."""
    episode_seed: int = 0
    """Random seed of the episodes."""
    laws: tuple[str, ...] = ("point", "bernoulli", "gaussian")
    """Distributions of the weights: point (the RBM), bernoulli, gaussian."""
    bias_law: str = "point"
    """Distribution of the biases: point, bernoulli or gaussian."""
    n_components: int | None = None
    """Hidden units: 400 as in the paper, 100 for images of few pixels."""
    n_epochs: int | None = None
    """Training epochs: 10, 200 for images of few pixels."""
    learning_rate: float | None = None
    """Learning rate: 0.1, 0.05 for images of few pixels."""
    n_draws: int = 10
    """Sampled models per row."""
    sweeps: tuple[int, ...] = ()
    """Gibbs sweeps of chain-sampled models: 50; 2 for images of few pixels, where more leave the digit."""
    keep_probs: tuple[float, ...] = (0.01,)
    """Keep probability of chain-sampled models under the Bernoulli law; smaller is noisier."""
    sigma: float = 0.5
    """Standard deviation of chain-sampled models under the Gaussian law."""
    baselines: bool = True
    """Also PCA, shifted copies and nearest neighbors."""
    propagation: tuple[str, ...] = ()
    """Also label propagation over clusters of unlabeled images: on pixels, slow or contrastive features."""
    contrastive_updates: int = 1_800
    """Updates of the contrastive features; more take longer."""
    label_spreading: bool = False
    """Also scikit-learn's LabelSpreading over the labeled and test rows of each episode (transductive)."""
    umap: bool = False
    """Also nearest neighbors in the umap-learn embedding of all images (transductive)."""
    algorithm_1: bool = False
    """Also a Bernoulli ensemble and an RBM trained by Algorithm 1 with k = 1."""
    algorithm_1_epochs: int | None = None
    """2, 100 for images of few pixels: Algorithm 1 samples models and is slow."""
    methods: tuple[str, ...] = ()
    """Names of the methods to run, as in the table of accuracies; empty: all."""

    def __post_init__(self) -> None:
        option("binarization", self.binarization, BINARIZATIONS)
        option("bias_law", self.bias_law, LAWS)
        for name in ("n_episodes", "n_draws", "contrastive_updates"):
            count(name, getattr(self, name))
        count("episode_seed", self.episode_seed, least=0)
        for name in ("n_queries", "n_components", "n_epochs", "algorithm_1_epochs"):
            if getattr(self, name) is not None:
                count(name, getattr(self, name))
        for name, least in (("seeds", 0), ("shots", 1), ("sweeps", 1)):
            for value in getattr(self, name):
                count(name, value, least=least)
        for law in self.laws:
            option("laws", law, LAWS)
        for view in self.propagation:
            option("propagation", view, PROPAGATION)
        for name in ("seeds", "shots", "sweeps", "keep_probs", "laws", "propagation", "methods"):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise ValueError(f"{name} must differ from each other, got {values!r}; give each once")
        for name, bounds in {"keep_probs": (0.0, 1.0), "sigma": (0.0, math.inf)}.items():
            values = getattr(self, name)
            for value in values if isinstance(values, tuple) else (values,):
                if not bounds[0] < value < bounds[1]:
                    raise ValueError(f"{name} must lie in (0, {bounds[1]:g}), got {value!r}; try 0.1")
        if self.learning_rate is not None and not 0 < self.learning_rate < math.inf:
            raise ValueError(f"learning_rate must be positive, got {self.learning_rate!r}; try 0.1")
        if self.umap and importlib.util.find_spec("umap") is None:
            raise ImportError(
                "umap needs the package umap-learn, which is not installed; pip install 'ebse[umap]'"
            )
        if "point" not in self.laws:
            raise ValueError(f"laws must have 'point', the RBM as the reference, got {self.laws!r}; add it")
        for name in ("seeds", "shots", "keep_probs"):
            if not getattr(self, name):
                raise ValueError(f"{name} must have at least one number, got none; leave it out, or pass 1")

    def resolved(self, images: Images) -> "OneShotConfig":
        """The settings with the defaults that depend on the data filled in."""
        large = images.X.shape[1] >= LARGE
        members = int(np.unique(images.episodes[1], return_counts=True)[1].min())
        most = members - max(self.shots)
        if most < 1:
            raise ValueError(
                f"shots must be less than {members}, the rows of the smallest class of {images.name}, "
                f"got {max(self.shots)}; lower it"
            )

        def default(name: str, for_large: Any, for_small: Any) -> Any:
            return getattr(self, name) or (for_large if large else for_small)

        if self.n_queries is not None and self.n_queries > most:
            raise ValueError(
                f"n_queries must be at most {most}, what the smallest class of {images.name} has beside the "
                f"labeled rows, got {self.n_queries}; lower it, or leave it out"
            )
        return replace(
            self,
            n_queries=self.n_queries or min(99, most),
            n_components=default("n_components", 400, 100),
            n_epochs=default("n_epochs", 10, 200),
            learning_rate=default("learning_rate", 0.1, 0.05),
            algorithm_1_epochs=default("algorithm_1_epochs", 2, 100),
            sweeps=default("sweeps", (50,), (2,)),
        )
