"""Methods that can be evaluated: embeddings with one or many representations per row, and classifiers."""

import hashlib
import inspect
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.frozen import FrozenEstimator

from ebse.evaluation._baselines import Draws, Shifts, pixels
from ebse.evaluation._storage import checksum

Array = NDArray[Any]


def classifies(method: Any) -> bool:
    """Whether a method is a scikit-learn classifier, which is fitted anew in every episode."""
    return hasattr(method, "__sklearn_tags__") and not isinstance(method, type) and is_classifier(method)


def embedding(name: str, method: Any) -> Callable[[Any], Any]:
    """The function X -> (N, K) or (N, n_draws, K) of a method that is not a classifier."""
    if isinstance(method, str) and method == "pixels":
        return pixels
    if not isinstance(method, (str, type)):
        for verb in ("representations", "transform"):
            if callable(function := getattr(method, verb, None)):
                return function  # type: ignore[no-any-return]
        if callable(method):
            return method  # type: ignore[no-any-return]
    raise TypeError(
        f"estimators[{name!r}] must have representations or transform, or be a classifier, a function "
        f"or 'pixels', got {method!r}; pass a fitted transformer or an instance of a classifier"
    )


def describe(method: Any) -> str:
    """Description of a method in a checkpoint: its parameters, and a hash of what it has learned."""
    if isinstance(method, (BaseEstimator, Draws, Shifts)) or inspect.isroutine(method):
        # Addresses differ from process to process.
        shown = re.sub(r" at 0x[0-9a-f]+", "", " ".join(repr(method).split()))
        learned = "".join(checksum(x) for x in _learned(method))
        return f"{shown} {hashlib.sha256(learned.encode()).hexdigest()[:16]}" if learned else shown
    return method if isinstance(method, str) else type(method).__qualname__


def _learned(method: Any) -> Iterator[Array]:
    """Arrays that decide the results of a method."""
    if classifies(method):
        # Only what is frozen within a classifier survives the fit in an episode.
        for part in method.get_params().values():
            if isinstance(part, FrozenEstimator):
                yield from _arrays(part)
    else:
        yield from _arrays(method)


def _arrays(held: Any) -> Iterator[Array]:
    """Arrays that an estimator, or one within it, has learned."""
    if isinstance(held, np.ndarray) or hasattr(held, "indptr"):
        yield held
    elif isinstance(held, dict):
        for name in sorted(held, key=str):
            yield from _arrays(held[name])
    elif isinstance(held, (list, tuple)):
        for part in held:
            yield from _arrays(part)
    elif isinstance(held, BaseEstimator):
        # As pickled: attributes that are computed on demand are in there.
        yield from _arrays(held.__getstate__())
    elif isinstance(held, Draws):
        yield from _arrays(vars(held))


def representations(name: str, method: Any, X: Any) -> Array:
    """Representations (N, n_draws, K) of the rows of X by one call of a method."""
    function, names = embedding(name, method), getattr(method, "feature_names_in_", None)
    # An estimator that was fitted to a frame would warn that X has no names.
    framed = names is not None and isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == len(names)
    found = function(pd.DataFrame(X, columns=names) if framed else X)
    if hasattr(found, "detach"):
        found = found.detach().cpu().numpy()
    if hasattr(found, "toarray"):
        found = found.toarray()
    draws = np.asarray(found)
    if draws.ndim == 2:
        draws = draws[:, None]
    if draws.ndim != 3 or len(draws) != X.shape[0] or not draws.size:
        raise ValueError(
            f"estimators[{name!r}] must give an array ({X.shape[0]}, K) or ({X.shape[0]}, n_draws, K), "
            f"got shape {np.shape(found)}; return one row per row of X"
        )
    if draws.dtype.kind not in "fiub":
        raise TypeError(f"estimators[{name!r}] must give numbers, got {draws.dtype}; return a float array")
    return draws


def classifier_accuracy(
    classifier: Any, X: Any, y: Array, X_queries: Any, y_queries: Array, *, parent: int
) -> float:
    """Accuracy on the queries of a clone that is fitted to the labeled rows."""
    if os.getpid() == parent:
        return _accuracy(classifier, X, y, X_queries, y_queries)
    from ebse._threads import one_thread

    # Workers share the machine: each has one thread. In the caller's process its settings stay.
    with one_thread():
        return _accuracy(classifier, X, y, X_queries, y_queries)


def _accuracy(classifier: Any, X: Any, y: Array, X_queries: Any, y_queries: Array) -> float:
    fitted = clone(classifier).fit(X, y)
    return float(np.mean(np.asarray(fitted.predict(X_queries)) == y_queries))
