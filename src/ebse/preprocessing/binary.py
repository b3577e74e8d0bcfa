"""Gray values made binary: by a threshold, or by sampling them as probabilities."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array, check_random_state

Array = npt.NDArray[np.float32]


def threshold(X: Any, at: float = 0.5) -> Array:
    """1 where X > ``at``, else 0, float32; gray uint8 images count from 0 to 255.

    >>> threshold([[0.2, 0.7]])
    array([[0., 1.]], dtype=float32)
    """
    binary: Array = (_gray("threshold", X) > np.float32(at)).astype(np.float32)
    return binary


def sample_binary(X: Any, *, random_state: Any = None) -> Array:
    """1 with probability X, else 0, float32: gray values read as probabilities of binary units.

    >>> sample_binary([[0.0, 1.0]], random_state=0)
    array([[0., 1.]], dtype=float32)
    """
    gray = _gray("sample_binary", X)
    if gray.size and not (gray.min() >= 0 and gray.max() <= 1):
        raise ValueError(
            f"X must lie in [0, 1] to be read as probabilities, got values from {gray.min():g} to "
            f"{gray.max():g}; scale each feature to [0, 1] first"
        )
    rng = check_random_state(random_state)
    binary: Array = (rng.random_sample(gray.shape) < gray).astype(np.float32)
    return binary


def _gray(name: str, X: Any) -> Array:
    """X as float32 rows; 8-bit images that have gray values above 1 divided by 255."""
    X = X.numpy(force=True) if hasattr(X, "numpy") else X
    rows: Array = check_array(X, dtype=np.float32, input_name="X", estimator=name)
    if getattr(X, "dtype", None) == np.uint8 and rows.max() > 1:
        rows = rows / np.float32(255)
    return rows
