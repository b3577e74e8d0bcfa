"""``ContrastiveFeatures``: contrastive representation learning from random walks on a neighbor graph."""

import math
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt

from ebse import _archive
from ebse._estimators import seed_of, unchanged_on_error
from ebse._stages import shown, stage
from ebse._validation import count, option
from ebse.semi_supervised._knn_graph import METRICS, WalkFeatures, neighbor_graph, random_walk
from ebse.semi_supervised._standardize import Standardizer, row_blocks, standardize

if TYPE_CHECKING:
    from ebse.semi_supervised._encoder import EncoderTraining

Array = npt.NDArray[np.floating[Any]]


class Encoder(NamedTuple):
    """z = W_l ReLU(… ReLU(W_1 x + b_1) …) + b_l, scaled to length 1: weights and biases of every layer."""

    weights: tuple[npt.NDArray[np.float32], ...]
    biases: tuple[npt.NDArray[np.float32], ...]

    def __call__(self, x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Rows (N, D) as points (N, n_components) of the unit sphere."""
        for W, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = np.maximum(x @ W + b, 0)
        z = x @ self.weights[-1] + self.biases[-1]
        z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)
        return z


@final
class ContrastiveFeatures(WalkFeatures):
    """Contrastive representation learning (InfoNCE) without labels and without augmentations.

    A small network z(x) on the unit sphere. The positive of a row is the last row of a random walk on the
    graph of shared nearest neighbors; the other rows of the batch are its negatives:

        loss = −log exp(z_i · z_j / T) / Σ_{k ≠ i} exp(z_i · z_k / T), j the positive of i.

    Rows that walks connect become similar, and classes that walks seldom leave become clusters, over which
    :class:`ebse.SpreadingClassifier` propagates a few labels.

    Parameters
    ----------
    n_components : int, default 64
        Dimension of the features. 16 to 256; more separate more clusters.
    n_steps : int, default 5
        Steps of a random walk. Longer walks make larger groups similar, and leave classes more often; 3 to
        20.
    n_neighbors : int, default 5
        Neighbors that a step chooses from: those of the 15 nearest rows that share most of their own
        neighbors with the row. More neighbors connect more rows, also of different classes; 3 to 15.
    metric : {"auto", "cosine", "euclidean"}, default "auto"
        Distance of rows. "cosine" compares directions from the mean of all rows; "auto" takes it from 100
        columns on, as for images, and "euclidean" below.
    n_hidden : int, default 500
        Units in each of the two hidden layers.
    n_updates : int, default 1800
        Updates of AdamW. About two minutes on 50,000 images of 784 pixels and two cores; the learning rate
        rises and then falls to 0 over them.
    batch_size : int, default 256
        Positive pairs in an update: more of them are more negatives; at least 2.
    learning_rate : float, default 1e-3
        The largest of the schedule. Lower it if the loss becomes NaN.
    temperature : float, default 0.2
        T of InfoNCE: the smaller, the more the most similar negatives count; 0.05 to 1.
    random_state : int, RandomState, Generator or None, default None
        A seed for reproducible results.
    verbose : int, default 0
        1 shows progress bars.

    Attributes
    ----------
    losses_ : array (n_updates,)
        InfoNCE at every update; log(2 batch_size − 1) is chance.
    encoder_ : Encoder
        Weights and biases of the network, as NumPy arrays.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array (n_features_in_,)
        Names of the columns, if X was a frame with string names.

    References
    ----------
    A. van den Oord, Y. Li and O. Vinyals, "Representation learning with contrastive predictive coding", 2018
    (InfoNCE).
    R. A. Jarvis and E. A. Patrick, "Clustering using a similarity measure based on shared near neighbors",
    1973.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data / 16
    >>> features = ContrastiveFeatures(8, n_updates=20, random_state=0).fit(X)
    >>> features.transform(X).shape
    (1797, 8)
    """

    def __init__(
        self,
        n_components: int = 64,
        *,
        n_steps: int = 5,
        n_neighbors: int = 5,
        metric: str = "auto",
        n_hidden: int = 500,
        n_updates: int = 1_800,
        batch_size: int = 256,
        learning_rate: float = 1e-3,
        temperature: float = 0.2,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.n_steps = n_steps
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.n_hidden = n_hidden
        self.n_updates = n_updates
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.temperature = temperature
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train the encoder on random walks from the rows of X.

        Ctrl-C leaves the estimator fitted with the updates made so far.

        Parameters
        ----------
        X : array-like (N, D)
            At least 2 rows.
        y : ignored
            For scikit-learn's pipelines.
        """
        with shown(self.verbose), unchanged_on_error(self):
            stopped = self._fit(X)
        if stopped:
            # Outside of the context, which would undo what was learned.
            raise KeyboardInterrupt(
                f"stopped after {len(self.losses_)} updates; the estimator is fitted with what it learned so "
                "far"
            )
        return self

    def _fit(self, X: Any) -> bool:
        """Train, and say whether Ctrl-C ended it early."""
        # PyTorch takes seconds to import, and only training needs it.
        from ebse._threads import threads_for
        from ebse.semi_supervised._encoder import EncoderTraining

        self._require_options()
        standardizer, X = standardize(None, self._validated(X, reset=True))
        seed = seed_of(self.random_state)
        rng = np.random.default_rng(seed)
        neighbors = neighbor_graph(X, self.n_neighbors, metric=self.metric, seed=seed)
        training = EncoderTraining(
            X.shape[1],
            n_hidden=self.n_hidden,
            n_components=self.n_components,
            n_updates=self.n_updates,
            temperature=self.temperature,
            learning_rate=self.learning_rate,
            seed=seed,
        )
        losses: list[float] = []
        stopped = False
        try:
            with stage("encoder", self.n_updates, "update") as done, threads_for(X.shape[1] * self.n_hidden):
                for _ in range(self.n_updates):
                    rows = rng.integers(len(X), size=self.batch_size)
                    positives = random_walk(neighbors, self.n_steps, rows, rng=rng)
                    losses.append(training.update(X[rows], X[positives]))
                    done(1)
        except KeyboardInterrupt:
            if not losses:
                raise KeyboardInterrupt(
                    "stopped before the first update; the estimator is as it was"
                ) from None
            stopped = True
        if not np.isfinite(losses[-1]):
            raise FloatingPointError(
                f"learning_rate must suit these rows, got {self.learning_rate!r}, with which InfoNCE became "
                f"{losses[-1]}; lower it"
            )
        self._keep(standardizer, training, losses)
        return stopped

    def _keep(self, standardizer: Standardizer, training: "EncoderTraining", losses: list[float]) -> None:
        self._standardizer, self.encoder_ = standardizer, Encoder(*training.layers())
        self.losses_ = np.array(losses)

    def _transform_validated(self, X: Array) -> Array:
        encoder: Encoder = self.encoder_
        z: Array = np.concatenate([encoder(self._standardizer(X[b])) for b in row_blocks(len(X))])
        return z.astype(X.dtype, copy=False)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The fitted transformer of a file written by :meth:`save`; nothing is fitted, no code is run."""
        return _archive.load(path, cls)

    def _state(self) -> _archive.State:
        facts = {
            "parameters": _archive.plain(self.get_params(deep=False)),
            "n_layers": len(self.encoder_.weights),
            **self._input_facts(),
        }
        arrays: dict[str, Any] = {
            "losses": self.losses_,
            **self._standardizer.arrays(),
        }
        for i, (W, b) in enumerate(zip(*self.encoder_, strict=True)):
            arrays |= {f"weights_{i}": W, f"biases_{i}": b}
        return _archive.State(facts, arrays)

    @classmethod
    def _from_state(cls, state: _archive.State) -> Self:
        facts, arrays = state
        made = cls(**facts["parameters"])._with_input_facts(facts)
        layers = range(count("n_layers", facts["n_layers"]))
        weights, biases = (tuple(arrays[f"{name}_{i}"] for i in layers) for name in ("weights", "biases"))
        sizes = [made.n_features_in_, *(len(b) for b in biases)]
        if not layers or [W.shape for W in weights] != list(pairwise(sizes)):
            raise ValueError(f"layers of shapes {[W.shape for W in weights]} for {sizes} units")
        made._standardizer = Standardizer.from_arrays(None, arrays)
        if made._standardizer.mean.shape != (made.n_features_in_,):
            raise ValueError(f"a mean of shape {made._standardizer.mean.shape}")
        made.encoder_, made.losses_ = Encoder(weights, biases), arrays["losses"]
        return made

    def _require_options(self) -> None:
        for name in ("n_components", "n_steps", "n_neighbors", "n_hidden", "n_updates"):
            count(name, getattr(self, name))
        option("metric", self.metric, METRICS)
        count("batch_size", self.batch_size, least=2)
        for name, example in (("learning_rate", "1e-3"), ("temperature", "0.2")):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise ValueError(f"{name} must be positive, got {value!r}; try {example}")

    @property
    def _n_features_out(self) -> int:
        return int(self.encoder_.biases[-1].shape[0])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "losses_")
