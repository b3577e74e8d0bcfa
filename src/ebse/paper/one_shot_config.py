"""Settings of the one-shot experiment, and what its models are called."""

import importlib.util
import math
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from ebse._validation import count, option
from ebse.datasets import Images

ALGORITHM_1, ALGORITHM_1_RBM = "algorithm_1", "algorithm_1_rbm"
"""Models that Algorithm 1 trains: a Bernoulli ensemble, and the RBM that is its match."""
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
"""Features from which on images have the settings of MNIST."""


@final
@dataclass(frozen=True)
class OneShotConfig:
    """Settings of the experiment. None or (): what suits the data, written down when it is known.

    Every law has the same training; ``sweeps`` and ``presences`` may be several, and all are tried.
    """

    data: str = "digits"
    """"digits", "mnist", "fashion-mnist", or a folder with idx files."""
    binarization: str = "threshold"
    """"gray", "threshold", "sampled", or "sampled-per-epoch", whose rate does not fall."""
    seeds: tuple[int, ...] = (0,)
    """Of training."""
    shots: tuple[int, ...] = (1,)
    """Labeled examples per class; several are all tried."""
    n_episodes: int = 100
    """Random choices of labeled examples and queries, the same for every method."""
    n_queries: int | None = None
    """Per class: 99 as in the paper, or as many as the data has."""
    episode_seed: int = 0
    laws: tuple[str, ...] = ("point", "bernoulli", "gaussian")
    """Of the weights: point (the RBM), bernoulli, gaussian."""
    bias_law: str = "point"
    """Of the biases: point, bernoulli or gaussian."""
    n_components: int | None = None
    """400 as in the paper, 100 for images of few pixels."""
    n_epochs: int | None = None
    """10, 200 for images of few pixels."""
    learning_rate: float | None = None
    """0.1, 0.05 for images of few pixels."""
    n_draws: int = 10
    """Models for each example."""
    sweeps: tuple[int, ...] = ()
    """Lengths of walks: 50; 2 for images of few pixels, where longer ones forget the digit."""
    presences: tuple[float, ...] = (0.01,)
    """Noise of walked models under a Bernoulli law; under a Gaussian one it is ``sigma``."""
    sigma: float = 0.5
    """Noise of walked models under a Gaussian law."""
    baselines: bool = True
    """Also PCA, shifts and nearest neighbors."""
    spreading: bool = False
    """Also labels that spread over the unlabeled images; of 10,000 and more on learned features, too."""
    label_spreading: bool = False
    """Also scikit-learn's LabelSpreading over the images of each episode."""
    umap: bool = False
    """Also nearest neighbors on umap-learn's map of all images."""
    algorithm_1: bool = False
    """Also a Bernoulli ensemble and an RBM whose expectations are Algorithm 1's, with k = 1."""
    algorithm_1_epochs: int | None = None
    """2, 100 for images of few pixels: drawing models is slow."""

    def __post_init__(self) -> None:
        option("binarization", self.binarization, BINARIZATIONS)
        option("bias_law", self.bias_law, LAWS)
        for name in ("n_episodes", "n_draws"):
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
        for name in ("seeds", "shots", "sweeps", "presences", "laws"):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise ValueError(f"{name} must differ from each other, got {values!r}; give each once")
        for name, bounds in {"presences": (0.0, 1.0), "sigma": (0.0, math.inf)}.items():
            held = getattr(self, name)
            for value in held if isinstance(held, tuple) else (held,):
                if not bounds[0] < value <= bounds[1]:
                    raise ValueError(f"{name} must lie in (0, {bounds[1]:g}], got {value!r}; try 0.1")
        if self.learning_rate is not None and not 0 < self.learning_rate < math.inf:
            raise ValueError(f"learning_rate must be positive, got {self.learning_rate!r}; try 0.1")
        if self.umap and importlib.util.find_spec("umap") is None:
            raise ImportError(
                "umap needs the package umap-learn, which is not installed; pip install 'ebse[umap]'"
            )
        if "point" not in self.laws:
            raise ValueError(
                f"laws must have 'point', which others are compared with, got {self.laws!r}; add it"
            )
        for name in ("seeds", "shots", "presences"):
            if not getattr(self, name):
                raise ValueError(f"{name} must have at least one number, got none; leave it out, or pass 1")

    def resolved(self, images: Images) -> "OneShotConfig":
        """The settings with everything decided that depends on the data."""
        large = images.X.shape[1] >= LARGE
        members = int(np.unique(images.episodes[1], return_counts=True)[1].min())
        most = members - max(self.shots)
        if most < 1:
            raise ValueError(
                f"shots must be less than {members}, the examples of the smallest class of {images.name}, "
                f"got {max(self.shots)}; lower it"
            )

        def decided(name: str, for_large: Any, for_small: Any) -> Any:
            return getattr(self, name) or (for_large if large else for_small)

        if self.n_queries is not None and self.n_queries > most:
            raise ValueError(
                f"n_queries must be at most {most}, what the smallest class of {images.name} has beside the "
                f"labeled examples, got {self.n_queries}; lower it, or leave it out"
            )
        return replace(
            self,
            n_queries=self.n_queries or min(99, most),
            n_components=decided("n_components", 400, 100),
            n_epochs=decided("n_epochs", 10, 200),
            learning_rate=decided("learning_rate", 0.1, 0.05),
            algorithm_1_epochs=decided("algorithm_1_epochs", 2, 100),
            sweeps=decided("sweeps", (50,), (2,)),
        )
