"""Representations that are given to other estimators: frozen ones as they are, others learned anew."""

from typing import Any

from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
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
