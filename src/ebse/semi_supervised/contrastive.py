"""``ContrastiveFeatures``: contrastive representation learning from random walks on a neighbor graph."""

import math
import numbers
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt

from ebse import _archive
from ebse._estimators import seed_of, unchanged_on_error
from ebse._stages import shown
from ebse._validation import count, option
from ebse.semi_supervised._components import principal_components
from ebse.semi_supervised._knn_graph import METRICS, WalkFeatures, neighbor_graph
from ebse.semi_supervised._standardize import Standardizer, row_blocks
from ebse.semi_supervised.image_views import ImageViews, image_shape

Array = npt.NDArray[np.floating[Any]]
Weights = npt.NDArray[np.float32]

REFINE, VIEWS, ENCODERS = ("auto", True, False), ("auto", "learned"), ("dense", "convolutional")
FEWEST_UPDATES, MANY_UPDATES, MOST_UPDATES = 50, 700, 1_800
PASSES, ROWS_PER_UPDATE = 85, 40
"""Where the number of updates is not given, a row is seen so many times. There are at most MANY_UPDATES, and
one more for so many rows, which bounds the time of training: two minutes for 10,000 rows."""
VIEW_PART, LEAST_VIEW_UPDATES = 3, 300
"""Updates of the encoder for each update of the law of its views, of which there are at least so many: with
fewer its draws are as large as at the start, whatever the rows."""
NEIGHBOR = 10
"""The neighbor whose distance is the radius of a row."""


class ClusterHeads(NamedTuple):
    """√p of cluster probabilities p = softmax(z W + b), for several clusterings side by side."""

    weights: Weights
    """(r, sum of the sizes)"""
    biases: Weights
    sizes: tuple[int, ...]
    """Clusters of each clustering."""

    def __call__(self, z: Weights) -> Weights:
        """Rows z (N, r) as points of the unit sphere (N, sum of the sizes)."""
        scores = z @ self.weights + self.biases
        parts = []
        for one in np.split(scores, np.cumsum(self.sizes)[:-1], axis=1):
            p = np.exp(one - one.max(1, keepdims=True))
            parts.append(np.sqrt(p / p.sum(1, keepdims=True)))
        found: Weights = np.concatenate(parts, axis=1, dtype=np.float32)
        found /= np.sqrt(len(self.sizes), dtype=np.float32)
        return found


class Encoder(NamedTuple):
    """z = W_l ReLU(… ReLU(W_1 x + b_1) …) + b_l, scaled to length 1: weights and biases of every layer.

    With ``shape`` the first layers are convolutions of images. With ``heads`` the features are √p of the
    clusters of z.
    """

    weights: tuple[Weights, ...]
    biases: tuple[Weights, ...]
    shape: tuple[int, int, int] | None = None
    heads: ClusterHeads | None = None

    def __call__(self, x: Weights) -> Weights:
        """Standardized rows (N, D) as points (N, n_components) of the unit sphere."""
        n_convolutions = sum(W.ndim == 4 for W in self.weights)
        if self.shape is not None:
            # PyTorch takes seconds to import, and a dense encoder does without.
            from ebse.semi_supervised._encoder import convolved

            x = convolved(
                x, self.shape, list(self.weights[:n_convolutions]), list(self.biases[:n_convolutions])
            )
        for W, b in zip(self.weights[n_convolutions:-1], self.biases[n_convolutions:-1], strict=True):
            x = np.maximum(x @ W + b, 0)
        z = x @ self.weights[-1] + self.biases[-1]
        z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)
        return z if self.heads is None else self.heads(z)


@final
class ContrastiveFeatures(WalkFeatures):
    """Contrastive representation learning (InfoNCE) without labels, refined to clusters.

    A small network maps each row x to a point z(x) on the unit sphere. The positive of a row is the last row
    of a random walk on the graph of shared nearest neighbors; the other rows of the batch are its negatives:

        loss = −log [exp(z_i · z_j / T) / Σ_{k ≠ i} exp(z_i · z_k / T)], j the positive of i.

    Rows that walks connect become similar, and classes that walks seldom leave become clusters, over which
    :class:`ebse.SpreadingClassifier` propagates a few labels.

    **Views.** In training, the leading principal components of each row are multiplied by a random matrix of
    its own whose mean is the identity. The matrix has a low-rank Gaussian law, which is fitted before,
    without labels, to the differences between rows and the ends of their walks. ``ImageViews`` are an
    alternative for images.

    **Refinement.** Spectral clustering of the random walks groups the rows, five times with different numbers
    of clusters. Softmax heads on z predict these clusters, and network and heads are trained further: cluster
    probabilities should be close to 0 or 1, cluster frequencies should stay as they were, and probabilities
    should be the same for views of a row and for an adversarial perturbation of it (virtual adversarial
    training). From 10,000 rows on the features are then the square roots of the cluster probabilities, below
    they are z.

    Parameters
    ----------
    n_components : int, default 64
        Dimension of z, 16 to 256. Larger values separate more clusters. The features have another
        dimension where they are cluster probabilities.
    refine : {"auto", True, False}, default "auto"
        Whether to refine, which takes about as long as all the rest. "auto": if there are at least 500 rows
        and ``stability_`` is at least 0.5.
    views : None, "auto", "learned" or callable, default "auto"
        Random views of rows. "learned": by random matrices of the fitted Gaussian law; "auto": the same, but
        none with a convolutional encoder; None: rows as they are. A callable, such as :class:`ImageViews`, is
        called with a tensor of rows (n, D), as they were given, and the keyword ``generator``
        (``torch.Generator``), and returns a tensor of the same shape. ``save`` stores ``ImageViews``, but no
        other callable.
    encoder : {"dense", "convolutional"}, default "dense"
        "convolutional": three convolutions come first; rows are images of ``image_shape``.
    image_shape : (height, width) or (height, width, channels) or None, default None
        Shape of the images, for a convolutional encoder; a dense one makes no use of it. None: that of the
        ``ImageViews``.
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
        Units in each hidden layer.
    n_updates : int or "auto", default "auto"
        Updates of AdamW; refinement takes 4/3 of that. The learning rate rises and then falls to 0 over them.
        "auto": so many that the network sees a row 85 times before it is refined, and with more rows fewer
        times: about 300 updates for 1,800 rows, 825 for 5,000, 950 for 10,000, and 1,800 from 44,000 rows
        on. With more updates it overfits single rows. The learned views take at least
        300 updates of their own, some seconds; ``views=None`` is for quick trials.
    batch_size : int, default 256
        Positive pairs in an update: more of them are more negatives; at least 2. Refinement uses half.
    learning_rate : float, default 1e-3
        The largest of the schedule. Lower it if the loss becomes NaN.
    temperature : float, default 0.2
        T of InfoNCE: the smaller, the more the most similar negatives count; 0.05 to 1.
    checkpoint : str, Path or None, default None
        A file in which training is kept every 200 updates. ``fit`` with the same rows, settings and number
        of threads goes on from it, bit for bit; it is removed at the end. A callable ``views`` other than
        ``ImageViews`` is recognized by its name alone. Needs a ``random_state``.
    random_state : int, RandomState, Generator or None, default None
        A seed for reproducible results.
    verbose : int, default 0
        1 shows progress bars.

    Attributes
    ----------
    losses_ : array (n_updates,)
        InfoNCE at every update; log(2 batch_size − 1) is chance.
    refinement_losses_ : array (n,)
        Loss of the refinement at every update; empty if there was none.
    stability_ : float
        Adjusted Rand index of clusterings of the same rows, by which "auto" decides; NaN if it was not
        computed.
    encoder_ : Encoder
        Weights and biases of the network, as NumPy arrays.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array (n_features,)
        Names of the columns, if X was a frame with string names.

    References
    ----------
    A. van den Oord, Y. Li and O. Vinyals, "Representation learning with contrastive predictive coding", 2018
    (InfoNCE).
    R. A. Jarvis and E. A. Patrick, "Clustering using a similarity measure based on shared near neighbors",
    1973.
    W. Hu et al., "Learning discrete representations via information maximizing self-augmented training",
    2017 (IMSAT).
    T. Miyato et al., "Virtual adversarial training", 2018.
    M. Meila and J. Shi, "A random walks view of spectral segmentation", 2001.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data / 16
    >>> features = ContrastiveFeatures(8, n_updates=20, views=None, refine=False).fit(X)
    >>> features.transform(X).shape
    (1797, 8)
    """

    def __init__(
        self,
        n_components: int = 64,
        *,
        refine: Any = "auto",
        views: Any = "auto",
        encoder: str = "dense",
        image_shape: Any = None,
        n_steps: int = 5,
        n_neighbors: int = 5,
        metric: str = "auto",
        n_hidden: int = 500,
        n_updates: int | str = "auto",
        batch_size: int = 256,
        learning_rate: float = 1e-3,
        temperature: float = 0.2,
        checkpoint: str | Path | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.refine = refine
        self.views = views
        self.encoder = encoder
        self.image_shape = image_shape
        self.n_steps = n_steps
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.n_hidden = n_hidden
        self.n_updates = n_updates
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.temperature = temperature
        self.checkpoint = checkpoint
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
            n = len(self.losses_) + len(self.refinement_losses_)
            raise KeyboardInterrupt(
                f"stopped after {n} updates; the estimator is fitted with what it learned so far"
            )
        return self

    def _fit(self, X: Any) -> bool:
        """Train, and say whether Ctrl-C ended it early."""
        # PyTorch takes seconds to import, and only training needs it.
        from ebse._threads import threads_for
        from ebse.semi_supervised._encoder import convolutional_network, dense_network
        from ebse.semi_supervised._feature_training import Batches, FeatureTraining, Settings
        from ebse.semi_supervised._learned_views import fitted_views

        self._require_options()
        X = self._validated(X, reset=True)
        shape, n_updates = self._shape(X.shape[1]), self._number_of_updates(len(X))
        seed = seed_of(self.random_state)
        components = principal_components(X)
        Y = components(X)
        graph = neighbor_graph(Y, self.n_neighbors, metric=self.metric, seed=seed)
        tenth = graph.nearest[:, min(NEIGHBOR, graph.nearest.shape[1]) - 1]
        radius = np.concatenate([np.linalg.norm(Y[b] - Y[tenth[b]], axis=1) for b in row_blocks(len(Y))])
        views = self.views
        if isinstance(views, str):
            learned = views == "learned" or shape is None
            views = None
            if learned:
                n = max(n_updates // VIEW_PART, LEAST_VIEW_UPDATES)
                views = fitted_views(Y, graph.neighbors, n_walk_steps=self.n_steps, n_updates=n, seed=seed)
        if shape is None:
            net = dense_network(Y.shape[1], self.n_hidden, self.n_components, seed=seed)
        else:
            net = convolutional_network(shape, self.n_hidden, self.n_components, seed=seed)
            # Of standardized pixels instead of components.
            radius *= np.float32(np.sqrt(Y.shape[1] / X.shape[1]))
        settings = Settings(
            int(self.n_components),
            int(self.n_steps),
            n_updates,
            int(self.batch_size),
            float(self.learning_rate),
            float(self.temperature),
            seed,
        )
        training = FeatureTraining(
            net,
            Batches(X, components, Y, views, shape),
            graph.neighbors,
            radius,
            settings,
            self.refine,
            None if self.checkpoint is None else Path(self.checkpoint),
        )
        stopped = False
        try:
            with threads_for(sum(p.numel() for p in net.parameters())):
                training.train()
        except KeyboardInterrupt:
            if not training.losses[0]:
                raise KeyboardInterrupt(
                    "stopped before the first update; the estimator is as it was"
                ) from None
            stopped = True
        self._standardizer, self.stability_ = components.standardizer, training.stability
        weights, biases, heads = training.layers()
        self.encoder_ = Encoder(
            tuple(weights), tuple(biases), shape, None if heads is None else ClusterHeads(*heads)
        )
        self.losses_, self.refinement_losses_ = (np.array(one) for one in training.losses)
        if not stopped:
            training.finish()
        return stopped

    def _number_of_updates(self, n_rows: int) -> int:
        if self.n_updates != "auto":
            return int(self.n_updates)
        most = min(MANY_UPDATES + n_rows // ROWS_PER_UPDATE, MOST_UPDATES)
        return int(np.clip(PASSES * n_rows // (2 * self.batch_size), FEWEST_UPDATES, most))

    def _shape(self, n_features: int) -> tuple[int, int, int] | None:
        """Shape of the images of a convolutional encoder."""
        given = self.image_shape
        if given is None and isinstance(self.views, ImageViews):
            given = self.views.shape
        if given is None and self.encoder == "dense":
            return None
        if given is None:
            raise ValueError(
                "image_shape must be given for a convolutional encoder, got None; pass (28, 28), for example"
            )
        shape = image_shape(given, "image_shape")
        if isinstance(self.views, ImageViews) and self.views.shape != shape:
            raise ValueError(
                f"image_shape must be the shape of the views, got {shape} and {self.views.shape}; pass it to "
                "ImageViews alone"
            )
        if math.prod(shape) != n_features:
            raise ValueError(
                f"image_shape must have as many pixels as X has columns, got {shape} for {n_features} "
                "columns; pass the shape of the images"
            )
        return None if self.encoder == "dense" else shape

    def _transform_validated(self, X: Array) -> Array:
        encoder: Encoder = self.encoder_
        z: Array = np.concatenate([encoder(self._standardizer(X[b])) for b in row_blocks(len(X))])
        return z.astype(X.dtype, copy=False)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The fitted transformer of a file written by :meth:`save`; nothing is fitted, no code is run."""
        return _archive.load(path, cls)

    def _state(self) -> _archive.State:
        encoder: Encoder = self.encoder_
        shape = self.image_shape
        facts = {
            "parameters": {
                **_archive.plain(self.get_params(deep=False)),
                "image_shape": None if shape is None else [int(n) for n in shape],
                "checkpoint": None if self.checkpoint is None else str(self.checkpoint),
                # Views serve training alone; a callable of the user is not stored.
                "views": self.views if isinstance(self.views, str) else None,
            },
            "image_views": self.views.facts() if isinstance(self.views, ImageViews) else None,
            "n_layers": len(encoder.weights),
            "shape": encoder.shape,
            "sizes": None if encoder.heads is None else encoder.heads.sizes,
            "stability": None if math.isnan(self.stability_) else self.stability_,
            **self._input_facts(),
        }
        arrays: dict[str, Any] = {
            "losses": self.losses_,
            "refinement_losses": self.refinement_losses_,
            **self._standardizer.arrays(),
        }
        for i, (W, b) in enumerate(zip(encoder.weights, encoder.biases, strict=True)):
            arrays |= {f"weights_{i}": W, f"biases_{i}": b}
        if encoder.heads is not None:
            arrays |= {"head_weights": encoder.heads.weights, "head_biases": encoder.heads.biases}
        return _archive.State(facts, arrays)

    @classmethod
    def _from_state(cls, state: _archive.State) -> Self:
        facts, arrays = state
        made = cls(**facts["parameters"])._with_input_facts(facts)
        if made.image_shape is not None:
            made.image_shape = tuple(made.image_shape)
        if facts["image_views"] is not None:
            made.views = ImageViews(**facts["image_views"])
        layers = range(count("n_layers", facts["n_layers"]))
        weights, biases = (tuple(arrays[f"{name}_{i}"] for i in layers) for name in ("weights", "biases"))
        shape = None if facts["shape"] is None else image_shape(facts["shape"])
        heads = None
        if facts["sizes"] is not None:
            sizes = tuple(count("sizes", n) for n in facts["sizes"])
            heads = ClusterHeads(arrays["head_weights"], arrays["head_biases"], sizes)
        _require_layers(weights, biases, shape, heads, made.n_features_in_)
        made._standardizer = Standardizer.from_arrays(None, arrays)
        if made._standardizer.mean.shape != (made.n_features_in_,):
            raise ValueError(f"a mean of shape {made._standardizer.mean.shape}")
        made.encoder_ = Encoder(weights, biases, shape, heads)
        made.losses_, made.refinement_losses_ = arrays["losses"], arrays["refinement_losses"]
        made.stability_ = math.nan if facts["stability"] is None else float(facts["stability"])
        return made

    def _require_options(self) -> None:
        for name in ("n_components", "n_steps", "n_neighbors", "n_hidden"):
            count(name, getattr(self, name))
        if isinstance(self.n_updates, str):
            option("n_updates", self.n_updates, ("auto",))
        else:
            count("n_updates", self.n_updates)
        option("metric", self.metric, METRICS)
        option("encoder", self.encoder, ENCODERS)
        if not isinstance(self.refine, (bool, str)) or self.refine not in REFINE:
            raise ValueError(
                f"refine must be 'auto', True or False, got {self.refine!r}; 'auto' decides without labels"
            )
        if isinstance(self.views, str):
            option("views", self.views, VIEWS)
            if self.views == "learned" and self.encoder == "convolutional":
                raise ValueError(
                    "views must be None, 'auto' or a callable with a convolutional encoder, got 'learned'; "
                    "pass ImageViews(shape)"
                )
        elif self.views is not None and (isinstance(self.views, type) or not callable(self.views)):
            raise ValueError(
                f"views must be None, 'auto', 'learned' or a callable, got {self.views!r}; pass "
                "ImageViews((28, 28)), for example"
            )
        if self.checkpoint is not None and not isinstance(self.checkpoint, (str, Path)):
            raise TypeError(
                f"checkpoint must be a path or None, got {self.checkpoint!r}; pass 'features.ckpt', for "
                "example"
            )
        if self.checkpoint is not None and self.random_state is None:
            raise ValueError(
                "random_state must be given with a checkpoint, got None; pass a number, with which the next "
                "fit goes on"
            )
        count("batch_size", self.batch_size, least=2)
        for name, example in (("learning_rate", "1e-3"), ("temperature", "0.2")):
            value = getattr(self, name)
            if not isinstance(value, numbers.Real):
                raise TypeError(f"{name} must be a number, got {value!r}; try {example}")
            if not 0 < float(value) < math.inf:
                raise ValueError(f"{name} must be positive, got {value!r}; try {example}")

    @property
    def _n_features_out(self) -> int:
        encoder: Encoder = self.encoder_
        last = encoder.biases[-1] if encoder.heads is None else encoder.heads.biases
        return len(last)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "losses_")


def _require_layers(
    weights: tuple[Weights, ...],
    biases: tuple[Weights, ...],
    shape: tuple[int, int, int] | None,
    heads: ClusterHeads | None,
    n_features: int,
) -> None:
    """Refuse layers of a file that do not fit together."""
    n_convolutions = sum(W.ndim == 4 for W in weights)
    sizes = [n_features]
    if any(b.ndim != 1 for b in biases):
        raise ValueError(f"biases of shapes {[b.shape for b in biases]}")
    if (shape is None) != (n_convolutions == 0) or len(weights) <= n_convolutions:
        raise ValueError(f"{n_convolutions} convolutions for images of shape {shape}")
    if shape is not None:
        height, width, n_in = shape
        for W, b in zip(weights[:n_convolutions], biases, strict=False):
            if W.shape != (len(b), n_in, 3, 3):
                raise ValueError(f"a convolution of shape {W.shape} for {n_in} channels")
            n_in, height, width = len(b), -(-height // 2), -(-width // 2)
        if math.prod(shape) != n_features:
            raise ValueError(f"images of shape {shape} for {n_features} columns")
        sizes = [n_in * height * width]
    sizes += [len(b) for b in biases[n_convolutions:]]
    if [W.shape for W in weights[n_convolutions:]] != list(pairwise(sizes)):
        raise ValueError(f"layers of shapes {[W.shape for W in weights]} for {sizes} units")
    if heads is not None and (
        heads.weights.shape != (sizes[-1], sum(heads.sizes)) or heads.biases.shape != (sum(heads.sizes),)
    ):
        raise ValueError(f"heads of shape {heads.weights.shape} for clusters {heads.sizes}")
