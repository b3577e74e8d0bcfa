"""Shared by the estimators: rows in any form, seeds, and representations that are passed in."""

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted


def require_estimator(name: str, value: Any, verb: str, example: str) -> None:
    """Refuse what is no estimator, or its class, where ``verb`` is to be asked of it."""
    if isinstance(value, type) or not all(hasattr(value, what) for what in (verb, "get_params")):
        raise TypeError(
            f"{name} must be an estimator with {verb}, got {value!r:.60}; pass an instance, such as {example}"
        )


def learned(representation: Any, rows: Any, seed: int) -> Any:
    """The representation as it is, where it is frozen; a copy that has learned from the rows, where not."""
    if representation is None:
        return None
    if isinstance(representation, FrozenEstimator):
        held = representation.estimator
        check_is_fitted(held)
        n = getattr(held, "n_features_in_", rows.shape[1])
        if n != rows.shape[1]:
            raise ValueError(
                f"representation must have learned from rows of {rows.shape[1]} features, like X, got one "
                f"that learned from {n}; fit it on rows of the same columns"
            )
        return held
    try:
        return seeded(representation, seed).fit(rows)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "stopped while the representation was learned, and nothing of it is kept; fit it by itself, "
            "where Ctrl-C keeps what was learned, and pass FrozenEstimator(representation)"
        ) from None


def seeded(estimator: Any, seed: int) -> Any:
    """A copy that repeats, also where it was given no random state of its own."""
    copy = clone(estimator)
    if copy.get_params().get("random_state", seed) is None:
        copy.set_params(random_state=seed)
    return copy


def as_rows(X: Any) -> Any:
    """X with tensors as arrays, and boolean or half-precision ones as float32; anything else as it is."""
    if type(X).__module__.partition(".")[0] == "torch":
        X = X.detach().cpu()
        X = X.float().numpy() if X.is_floating_point() and X.element_size() == 2 else X.numpy()
    if isinstance(X, np.ndarray) and X.dtype in (np.bool_, np.float16):
        X = X.astype(np.float32)
    # Images (N, height, width) as rows of pixels.
    return X.reshape(len(X), -1) if isinstance(X, np.ndarray) and X.dtype == np.uint8 and X.ndim == 3 else X


def with_names(X: Any, names: Any) -> Any:
    """X as a frame, where what is asked learned from one."""
    return X if names is None or sparse.issparse(X) else pd.DataFrame(X, columns=names)


def seed_of(random_state: Any) -> int:
    """A seed from anything that scikit-learn takes for a random state, or from a NumPy Generator."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(np.iinfo(np.int32).max))
    try:
        state = check_random_state(random_state)
    except (ValueError, TypeError):
        raise ValueError(
            "random_state must be None, an int in [0, 2**32 - 1], a RandomState or a Generator, got "
            f"{random_state!r}; pass an int for results that repeat"
        ) from None
    return int(state.randint(np.iinfo(np.int32).max))
