"""Min-max scaling of features to [0, 1], the range of visible units."""

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

Array = npt.NDArray[np.floating[Any]]
Bounds = npt.NDArray[np.float64]

BLOCK = 2**20
"""Values that are held in double precision at once."""

SLACK = 1e-6
"""Distance from [0, 1] up to which a value does not count as clipped."""

BYTE = 255.0
"""The largest gray value of an 8-bit image."""


class UnitScaling(NamedTuple):
    """v = (x − low) / width, clipped to [0, 1], for each feature; low 0 and width 1 leave [0, 1] unchanged.

    The arithmetic is in double precision: in single precision large values that differ little would become
    equal. Sparse (csr) and dense rows give the same results.

    Parameters
    ----------
    low : ndarray of shape (D,)
        Subtracted from each feature.
    width : ndarray of shape (D,)
        Divides each feature; positive.

    Examples
    --------
    >>> X = np.array([[0.0, -1.0], [1.0, 3.0]])
    >>> UnitScaling.found_in(X).apply(X)
    array([[0., 0.],
           [1., 1.]], dtype=float32)
    """

    low: Bounds
    width: Bounds

    @classmethod
    def none(cls, D: int) -> Self:
        """No scaling of D features; values outside [0, 1] are clipped."""
        return cls(np.zeros(D), np.ones(D))

    @classmethod
    def found_in(cls, X: Any, *, image: bool = False) -> Self:
        """Minimum and range of those features of X (N, D) that leave [0, 1]; NaN entries are ignored.

        8-bit images (``image``) with gray values above 1 are divided by 255.
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
        """Indices of the features that are changed."""
        return np.flatnonzero((self.low != 0) | (self.width != 1))

    def apply(self, X: Any) -> Any:
        """X in [0, 1], float32; csr stays csr where every low is 0. NaN stays NaN.

        X itself where nothing changes.
        """
        if sparse.issparse(X) and not self.low.any():
            scaled = sparse.csr_array(X, dtype=np.float64, copy=True)
            scaled.sum_duplicates()
            data = np.clip(scaled.data / self.width[scaled.indices], 0, 1).astype(np.float32)
            return sparse.csr_array((data, scaled.indices, scaled.indptr), shape=scaled.shape)
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
        """The fraction of values of X (N, D) that ``apply`` clips."""
        if not len(self.scaled) and _within(X, SLACK):
            return 0.0
        size = max(X.shape[0] * X.shape[1], 1)
        if not sparse.issparse(X):
            return float(_outside((X - self.low) / self.width).sum() / size)
        X = _canonical(X)
        stored = _outside((X.data - self.low[X.indices]) / self.width[X.indices]).sum()
        # Zeros that are not stored leave [0, 1] where the range of a feature does not include 0.
        n_zeros = X.shape[0] - np.bincount(X.indices, minlength=X.shape[1])
        return float((stored + n_zeros[_outside(-self.low / self.width)].sum()) / size)

    def undo(self, v: Array) -> Array:
        """Values in [0, 1] on the scale of the features."""
        on_scale: Array = (v * self.width + self.low).astype(np.float64 if len(self.scaled) else v.dtype)
        return on_scale


def _outside(values: Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = (values < -SLACK) | (values > 1 + SLACK)
    return found


def _within(X: Any, slack: float) -> bool:
    """Whether all values of X lie in [0, 1], up to ``slack``; False where some are NaN."""
    # Stored values are enough, because 0 is in [0, 1]; X.min() of a csr matrix would sort it in place.
    values = _canonical(X).data if sparse.issparse(X) else X
    return bool(values.size and values.min() >= -slack and values.max() <= 1 + slack)


def _canonical(X: Any) -> Any:
    """A csr matrix without duplicate entries: X itself, or a copy."""
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def _extremes(X: Any) -> tuple[Bounds, Bounds]:
    """Smallest and largest value of every feature, NaN where all are missing."""
    if sparse.issparse(X):
        return tuple(np.asarray(x.todense(), dtype=np.float64).ravel() for x in (X.min(0), X.max(0)))  # type: ignore[return-value]
    return np.fmin.reduce(X, 0).astype(np.float64), np.fmax.reduce(X, 0).astype(np.float64)
