"""``SlowFeatures``: slow feature analysis (VAMP, TICA) along random walks on a neighbor graph."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from ebse import _archive
from ebse._estimators import (
    Inputs,
    learned,
    representation_state,
    require_estimator,
    restored_representation,
    seed_of,
    supplied_representation,
    unchanged_on_error,
)
from ebse._stages import shown
from ebse._validation import count, option
from ebse.semi_supervised._knn_graph import METRICS, WalkFeatures, neighbor_graph, random_walk
from ebse.semi_supervised._standardize import BLOCK, Standardizer, row_blocks, standardize

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = npt.NDArray[np.floating[Any]]

ROWS_PER_FUNCTION = 20
SMALLEST_VARIANCE = 1e-3
"""Of the dictionary, for the size of the ridge."""
LARGEST_EIGENVALUE = 1 - 1e-6
"""A function with a larger λ counts as constant along walks; its weight would be infinite."""


@final
class SlowFeatures(WalkFeatures):
    """Slow feature analysis of a representation, along random walks on a nearest-neighbor graph.

    The features are w_i · φ(x) √(λ_i / (1 − λ_i)), scaled to rows of length 1: the linear functions of a
    dictionary φ that change slowest along a walk. λ and w solve the generalized eigenvalue problem

        C_τ w = λ C_0 w,

    with the covariance C_τ of φ between the two ends of a walk, and C_0 within an end. A function with λ near
    1 has the same value at both ends; indicators of classes that walks do not leave are such functions.

    Parameters
    ----------
    representation : transformer, FrozenEstimator or None, default None
        The input of the dictionary: a transformer such as :class:`ebse.RBSE`, which is fitted to the rows of
        ``fit``; or a fitted one in a ``FrozenEstimator``; None: the inputs themselves.
    n_components : int, default 100
        Number of features, slowest first. More than the number of classes; 10 to 200.
    n_steps : int, default 10
        Steps of a random walk. Longer walks leave only slower functions, and leave classes more often; 3 to
        20.
    n_neighbors : int, default 5
        Neighbors that a step chooses from: those of the 15 nearest rows that share most of their own
        neighbors with the row; 3 to 15.
    metric : {"auto", "cosine", "euclidean"}, default "auto"
        Distance of the inputs. "cosine" compares directions from the mean of all rows; "auto" takes it from
        100 columns on, as for images, and "euclidean" below.
    n_random : int, default 2500
        Random ReLU functions in the dictionary, beside the representation itself. More can follow more
        complex classes; never more than one for every 20 rows, or functions are found that are slow by
        chance.
    ridge : float, default 1e-3
        Added to the diagonal of C_0, relative to its mean eigenvalue. Larger values give smoother functions.
    random_state : int, RandomState, Generator or None, default None
        A seed for reproducible results.
    verbose : int, default 0
        1 shows progress bars.

    Attributes
    ----------
    eigenvalues_ : array (n_components,)
        λ, slowest first; a gap after the k-th shows that there are k slow functions.
    representation_ : transformer or None
        The fitted representation.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array (n_features,)
        Names of the columns, if X was a frame with string names.

    References
    ----------
    L. Wiskott and T. J. Sejnowski, "Slow feature analysis: unsupervised learning of invariances", 2002.
    G. Pérez-Hernández et al., "Identification of slow molecular order parameters for Markov model
    construction", 2013 (TICA).
    H. Wu and F. Noé, "Variational approach for learning Markov processes from time series data", 2020 (VAMP).
    R. A. Jarvis and E. A. Patrick, "Clustering using a similarity measure based on shared near neighbors",
    1973.

    Notes
    -----
    Walks along the Gibbs chain of an ensemble, instead of the neighbor graph, were worse on every data set
    that was measured, and are not offered.

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
        n_steps: int = 10,
        n_neighbors: int = 5,
        metric: str = "auto",
        n_random: int = 2_500,
        ridge: float = 1e-3,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.representation = representation
        self.n_components = n_components
        self.n_steps = n_steps
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.n_random = n_random
        self.ridge = ridge
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Solve for the slow functions along one random walk from every row of X.

        Parameters
        ----------
        X : array-like (N, D)
            At least 2 rows.
        y : ignored
            For scikit-learn's pipelines.
        """
        with shown(self.verbose), unchanged_on_error(self):
            return self._fit(X)

    def _fit(self, X: Any) -> Self:
        self._require_options()
        X = self._validated(X, reset=True)
        seed = seed_of(self.random_state)
        self.representation_ = learned(self.representation, X, seed, getattr(self, "feature_names_in_", None))
        self._standardizer, _ = standardize(self.representation_, X[:: max(len(X) // BLOCK, 1)])
        n_random = min(self.n_random, max(len(X) // ROWS_PER_FUNCTION, 1))
        self._draw_dictionary(n_random, np.random.default_rng([seed, 0]))
        mean, C_0, C_tau = self._covariances(X, self._walk_ends(X, seed))
        dim = len(mean)
        # Where nothing varies there is nothing to solve for, and all λ are 0.
        C_0[np.diag_indices(dim)] += self.ridge * max(np.trace(C_0) / dim, SMALLEST_VARIANCE)
        n = min(self.n_components, dim)
        values, vectors = eigh(C_tau, C_0, subset_by_index=(dim - n, dim - 1))
        self.eigenvalues_ = values[::-1].copy()
        slow = np.clip(self.eigenvalues_, 0, LARGEST_EIGENVALUE)
        self._mean = mean.astype(np.float32)
        self._map = (vectors[:, ::-1] * np.sqrt(slow / (1 - slow))).astype(np.float32)
        return self

    def _walk_ends(self, X: Array, seed: int) -> npt.NDArray[np.int64]:
        """The last row of a random walk from every row of X (N,)."""
        _, inputs = standardize(None, X)
        neighbors = neighbor_graph(inputs, self.n_neighbors, metric=self.metric, seed=seed).neighbors
        return random_walk(neighbors, self.n_steps, np.arange(len(X)), rng=np.random.default_rng([seed, 1]))

    def _transform_validated(self, X: Array) -> Array:
        dtype = X.dtype
        blocks = (self._standardizer(X[b]) for b in row_blocks(len(X)))
        z: Array = np.concatenate([(self._dictionary(h) - self._mean) @ self._map for h in blocks])
        z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)
        return z.astype(dtype, copy=False)

    def plot_spectrum(self) -> "Figure":
        """Plot the eigenvalues λ: the number before a gap is that of slow functions, often of classes.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from matplotlib.figure import Figure

        check_is_fitted(self)
        figure = Figure(figsize=(6, 3), layout="constrained")
        axes = figure.subplots()
        axes.plot(np.arange(1, len(self.eigenvalues_) + 1), self.eigenvalues_, marker=".")
        axes.set(xlabel="slow function", ylabel="λ")
        return figure

    def save(self, path: str | Path, *, representation: str = "include") -> None:
        """Write the fitted transformer to one file, atomically.

        Parameters
        ----------
        path : str or Path
            A ``.safetensors`` file. It holds arrays and JSON, no code.
        representation : {"include", "omit"}, default "include"
            "omit" leaves the representation out, and ``load(path, representation=fitted)`` takes it back. For
            one that is not of this package "include" raises TypeError.
        """
        check_is_fitted(self)
        option("representation", representation, ("include", "omit"))
        facts, arrays = self._state(omit=representation == "omit")
        _archive.write(Path(path), type(self).__name__, facts, arrays)

    @classmethod
    def load(cls, path: str | Path, *, representation: Any = None) -> Self:
        """The fitted transformer of a file written by :meth:`save`; nothing is fitted, no code is executed.

        Parameters
        ----------
        path : str or Path
            The file.
        representation : fitted transformer, default None
            Where it was left out of the file. The parameter ``representation`` is frozen after loading.
        """
        state = _archive.read(Path(path), cls.__name__)
        with _archive.consistent(Path(path)):
            inputs, width = Inputs.from_facts(state.facts), state.arrays["mean"].shape[0]
        supplied = supplied_representation(state, "representation", representation, inputs, width)
        with _archive.consistent(Path(path)):
            return cls._from_state(state, supplied)

    def _state(self, *, omit: bool = False) -> _archive.State:
        parameters = _archive.plain(self.get_params(deep=False))
        held = representation_state("representation", self.representation_, omit=omit)
        facts = {"parameters": parameters, **self._input_facts(), **held.facts}
        arrays = {
            "eigenvalues": self.eigenvalues_,
            **self._standardizer.arrays(),
            "directions": self._directions,
            "thresholds": self._thresholds,
            "dictionary_mean": self._mean,
            "map": self._map,
        }
        return _archive.State(facts, {**arrays, **held.arrays})

    @classmethod
    def _from_state(cls, state: _archive.State, supplied: Any = None) -> Self:
        representation = restored_representation(state, "representation", supplied)
        facts, arrays = state
        frozen = None if representation is None else FrozenEstimator(representation)
        made = cls(**{**facts["parameters"], "representation": frozen})._with_input_facts(facts)
        made.representation_ = representation
        made._standardizer = Standardizer.from_arrays(representation, arrays)
        made._directions, made._thresholds = arrays["directions"], arrays["thresholds"]
        made._mean, made._map, made.eigenvalues_ = (
            arrays[name] for name in ("dictionary_mean", "map", "eigenvalues")
        )
        K, n = made._directions.shape
        fit = [
            arrays["mean"].shape == (K,),
            representation is not None or made.n_features_in_ == K,
            made._thresholds.shape == (n,),
            made._mean.shape == (K + n,),
            made._map.shape == (K + n, len(made.eigenvalues_)),
        ]
        if not all(fit):
            raise ValueError(f"arrays that contradict a dictionary of {K} + {n} functions")
        return made

    def _draw_dictionary(self, n_random: int, rng: np.random.Generator) -> None:
        """The random part of the dictionary: directions and thresholds of ReLU functions."""
        K = len(self._standardizer.mean)
        self._directions = (rng.standard_normal((K, n_random)) / np.sqrt(K)).astype(np.float32)
        self._thresholds = (rng.standard_normal(n_random) * 0.5).astype(np.float32)

    def _dictionary(self, h: Array) -> npt.NDArray[np.float32]:
        """φ = [h / 3, ReLU(h R + β)]; h / 3 gives h of variance 1 the weight of the means of an RBM."""
        random = np.maximum(h @ self._directions + self._thresholds, 0)
        return np.concatenate([h / np.float32(3), random], 1)

    def _covariances(self, X: Array, ends: npt.NDArray[np.int64]) -> tuple[Array, Array, Array]:
        """Mean, C_0 and symmetric C_τ of the dictionary over walks from X to X[ends], block by block."""
        dim = sum(self._directions.shape)
        total, C_0, C_tau = np.zeros(dim), np.zeros((dim, dim)), np.zeros((dim, dim))
        # Near the mean values are small, and their products in single precision lose little.
        center = self._dictionary(np.zeros((1, len(self._standardizer.mean)), dtype=np.float32))
        for b in row_blocks(len(X)):
            start = self._dictionary(self._standardizer(X[b])) - center
            end = self._dictionary(self._standardizer(X[ends[b]])) - center
            total += start.sum(0, dtype=np.float64) + end.sum(0, dtype=np.float64)
            C_0 += start.T @ start
            C_0 += end.T @ end
            C_tau += start.T @ end
        n = 2 * len(X)
        mean = total / n
        C_tau = (C_tau + C_tau.T) / n
        return mean + center[0], C_0 / n - np.outer(mean, mean), C_tau - np.outer(mean, mean)

    def _require_options(self) -> None:
        if self.representation is not None:
            require_estimator("representation", self.representation, "transform", "RBSE()")
        option("metric", self.metric, METRICS)
        for name in ("n_components", "n_steps", "n_neighbors", "n_random"):
            count(name, getattr(self, name))
        if not self.ridge > 0:
            raise ValueError(f"ridge must be positive, got {self.ridge!r}; try 1e-3")

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "eigenvalues_")
