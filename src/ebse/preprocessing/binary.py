"""Binarization of gray values: by a threshold, or by sampling them as probabilities."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array, check_random_state

Array = npt.NDArray[np.float32]

QUARTILES = (0.25, 0.5, 0.75)


def quartile_cuts(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Where to split a column in at most four parts: its quartiles with values above and below.

    The second largest value if there are no such quartiles; nothing for a constant column.
    """
    values = np.unique(column)
    cuts = np.unique(np.quantile(column, QUARTILES))
    within = cuts[cuts < values[-1]]
    found: npt.NDArray[Any] = within if len(within) else values[-2:-1]
    return found


def threshold(X: Any, at: float = 0.5) -> Array:
    """Binarize by a threshold: 1 where X > ``at``, else 0, as float32.

    Parameters
    ----------
    X : array-like of shape (N, D)
        Values; 8-bit images with gray values above 1 are divided by 255 first.
    at : float, default=0.5
        The threshold; raising it gives fewer ones.

    Examples
    --------
    >>> threshold([[0.2, 0.7]])
    array([[0., 1.]], dtype=float32)
    """
    binary: Array = (_gray("threshold", X) > np.float32(at)).astype(np.float32)
    return binary


def sample_binary(X: Any, *, random_state: Any = None) -> Array:
    """Binarize by sampling: 1 with probability X, else 0, as float32.

    Parameters
    ----------
    X : array-like of shape (N, D)
        Probabilities in [0, 1]; 8-bit images with gray values above 1 are divided by 255 first.
    random_state : int, RandomState or None, default=None
        An int makes the sample reproducible.

    References
    ----------
    R. Salakhutdinov, I. Murray. On the Quantitative Analysis of Deep Belief Networks. ICML, 2008.

    Examples
    --------
    >>> sample_binary([[0.0, 1.0]], random_state=0)
    array([[0., 1.]], dtype=float32)
    """
    gray = _gray("sample_binary", X)
    if gray.size and not (gray.min() >= 0 and gray.max() <= 1):
        raise ValueError(
            f"X must lie in [0, 1] to be used as probabilities, got values from {gray.min():g} to "
            f"{gray.max():g}; scale each feature to [0, 1] first"
        )
    rng = check_random_state(random_state)
    binary: Array = (rng.random_sample(gray.shape) < gray).astype(np.float32)
    return binary


def _gray(name: str, X: Any) -> Array:
    """X as float32 rows; 8-bit images with gray values above 1 are divided by 255."""
    X = X.numpy(force=True) if hasattr(X, "numpy") else X
    rows: Array = check_array(X, dtype=np.float32, input_name="X", estimator=name)
    if getattr(X, "dtype", None) == np.uint8 and rows.max() > 1:
        rows = rows / np.float32(255)
    return rows
