"""A member of :class:`ebse.FewLabelClassifier` on stochastic representations of an energy-based ensemble."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import softmax
from sklearn.frozen import FrozenEstimator

from ebse import _chains
from ebse._chains import chain_length, strong_noise
from ebse._estimators import learned
from ebse.preprocessing.binary import quartile_cuts
from ebse.semi_supervised._columns import Views

Array = npt.NDArray[Any]
Index = npt.NDArray[np.intp]

N_DRAWS, BLOCK = 10, 1_000
"""Models sampled for each row, and rows whose representations are held at once."""


def samples_models(features: Any) -> bool:
    """Whether ``features`` is an energy-based ensemble, such as :class:`ebse.RBSE`."""
    return hasattr(features, "sample_transform")


class Splits(NamedTuple):
    """Binary features: whether a column is above a cut."""

    columns: Index
    """The column that each feature is made of (B,)."""
    cuts: Array
    """Where it is cut (B,)."""

    @classmethod
    def learned(cls, X: Array) -> "Splits":
        """At the quartiles of each column of X (N, P)."""
        cuts = [quartile_cuts(column).astype(np.float32) for column in X.T]
        columns = np.repeat(np.arange(len(cuts)), [len(own) for own in cuts])
        return cls(columns, np.concatenate(cuts))

    def __call__(self, X: Array) -> Array:
        """The features of rows X (N, P): 0 or 1 (N, B)."""
        found: Array = (X[:, self.columns] > self.cuts).astype(np.float32)
        return found


class Sampler(NamedTuple):
    """Representations of rows by models sampled from a fitted ensemble."""

    splits: Splits
    ensemble: Any
    n_sweeps: int
    """Gibbs sweeps of the chain after which a model is sampled; 0: the mean representation alone."""
    seed: int

    @classmethod
    def learned(cls, features: Any, X: Array, seed: int) -> "Sampler":
        """Of an ensemble that is fitted to columns X (N, P), split at their quartiles.

        Chains are as long as they remember their start, as in :class:`ebse.ensemble.RBSEClassifier`.
        """
        if isinstance(features, FrozenEstimator):
            raise ValueError(
                "features must be an ensemble that is not frozen, as it is fitted to the columns split at "
                f"their quartiles, got {features!r}; pass {type(features.estimator).__name__}()"
            )
        splits = Splits.learned(X)
        rows = splits(X)
        ensemble = learned(features, rows, seed)
        return cls(splits, ensemble, chain_length(ensemble, rows), seed)

    def require_rows(self, X: Array) -> None:
        """Refuse a sampler of a file that cannot represent rows X (N, P)."""
        columns, cuts = self.splits
        fit = [
            columns.dtype.kind == "i" and columns.ndim == 1 and columns.shape == cuts.shape,
            bool(((columns >= 0) & (columns < X.shape[1])).all()),
            self.n_sweeps in (0, *_chains.LENGTHS),
            samples_models(self.ensemble),
        ]
        if not all(fit):
            raise ValueError("columns and ensemble contradict each other")
        self.ensemble.transform(self.splits(X))

    def __call__(self, X: Array) -> Array:
        """Representations (N, n_draws, K) of rows X (N, P); a row's do not depend on the other rows."""
        rows = self.splits(X)
        if not self.n_sweeps:
            mean: Array = self.ensemble.transform(rows)[:, np.newaxis]
            return mean
        drawn: Array = self.ensemble.sample_transform(
            rows, N_DRAWS, n_sweeps=self.n_sweeps, random_state=self.seed, **strong_noise(self.ensemble)
        )
        return drawn


class OnDraws(NamedTuple):
    """Logistic regression on sampled representations; probabilities are averaged over the models of a row.

    References
    ----------
    M. Al-Shedivat, E. Neftci and G. Cauwenberghs, "Learning non-deterministic representations with
    energy-based ensembles", 2015.
    """

    sampler: Sampler
    coef: Array
    """(C, K)"""
    intercept: Array
    """(C,)"""

    def __call__(self, views: Views) -> Array:
        """Class probabilities of rows (N, C)."""
        X = views.standard
        parts = [self._of_block(X[start : start + BLOCK]) for start in range(0, len(X), BLOCK)]
        return np.concatenate(parts)

    def _of_block(self, X: Array) -> Array:
        p: Array = softmax(self.sampler(X) @ self.coef.T + self.intercept, axis=2).mean(1)
        return p

    def arrays(self) -> dict[str, Array]:
        """What a file holds, beside the ensemble."""
        return {"coef": self.coef, "intercept": self.intercept}
