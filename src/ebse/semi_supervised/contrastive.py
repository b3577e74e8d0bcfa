"""``ContrastiveFeatures``: a small network that puts the two ends of a walk near each other."""

import math
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted
from tqdm import tqdm

from ebse._estimators import seed_of
from ebse._validation import count, option
from ebse.semi_supervised._encoder import Encoder
from ebse.semi_supervised._knn_graph import METRICS, graph, walked
from ebse.semi_supervised._random_walks import WalkFeatures, row_blocks
from ebse.semi_supervised._standardize import View, view_of

if TYPE_CHECKING:
    from ebse.semi_supervised._contrast import Contrast

Array = npt.NDArray[np.floating[Any]]


@final
class ContrastiveFeatures(WalkFeatures):
    """z(x) on the unit sphere, by a network that tells the other end of x's walk from other rows (InfoNCE).

    Walks go from row to neighboring row. Rows that walks connect come to lie together, and classes that
    walks seldom leave become clusters, over which :class:`ebse.SpreadingClassifier` spreads a few labels.

    Parameters
    ----------
    n_components
        Numbers that a row becomes.
    n_steps, n_neighbors
        Of a walk; a step chooses from those of the 15 nearest rows that share most of their own neighbors
        with the row.
    metric
        How near rows are: "cosine" of their directions from the mean of all rows, "euclidean" distance, or
        "auto": the first from 100 columns on.
    n_hidden
        Units in each of the two hidden layers.
    n_updates, batch_size, learning_rate
        Of Adam; the rate rises and then falls to 0.
    temperature
        Of InfoNCE: the smaller, the more the nearest strangers count.
    random_state
        A seed, for results that repeat.
    verbose
        1 shows a progress bar.

    Attributes
    ----------
    losses_ : (n_updates,)
        InfoNCE at every update; log(2 batch_size − 1) is chance.
    view_, encoder_
        How rows are brought to one scale, and the network, as weights and biases of its layers.
    n_features_in_, feature_names_in_
        As in scikit-learn.

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
        """Train the network on walks from the rows of X (N, D); y is not looked at.

        Ctrl-C leaves the estimator with what it has learned by then.
        """
        # PyTorch takes seconds to import, and only training needs it.
        from ebse._threads import threads_for
        from ebse.semi_supervised._contrast import Contrast

        self._require_options()
        view, X = view_of(None, self._checked(X, reset=True))
        seed = seed_of(self.random_state)
        rng = np.random.default_rng(seed)
        neighbors = graph(X, self.n_neighbors, metric=self.metric, seed=seed)
        contrast = Contrast(
            X.shape[1],
            n_hidden=self.n_hidden,
            n_components=self.n_components,
            n_updates=self.n_updates,
            temperature=self.temperature,
            learning_rate=self.learning_rate,
            seed=seed,
        )
        losses: list[float] = []
        bar = tqdm(total=self.n_updates, desc=type(self).__name__, unit="update", disable=not self.verbose)
        try:
            with bar, threads_for(X.shape[1] * self.n_hidden):
                for _ in range(self.n_updates):
                    rows = rng.integers(len(X), size=self.batch_size)
                    there = walked(neighbors, self.n_steps, rows, rng=rng)
                    losses.append(contrast.update(X[rows], X[there]))
                    bar.update()
        except KeyboardInterrupt:
            if losses:
                self._keep(view, contrast, losses)
            what = "the estimator is fitted with what it learned so far" if losses else "nothing was learned"
            raise KeyboardInterrupt(f"stopped after {len(losses)} updates; {what}") from None
        if not np.isfinite(losses[-1]):
            raise FloatingPointError(
                f"learning_rate must suit these rows, got {self.learning_rate!r}, with which InfoNCE became "
                f"{losses[-1]}; lower it"
            )
        return self._keep(view, contrast, losses)

    def _keep(self, view: View, contrast: "Contrast", losses: list[float]) -> Self:
        self.view_, self.encoder_, self.losses_ = view, contrast.encoder(), np.array(losses)
        return self

    def transform(self, X: Any) -> Array:
        """Rows as points of the unit sphere (N, n_components)."""
        check_is_fitted(self)
        return self.of_checked(self._checked(X, reset=False))

    def of_checked(self, X: Array) -> Array:
        """The same of rows that were checked already."""
        encoder: Encoder = self.encoder_
        z: Array = np.concatenate([encoder(self.view_(X[rows])) for rows in row_blocks(len(X))])
        return z.astype(X.dtype, copy=False)

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
