"""Settings of the one-shot experiment, and what its models are called."""

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from ebse.arguments import count, option
from ebse.data import Images

ALGORITHM_1 = "algorithm_1"
NAMES = {
    "point": "RBM",
    "bernoulli": "Bernoulli",
    "gaussian": "Gaussian",
    ALGORITHM_1: "Algorithm 1",
}
BINARISATIONS = ("grey", "threshold", "sampled", "sampled-per-epoch")
LARGE = 28 * 28
"""Features from which on images have the settings of MNIST."""


@final
@dataclass(frozen=True)
class OneShotConfig:
    """Settings of the experiment. 0 or (): what suits the data, written down when it is known.

    Every law has the same training; ``sweeps`` and ``presences`` may be several, and all are tried.
    """

    data: str = "digits"
    """"digits", "mnist", "fashion-mnist", or a folder with idx files."""
    binarisation: str = "threshold"
    seeds: tuple[int, ...] = (0,)
    """Of training."""
    shots: tuple[int, ...] = (1,)
    n_episodes: int = 100
    n_queries: int = 0
    """Per class: 99 as in the paper, or as many as the data has."""
    episode_seed: int = 0
    laws: tuple[str, ...] = ("point", "bernoulli", "gaussian")
    bias_law: str = "point"
    n_components: int = 0
    """400 as in the paper, 100 for images of few pixels."""
    n_epochs: int = 0
    """10, 200 for images of few pixels."""
    learning_rate: float = 0.0
    """0.1, 0.05 for images of few pixels."""
    n_draws: int = 10
    sweeps: tuple[int, ...] = ()
    """Lengths of walks: 50; 2 for images of few pixels, where longer ones forget the digit."""
    presences: tuple[float, ...] = (0.01,)
    """Noise of walked models under a Bernoulli law; under a Gaussian one it is ``sigma``."""
    sigma: float = 0.5
    baselines: bool = True
    """Also PCA, shifts and nearest neighbours."""
    label_spreading: bool = False
    umap: bool = False
    algorithm_1: bool = False
    """Also a Bernoulli ensemble trained as in the paper, by Algorithm 1 with k = 1."""
    algorithm_1_epochs: int = 0
    """2, 100 for images of few pixels: drawing models is slow."""

    def __post_init__(self) -> None:
        option("binarisation", self.binarisation, BINARISATIONS)
        for name in ("n_episodes", "n_draws"):
            count(name, getattr(self, name))
        for law in self.laws:
            option("laws", law, tuple(NAMES))
        if "point" not in self.laws:
            raise ValueError(
                f"laws must have 'point', which others are compared with, got {self.laws!r}; add it"
            )
        for name in ("seeds", "shots"):
            if not getattr(self, name):
                raise ValueError(f"{name} must have at least one number, got none; pass 0 or 1")

    def resolved(self, images: Images) -> "OneShotConfig":
        """The settings with everything decided that depends on the data."""
        large = images.X.shape[1] >= LARGE
        members = int(np.bincount(images.episodes[1]).min())
        most = members - max(self.shots)
        if most < 1:
            raise ValueError(
                f"shots must be less than {members}, the examples of the smallest class of {images.name}, "
                f"got {max(self.shots)}; lower it"
            )

        def decided(name: str, for_large: Any, for_small: Any) -> Any:
            return getattr(self, name) or (for_large if large else for_small)

        return replace(
            self,
            n_queries=self.n_queries or min(99, most),
            n_components=decided("n_components", 400, 100),
            n_epochs=decided("n_epochs", 10, 200),
            learning_rate=decided("learning_rate", 0.1, 0.05),
            algorithm_1_epochs=decided("algorithm_1_epochs", 2, 100),
            sweeps=decided("sweeps", (50,), (2,)),
        )
