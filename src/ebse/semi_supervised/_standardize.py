"""Representations brought to one scale, in single precision: distances then mean the same for all of them."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ebse._estimators import with_names

Array = npt.NDArray[Any]

BLOCK = 4_096
"""Rows that are looked at at once: memory for what is made of them does not grow with N."""


class View(NamedTuple):
    """(z − center) / spread of the representation z of a row."""

    representation: Any
    """A fitted transformer, or None for the inputs."""
    center: npt.NDArray[np.float64]
    """Mean (r,)."""
    spread: float
    """Root of the mean variance; 1 where nothing varies."""

    def __call__(self, X: Array) -> npt.NDArray[np.float32]:
        """Rows X (N, D) in the representation, on its scale (N, r)."""
        return np.concatenate([self.on_scale(z) for z in _blocks(self.representation, X)])

    def on_scale(self, z: Array) -> npt.NDArray[np.float32]:
        """What the representation gave (N, r), on its scale."""
        found: npt.NDArray[np.float32] = ((z - self.center) / self.spread).astype(np.float32)
        return found


def view_of(representation: Any, X: Array) -> tuple[View, npt.NDArray[np.float32]]:
    """The view in which the rows X (N, D) have mean 0 and mean variance 1, and these rows in it (N, r)."""
    first = _represented(representation, X[:1])[0]
    total, squares, held = np.zeros(len(first)), 0.0, []
    for z in _blocks(representation, X):
        # Away from the first row: where all numbers are large, single precision would lose their differences.
        away = z - first
        total += away.sum(0)
        squares += float((away**2).sum())
        held.append(away.astype(np.float32))
    mean = total / len(X)
    variance = max(squares / len(X) - float((mean**2).sum()), 0.0) / len(mean)
    view = View(representation, first + mean, float(np.sqrt(variance)) or 1.0)
    Z = np.concatenate(held)
    Z -= mean.astype(np.float32)
    Z /= np.float32(view.spread)
    return view, Z


def n_distinct(Z: npt.NDArray[np.float32]) -> int:
    """How many different rows there are."""
    return len({row.tobytes() for row in Z})


def _blocks(representation: Any, X: Array) -> Any:
    for start in range(0, len(X), BLOCK):
        yield _represented(representation, X[start : start + BLOCK])


def _represented(representation: Any, X: Array) -> npt.NDArray[np.float64]:
    if representation is None:
        return np.asarray(X, dtype=np.float64)
    if hasattr(representation, "of_checked"):
        # Rows come from an estimator that has checked them; to do so again takes a third of a query's time.
        return np.asarray(representation.of_checked(X), dtype=np.float64)
    names = getattr(representation, "feature_names_in_", None)
    return np.asarray(representation.transform(with_names(X, names)), dtype=np.float64)
