"""``SlowFeatures``: functions of the input that change slowest along a random walk."""

from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from sklearn.utils.validation import check_is_fitted

from ebse._estimators import learned, require_estimator, seed_of
from ebse._validation import count, option
from ebse.semi_supervised._knn_graph import METRICS
from ebse.semi_supervised._random_walks import Ends, WalkFeatures, ends_of_walks, require_walk, row_blocks
from ebse.semi_supervised._standardize import BLOCK, View, view_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = npt.NDArray[np.floating[Any]]

ROWS_PER_FUNCTION = 20
LEAST = 1e-3
"""Mean variance of the dictionary that the ridge is a part of, at least."""
SLOWEST = 1 - 1e-6
"""λ beyond which a function counts as constant along the walk; its weight would be infinite."""


@final
class SlowFeatures(WalkFeatures):
    """w_i · φ(x) √(λ_i / (1 − λ_i)), rows of length 1: the slowest functions of a dictionary along a walk.

    λ and w solve C_τ w = λ C_0 w: the covariance of φ at both ends of a walk against that within an end. A
    function with λ near 1 says the same of both ends; classes that walks do not leave are such functions.

    Parameters
    ----------
    representation
        An :class:`ebse.RBSE`, which learns from the rows given to ``fit``, or a fitted transformer in a
        ``FrozenEstimator``; None: the inputs themselves.
    n_components
        Functions that are kept, slowest first.
    walk
        "neighbors": from row to neighboring row, ``n_steps`` long. "ensemble": the ensemble's own chain,
        ``n_sweeps`` long; it was worse on every data set that was measured.
    n_steps, n_neighbors
        Of a walk of neighbors; a step chooses from those of the 15 nearest rows that share most of their
        own neighbors with the row.
    metric
        Of a walk of neighbors, how near the inputs of two rows are: "cosine" of their directions from the
        mean of all rows, "euclidean" distance, or "auto": the first from 100 columns on.
    n_sweeps
        Of an ensemble's walk.
    n_random
        Random rectified functions in the dictionary, beside the representation itself; no more than one for
        every 20 rows, or functions are found that are slow by chance.
    ridge
        Added to C_0, in parts of its mean eigenvalue.
    random_state
        A seed, for results that repeat.

    Attributes
    ----------
    eigenvalues_ : (n_components,)
        λ, slowest first; a gap after the k-th says that there are k slow directions.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data / 16
    >>> slow = SlowFeatures(n_components=10, n_random=100, random_state=0).fit(X)
    >>> slow.transform(X).shape
    (1797, 10)
    """

    def __init__(
        self,
        representation: Any = None,
        *,
        n_components: int = 100,
        walk: str = "neighbors",
        n_steps: int = 10,
        n_neighbors: int = 5,
        metric: str = "auto",
        n_sweeps: int = 30,
        n_random: int = 2_500,
        ridge: float = 1e-3,
        random_state: Any = None,
    ) -> None:
        self.representation = representation
        self.n_components = n_components
        self.walk = walk
        self.n_steps = n_steps
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.n_sweeps = n_sweeps
        self.n_random = n_random
        self.ridge = ridge
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Walk once from every row of X (N, D), and find what the two ends share; y is not looked at."""
        self._require_options()
        X = self._checked(X, reset=True)
        seed = seed_of(self.random_state)
        self.representation_ = learned(self.representation, X, seed)
        view, _ = view_of(self.representation_, X[:: max(len(X) // BLOCK, 1)])
        n_random = min(self.n_random, max(len(X) // ROWS_PER_FUNCTION, 1))
        self._begin(view, n_random, np.random.default_rng([seed, 0]))
        ends = ends_of_walks(
            self.walk,
            view,
            X,
            n_sweeps=self.n_sweeps,
            n_steps=self.n_steps,
            n_neighbors=self.n_neighbors,
            metric=self.metric,
            seed=seed,
        )
        mean, C_0, C_tau = self._covariances(X, ends)
        dim = len(mean)
        # Where nothing varies there is nothing to solve for, and all λ are 0.
        C_0[np.diag_indices(dim)] += self.ridge * max(np.trace(C_0) / dim, LEAST)
        n = min(self.n_components, dim)
        values, vectors = eigh(C_tau, C_0, subset_by_index=(dim - n, dim - 1))
        self.eigenvalues_ = values[::-1].copy()
        slow = np.clip(self.eigenvalues_, 0, SLOWEST)
        self._mean = mean.astype(np.float32)
        self._map = (vectors[:, ::-1] * np.sqrt(slow / (1 - slow))).astype(np.float32)
        return self

    def transform(self, X: Any) -> Array:
        """The slow functions of each row (N, n_components), scaled to length 1."""
        check_is_fitted(self)
        return self.of_checked(self._checked(X, reset=False))

    def of_checked(self, X: Array) -> Array:
        """The same of rows that were checked already."""
        dtype = X.dtype
        blocks = (self._view(X[rows]) for rows in row_blocks(len(X)))
        z: Array = np.concatenate([(self._dictionary(h) - self._mean) @ self._map for h in blocks])
        z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)
        return z.astype(dtype, copy=False)

    def plot_spectrum(self) -> "Figure":
        """λ against its number: look for the last one before a gap, as many as there are slow directions."""
        from matplotlib.figure import Figure

        check_is_fitted(self)
        figure = Figure(figsize=(6, 3), layout="constrained")
        axes = figure.subplots()
        axes.plot(np.arange(1, len(self.eigenvalues_) + 1), self.eigenvalues_, marker=".")
        axes.set(xlabel="slow direction", ylabel="λ")
        return figure

    def _begin(self, view: View, n_random: int, rng: np.random.Generator) -> None:
        """The random part of the dictionary: ReLU of directions and thresholds, of rows on one scale."""
        K = len(view.center)
        self._view = view
        self._directions = (rng.standard_normal((K, n_random)) / np.sqrt(K)).astype(np.float32)
        self._thresholds = (rng.standard_normal(n_random) * 0.5).astype(np.float32)

    def _dictionary(self, h: Array) -> npt.NDArray[np.float32]:
        """φ = [h / 3, ReLU(h R + β)]; h of variance 1 then counts as the means of an RBM do by themselves."""
        random = np.maximum(h @ self._directions + self._thresholds, 0)
        return np.concatenate([h / np.float32(3), random], 1)

    def _covariances(self, X: Array, ends: Ends) -> tuple[Array, Array, Array]:
        """Mean, C_0 and symmetric C_τ of the dictionary over both ends, block by block."""
        dim = sum(self._directions.shape)
        total, C_0, C_tau = np.zeros(dim), np.zeros((dim, dim)), np.zeros((dim, dim))
        # Near their mean numbers are small, and their products in single precision lose little.
        near = self._dictionary(np.zeros((1, len(self._view.center)), dtype=np.float32))
        for rows in row_blocks(len(X)):
            here = self._dictionary(self._view(X[rows])) - near
            there = self._dictionary(ends(rows)) - near
            total += here.sum(0, dtype=np.float64) + there.sum(0, dtype=np.float64)
            C_0 += here.T @ here
            C_0 += there.T @ there
            C_tau += here.T @ there
        n = 2 * len(X)
        mean = total / n
        C_tau = (C_tau + C_tau.T) / n
        return mean + near[0], C_0 / n - np.outer(mean, mean), C_tau - np.outer(mean, mean)

    def _require_options(self) -> None:
        if self.representation is not None:
            require_estimator("representation", self.representation, "transform", "RBSE()")
        require_walk(self.walk, self.representation)
        option("metric", self.metric, METRICS)
        for name in ("n_components", "n_sweeps", "n_steps", "n_neighbors", "n_random"):
            count(name, getattr(self, name))
        if not self.ridge > 0:
            raise ValueError(f"ridge must be positive, got {self.ridge!r}; try 1e-3")

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "eigenvalues_")
