"""Features brought to [0, 1], where visible units live."""

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

Array = npt.NDArray[np.floating[Any]]
Bounds = npt.NDArray[np.float64]

BLOCK = 2**20
"""Values that are held in double precision at once."""

SLACK = 1e-6
"""How far a value may leave [0, 1] without being called clipped."""

BYTE = 255.0
"""The largest gray value of an 8-bit image."""


class UnitScaling(NamedTuple):
    """(x − low) / width, clipped to [0, 1], feature by feature; low 0 and width 1 leave [0, 1] as it is.

    In double precision: in single, a feature of large numbers that differ little would lose what it says.
    """

    low: Bounds
    width: Bounds

    @classmethod
    def none(cls, D: int) -> Self:
        """No change of D features but that values are clipped."""
        return cls(np.zeros(D), np.ones(D))

    @classmethod
    def found_in(cls, X: Any, *, image: bool = False) -> Self:
        """Minimum and range of the features of X (N, D) that leave [0, 1]; NaN entries are not asked.

        8-bit images (``image``) that have gray values above 1 are divided by 255 as a whole.
        """
        lowest, highest = (np.nan_to_num(x) for x in _extremes(X))
        if image and highest.max(initial=0) > 1:
            return cls(np.zeros_like(lowest), np.full_like(lowest, BYTE))
        outside = (lowest < 0) | (highest > 1)
        width = np.where(outside, highest - lowest, 1)
        # A constant feature becomes 0.
        return cls(np.where(outside, lowest, 0), np.where(width > 0, width, 1))

    @property
    def scaled(self) -> npt.NDArray[np.intp]:
        """The features that are changed."""
        return np.flatnonzero((self.low != 0) | (self.width != 1))

    def apply(self, X: Any) -> Any:
        """X in [0, 1], float32; csr stays csr where no feature has a low end other than 0. NaN stays NaN.

        Where there is nothing to do, X itself.
        """
        if sparse.issparse(X) and not self.low.any():
            scaled = sparse.csr_array(X, dtype=np.float64, copy=True)
            scaled.data /= self.width[scaled.indices]
            return _with_data(scaled)
        X = X.toarray() if sparse.issparse(X) else X
        if X.dtype == np.float32 and not len(self.scaled) and _within(X, 0.0):
            return X
        unit = np.empty(X.shape, dtype=np.float32)
        step = max(BLOCK // max(X.shape[1], 1), 1)
        for start in range(0, len(X), step):
            rows = slice(start, start + step)
            unit[rows] = np.clip((X[rows] - self.low) / self.width if len(self.scaled) else X[rows], 0, 1)
        return unit

    def clipped(self, X: Any) -> float:
        """The share of values of X that leave [0, 1] when they are scaled."""
        if not len(self.scaled) and _within(X, SLACK):
            return 0.0
        values = X.data / self.width[X.indices] if sparse.issparse(X) else (X - self.low) / self.width
        size = max(X.shape[0] * X.shape[1], 1)
        return float(((values < -SLACK) | (values > 1 + SLACK)).sum() / size)

    def undo(self, v: Array) -> Array:
        """Values in [0, 1] on the scale of the features."""
        on_scale: Array = (v * self.width + self.low).astype(np.float64 if len(self.scaled) else v.dtype)
        return on_scale


def _within(X: Any, slack: float) -> bool:
    """Whether all values of X lie in [0, 1], or so little outside; never where some are missing."""
    # Of csr the stored values: its own minimum would sort the matrix of whoever gave it.
    values = X.data if sparse.issparse(X) else X
    return bool(values.size and values.min() >= -slack and values.max() <= 1 + slack)


def _with_data(scaled: Any) -> Any:
    """The csr matrix with its values clipped to [0, 1], float32."""
    data = np.clip(scaled.data, 0, 1).astype(np.float32)
    return sparse.csr_array((data, scaled.indices, scaled.indptr), shape=scaled.shape)


def _extremes(X: Any) -> tuple[Bounds, Bounds]:
    """Smallest and largest value of every feature, NaN where there is none."""
    if sparse.issparse(X):
        return tuple(np.asarray(x.todense(), dtype=np.float64).ravel() for x in (X.min(0), X.max(0)))  # type: ignore[return-value]
    return np.fmin.reduce(X, 0).astype(np.float64), np.fmax.reduce(X, 0).astype(np.float64)
