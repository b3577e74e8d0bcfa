"""``SlowFeatures``: functions of the input that change slowest along a random walk."""

from collections.abc import Iterator
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from scipy.linalg import eigh
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ebse.arguments import count, option
from ebse.estimators.inputs import at_the_door, seed_of
from ebse.estimators.learned import learned
from ebse.estimators.neighbours import nearest, walked

Array = npt.NDArray[np.floating[Any]]

BLOCK = 4_096
"""Rows whose dictionary is held at once: memory does not grow with N."""
SLOWEST = 1 - 1e-6
"""λ beyond which a function counts as constant along the walk; its weight would be infinite."""


@final
class SlowFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
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
        "ensemble": the ensemble's own chain, ``n_sweeps`` long. "neighbours": from neighbour to
        neighbour, ``n_steps`` long. "auto": the chain where an ensemble remembers its start as long as
        that, by the measure of :class:`ebse.FewShotClassifier`, neighbours where not.
    n_sweeps, n_steps, n_neighbors
        Lengths of these walks, and neighbours that a step chooses from.
    n_random
        Random rectified functions in the dictionary, beside the representation itself.
    ridge
        Added to C_0, in parts of its mean eigenvalue.
    random_state
        A seed, for results that repeat.

    Attributes
    ----------
    eigenvalues_ : (n_components,)
        λ, slowest first; a gap after the k-th says that there are k slow directions.
    walk_
        The walk that was taken.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data / 16
    >>> slow = SlowFeatures(n_components=10, n_random=100, random_state=0).fit(X)
    >>> slow.transform(X).shape, slow.walk_
    ((1797, 10), 'neighbours')
    """

    def __init__(
        self,
        representation: Any = None,
        *,
        n_components: int = 100,
        walk: str = "auto",
        n_sweeps: int = 30,
        n_steps: int = 10,
        n_neighbors: int = 10,
        n_random: int = 2_500,
        ridge: float = 1e-3,
        random_state: Any = None,
    ) -> None:
        self.representation = representation
        self.n_components = n_components
        self.walk = walk
        self.n_sweeps = n_sweeps
        self.n_steps = n_steps
        self.n_neighbors = n_neighbors
        self.n_random = n_random
        self.ridge = ridge
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Walk once from every row of X (N, D), and find what the two ends share; y is not looked at."""
        self._require_options()
        X = self._checked(X, reset=True)
        self._seed = seed_of(self.random_state)
        self.representation_ = learned(self.representation, X, self._seed)
        self.walk_ = self._which(X)
        h = self._represented(X)
        self._begin(h)
        mean, C_0, C_tau = self._covariances(h, self._other_ends(X, h))
        dim = len(mean)
        C_0[np.diag_indices(dim)] += self.ridge * np.trace(C_0) / dim + np.finfo(np.float64).tiny
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
        X = self._checked(X, reset=False)
        dtype = X.dtype
        h = self._represented(X)
        parts = [(phi - self._mean) @ self._map for phi in map(self._dictionary, _blocks(h))]
        z: Array = np.concatenate(parts)
        z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)
        return z.astype(dtype, copy=False)

    def plot_spectrum(self) -> Figure:
        """λ against its number: look for the last one before a gap, as many as there are slow directions."""
        check_is_fitted(self)
        figure = Figure(figsize=(6, 3), layout="constrained")
        axes = figure.subplots()
        axes.plot(np.arange(1, len(self.eigenvalues_) + 1), self.eigenvalues_, marker=".")
        axes.set(xlabel="slow direction", ylabel="λ", ylim=(min(0.0, self.eigenvalues_.min()), 1.02))
        return figure

    def _which(self, X: Array) -> str:
        chain = hasattr(self.representation_, "sample_transform")
        if self.walk == "ensemble" and not chain:
            raise TypeError(
                f"representation must be an RBSE for walk='ensemble', got {self.representation!r}; pass one, "
                "or walk='neighbours'"
            )
        if self.walk != "auto":
            return self.walk
        from ebse.estimators.walking import how_far

        return "ensemble" if chain and how_far(self.representation_, X) >= self.n_sweeps else "neighbours"

    def _represented(self, X: Array) -> npt.NDArray[np.float32]:
        h = X if self.representation_ is None else self.representation_.transform(X)
        return np.asarray(h, dtype=np.float32)

    def _other_ends(self, X: Array, h: Array) -> Array:
        """The representation where a walk from each row ends."""
        if self.walk_ == "ensemble":
            ends: Array = self.representation_.sample_transform(
                X, 1, n_sweeps=self.n_sweeps, read="state", random_state=self._seed
            )[:, 0]
            return ends
        neighbours = nearest(np.asarray(X, dtype=np.float32), self.n_neighbors, seed=self._seed)
        return h[walked(neighbours, self.n_steps, seed=self._seed)]

    def _begin(self, h: Array) -> None:
        """The random part of the dictionary: ReLU of directions and thresholds on the scale of h."""
        rng = np.random.default_rng(self._seed)
        K = h.shape[1]
        self._centre = h.mean(0)
        spread = float(np.sqrt(h.var(0).mean())) or 1.0
        # Representations of an RBM vary by about a third; inputs on other scales get the same diversity.
        scale = 3 / np.sqrt(K) * 0.33 / spread
        self._directions = (rng.standard_normal((K, self.n_random)) * scale).astype(np.float32)
        self._thresholds = (rng.standard_normal(self.n_random) * 0.5).astype(np.float32)

    def _dictionary(self, h: Array) -> npt.NDArray[np.float32]:
        """φ = [h, ReLU((h − mean) R + β)]."""
        random = np.maximum((h - self._centre) @ self._directions + self._thresholds, 0)
        return np.concatenate([h, random], 1)

    def _covariances(self, h: Array, ends: Array) -> tuple[Array, Array, Array]:
        """Mean, C_0 and symmetric C_τ of the dictionary over both ends, block by block."""
        dim = h.shape[1] + self.n_random
        total, C_0, C_tau = np.zeros(dim), np.zeros((dim, dim)), np.zeros((dim, dim))
        for a, b in zip(_blocks(h), _blocks(ends), strict=True):
            here, there = self._dictionary(a), self._dictionary(b)
            total += here.sum(0, dtype=np.float64) + there.sum(0, dtype=np.float64)
            C_0 += here.T @ here
            C_0 += there.T @ there
            C_tau += here.T @ there
        n = 2 * len(h)
        mean = total / n
        C_tau = (C_tau + C_tau.T) / n
        return mean, C_0 / n - np.outer(mean, mean), C_tau - np.outer(mean, mean)

    def _require_options(self) -> None:
        option("walk", self.walk, ("auto", "ensemble", "neighbours"))
        for name in ("n_components", "n_sweeps", "n_steps", "n_neighbors", "n_random"):
            count(name, getattr(self, name))
        if not self.ridge > 0:
            raise ValueError(f"ridge must be positive, got {self.ridge!r}; try 1e-3")

    def _checked(self, X: Any, *, reset: bool) -> Array:
        found: Array = validate_data(
            self,
            at_the_door(X),
            reset=reset,
            dtype=[np.float64, np.float32],
            ensure_min_samples=2 if reset else 1,
        )
        return found

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "eigenvalues_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _blocks(h: Array) -> Iterator[Array]:
    for start in range(0, len(h), BLOCK):
        yield h[start : start + BLOCK]
