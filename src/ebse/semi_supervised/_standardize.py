"""Standardized representations: mean 0 and mean variance 1, in single precision; distances then compare."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ebse._estimators import dense, with_names

Array = npt.NDArray[Any]

BLOCK = 4_096
"""Rows that are processed at once: memory for intermediate results does not grow with N."""
N_ORIGIN = 256
"""Rows whose mean is the origin."""


class Standardizer(NamedTuple):
    """(z − origin − mean) / scale of the representation z of a row."""

    representation: Any
    """A fitted transformer, or None for the inputs."""
    origin: npt.NDArray[np.float64]
    """Near the rows (r,): relative to it, single precision keeps differences of large numbers."""
    mean: npt.NDArray[np.float32]
    """Relative to the origin (r,)."""
    scale: np.float32
    """Root of the mean variance; 1 if nothing varies."""

    def __call__(self, X: Array) -> npt.NDArray[np.float32]:
        """Standardized representation (N, r) of the rows X (N, D)."""
        blocks = (represented(self.representation, X[b]) for b in row_blocks(len(X)))
        return np.concatenate([self.scaled(z) for z in blocks])

    def scaled(self, z: Array) -> npt.NDArray[np.float32]:
        """Standardized representations z (N, r)."""
        return self._scaled((z - self.origin).astype(np.float32))

    def _scaled(self, shifted: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        shifted -= self.mean
        shifted /= self.scale
        return shifted

    def arrays(self, suffix: str = "") -> dict[str, Array]:
        """What a file holds of it, beside the representation."""
        return {
            f"origin{suffix}": self.origin,
            f"mean{suffix}": self.mean,
            f"spread{suffix}": np.array(self.scale, dtype=np.float32),
        }

    @classmethod
    def from_arrays(cls, representation: Any, arrays: dict[str, Array], suffix: str = "") -> "Standardizer":
        """The standardizer of a file."""
        origin, mean, scale = (arrays[f"{name}{suffix}"] for name in ("origin", "mean", "spread"))
        if origin.shape != mean.shape or scale.shape != ():
            raise ValueError(f"a mean of shape {mean.shape} for an origin of shape {origin.shape}")
        if not scale > 0:
            raise ValueError(f"a scale of {scale}")
        return cls(representation, origin, mean, np.float32(scale))


def standardize(representation: Any, X: Array) -> tuple[Standardizer, npt.NDArray[np.float32]]:
    """The standardizer of the rows X (N, D), and their standardized representation (N, r)."""
    blocks: list[npt.NDArray[np.float32]] = []
    made = _standardizer(representation, X, blocks)
    return made, made._scaled(np.concatenate(blocks))


def standardizer_of(X: Array) -> Standardizer:
    """The standardizer of the rows X (N, D) themselves, of which no copy is kept."""
    return _standardizer(None, X, None)


def _standardizer(
    representation: Any, X: Array, blocks: list[npt.NDArray[np.float32]] | None
) -> Standardizer:
    """The standardizer of a representation of the rows X, which is added to the ``blocks``, if given."""
    # Near the data, so that float32 holds the differences; a mean, as files must not hold a row itself.
    origin = represented(representation, X[:N_ORIGIN]).mean(0, dtype=np.float64)
    total, squares = np.zeros(len(origin)), 0.0
    for b in row_blocks(len(X)):
        shifted = represented(representation, X[b]) - origin
        total += shifted.sum(0)
        squares += float((shifted**2).sum())
        if blocks is not None:
            blocks.append(shifted.astype(np.float32))
    mean = total / len(X)
    variance = max(squares / len(X) - float((mean**2).sum()), 0.0) / len(mean)
    scale = np.float32(np.sqrt(variance) or 1.0)
    return Standardizer(representation, origin, mean.astype(np.float32), scale)


def represented(representation: Any, X: Array) -> Array:
    """The representation (N, r) of rows X (N, D) that were validated before."""
    if representation is None:
        return X
    if hasattr(representation, "_transform_validated"):
        # To validate a single row again takes a third of the time of its prediction.
        return np.asarray(representation._transform_validated(X))
    names = getattr(representation, "feature_names_in_", None)
    return dense(representation.transform(with_names(X, names)))


def row_blocks(n: int) -> Iterator[slice]:
    """Slices of n rows, BLOCK at a time."""
    for start in range(0, n, BLOCK):
        yield slice(start, min(start + BLOCK, n))


def n_distinct(Z: npt.NDArray[np.float32]) -> int:
    """Number of distinct rows."""
    return len({row.tobytes() for row in Z})
