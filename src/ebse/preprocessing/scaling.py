"""Features brought to [0, 1], where visible units live."""

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

Array = npt.NDArray[np.float32]

BYTE = 255.0
"""The largest grey value of an 8-bit image."""


class UnitScaling(NamedTuple):
    """(x − low) / width, clipped to [0, 1], feature by feature; low 0 and width 1 leave [0, 1] as it is."""

    low: Array
    width: Array

    @classmethod
    def none(cls, D: int) -> Self:
        """No change of D features but that values are clipped."""
        return cls(np.zeros(D, dtype=np.float32), np.ones(D, dtype=np.float32))

    @classmethod
    def found_in(cls, X: Any, *, image: bool = False) -> Self:
        """Minimum and range of the features of X (N, D) that leave [0, 1]; NaN entries are not asked.

        8-bit images (``image``) that have grey values above 1 are divided by 255 as a whole.
        """
        lowest, highest = (np.nan_to_num(x) for x in _extremes(X))
        if image and highest.max(initial=0) > 1:
            return cls(np.zeros_like(lowest), np.full_like(lowest, BYTE))
        outside = (lowest < 0) | (highest > 1)
        low, width = np.where(outside, lowest, 0), np.where(outside, highest - lowest, 1)
        # A constant feature becomes 0.
        return cls(low.astype(np.float32), np.where(width > 0, width, 1).astype(np.float32))

    @property
    def scaled(self) -> npt.NDArray[np.intp]:
        """The features that are changed."""
        return np.flatnonzero((self.low != 0) | (self.width != 1))

    def apply(self, X: Any) -> Any:
        """X in [0, 1], float32; csr stays csr where no feature has a low end below 0. NaN stays NaN."""
        if sparse.issparse(X):
            if not self.low.any():
                scaled = sparse.csr_array(X.multiply(1 / self.width), dtype=np.float32)
                np.clip(scaled.data, 0, 1, out=scaled.data)
                return scaled
            X = X.toarray()
        if not len(self.scaled):
            return np.clip(X, 0, 1, dtype=np.float32) if _outside(X) else np.asarray(X, dtype=np.float32)
        return np.clip((X - self.low) / self.width, 0, 1).astype(np.float32)

    def undo(self, v: Array) -> Array:
        """Values in [0, 1] on the scale of the features."""
        return v * self.width + self.low


def _extremes(X: Any) -> tuple[Array, Array]:
    """Smallest and largest value of every feature, NaN where there is none."""
    if sparse.issparse(X):
        return tuple(np.asarray(x.todense(), dtype=np.float32).ravel() for x in (X.min(0), X.max(0)))  # type: ignore[return-value]
    if not len(X):
        return np.zeros(X.shape[1], np.float32), np.zeros(X.shape[1], np.float32)
    return np.fmin.reduce(X, 0), np.fmax.reduce(X, 0)


def _outside(X: Any) -> bool:
    return bool(X.size) and not (np.nanmin(X) >= 0 and np.nanmax(X) <= 1)
